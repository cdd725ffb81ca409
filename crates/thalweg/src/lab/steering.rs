//! From what collectors find to what hosts or switches are told.

use std::sync::{Arc, Mutex, PoisonError};

use thalweg_control::Pair;
use thalweg_control::act::{ActError, Action, Actuator};
use thalweg_control::controller::{Controller, ControllerOptions};
use thalweg_control::decide::Decider;
use thalweg_control::decide::loads::LIGHT;
use thalweg_control::notices::congestion;
use thalweg_control::routes::Paths;
use thalweg_lab::Lab;
use thalweg_measure::collector::{AddressChange, LinkEvent};
use thalweg_network::{NetworkState, RouterId, Topology};
use thalweg_wire::{Nanos, Timestamp};

use super::error::ScenarioError;
use super::means::{By, Means};
use crate::serve::daemon::wall_clock;

/// A pair was told another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// Whom.
    pub(super) pair: Pair,
    /// To which address of the destination it is to send.
    pub(super) address: u8,
    /// Packet time of the event that it was decided by.
    pub(super) event: Timestamp,
    /// When it was decided: just before anything was sent.
    pub(super) decided: Timestamp,
    /// When the frame, or the flow-mod, was sent.
    pub(super) sent: Timestamp,
}

/// A controller at work on a lab.
pub(super) struct Steering {
    controller: Controller,
    means: Arc<Mutex<Means>>,
    topology: Arc<Topology>,
    told: Arc<Mutex<Vec<Told>>>,
}

impl Steering {
    /// Steers by what `decider` says, by these means.
    ///
    /// # Errors
    /// If they cannot be had.
    pub(super) fn new(
        lab: &Lab,
        state: &Arc<NetworkState>,
        decider: Box<dyn Decider>,
        by: By,
        patience: Nanos,
    ) -> Result<Steering, ScenarioError> {
        let topology = Arc::clone(state.topology());
        let means = Arc::new(Mutex::new(Means::open(lab, state, by)?));
        let told = Arc::default();
        let actuator = Box::new(Timed { means: Arc::clone(&means), told: Arc::clone(&told) });
        let options = ControllerOptions { patience, ..ControllerOptions::default() };
        let paths = Paths::new(Arc::clone(state));
        let controller = Controller::new(options, paths, decider, actuator, wall_clock());
        Ok(Steering { controller, means, topology, told })
    }

    /// The loop itself.
    pub(super) fn controller(&mut self) -> &mut Controller {
        &mut self.controller
    }

    /// A collector tells of a link. Gives what hosts were told of it.
    pub(super) fn hear(&mut self, router: RouterId, event: &LinkEvent) -> Vec<Told> {
        if let Some(congestion) = congestion(self.controller.paths(), router, event, LIGHT) {
            self.controller.congested(&congestion);
        }
        self.take_told()
    }

    /// A collector has seen a flow with another address.
    pub(super) fn see(&mut self, change: &AddressChange) {
        if let Some((pair, address)) = Pair::of(&self.topology, &change.to) {
            self.controller.seen(pair, address, change.time);
        }
    }

    /// Addresses lead other ways from now on.
    pub(super) fn set_routes(&mut self, state: &Arc<NetworkState>) {
        self.topology = Arc::clone(state.topology());
        self.controller.set_paths(Paths::new(Arc::clone(state)));
        lock(&self.means).set_routes(state);
    }

    /// Lets time pass: what was not seen in time has failed, and what is due is done.
    pub(super) fn advance(&mut self, now: Timestamp) {
        self.controller.advance(now);
        lock(&self.means).tend(now);
    }

    /// How often hosts were told again.
    pub(super) fn refreshed(&self) -> u64 {
        lock(&self.means).refreshed()
    }

    /// What hosts were told since this was last asked.
    pub(super) fn take_told(&self) -> Vec<Told> {
        std::mem::take(&mut lock(&self.told))
    }
}

/// Writes down when what was sent.
struct Timed {
    means: Arc<Mutex<Means>>,
    told: Arc<Mutex<Vec<Told>>>,
}

impl Actuator for Timed {
    fn name(&self) -> &'static str {
        "timed"
    }

    fn act(&mut self, action: &Action) -> Result<(), ActError> {
        let decided = wall_clock();
        lock(&self.means).act(action)?;
        let Action { pair, address, issued: event, .. } = *action;
        lock(&self.told).push(Told { pair, address, event, decided, sent: wall_clock() });
        Ok(())
    }

    fn found(&mut self, pair: Pair, address: u8, now: Timestamp) {
        lock(&self.means).found(pair, address, now);
    }

    fn failed(&mut self, action: &Action, from: u8) {
        lock(&self.means).failed(action, from);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
