//! What the controller knows and has done, for whoever asks; and what people may tell it.
//!
//! One lock, held for as long as it takes to decide about one event, or to copy what is asked for.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender, unbounded};
use thalweg_control::Pair;
use thalweg_control::act::{ActError, Action, Actuator};
use thalweg_control::controller::{Controller, ControllerCounters, Ended, Outcome};
use thalweg_control::decide::Decision;
use thalweg_control::routes::{LinkNumber, Paths};
use thalweg_network::{EndpointId, NetworkState, Node};
use thalweg_wire::{BitRate, MacAddress, Nanos, Timestamp};
use thiserror::Error;

use super::clock::Clock;
use super::names::Names;
use super::openflow::SwitchesReport;
use crate::serve::config::ControlConfig;

/// What the controller knows and has done.
pub struct Desk(Mutex<Work>);

/// The controller, and what is kept beside it.
pub(super) struct Work {
    pub(super) controller: Controller,
    pub(super) clock: Clock,
    pub(super) names: Arc<Names>,
    /// Whether the routes are there, so that flows can be steered.
    pub(super) has_routes: bool,
    /// How switches do, if they are told by OpenFlow.
    pub(super) switches: Option<SwitchesReport>,
    /// The latest, the oldest first.
    actions: VecDeque<ActionReport>,
    kept: usize,
    /// Actions that the actuator has begun with.
    begun: Receiver<Action>,
    /// Decisions that have been looked at by [`Work::take_news`].
    looked_at: u64,
}

/// An action, and what has come of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionReport {
    /// The action.
    pub action: Action,
    /// What has come of it.
    pub outcome: ActionOutcome,
}

/// What has come of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionOutcome {
    /// Its effect has not been seen.
    Begun,
    /// It was seen after this time.
    Confirmed(Nanos),
    /// It was not seen in time.
    Expired,
    /// The same flows were sent elsewhere before.
    Superseded,
    /// It could not be begun.
    Refused(String),
}

/// How the controller does.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlReport {
    /// The time that it goes by.
    pub now: Timestamp,
    /// Whether the routes are there.
    pub has_routes: bool,
    /// Whether it only watches.
    pub is_frozen: bool,
    /// Addresses of a host.
    pub addresses: u8,
    /// What it has done.
    pub counters: ControllerCounters,
    /// What is pinned to which address.
    pub pins: Vec<(Pair, u8)>,
    /// Hosts that take no notice, and of how many actions in a row.
    pub unresponsive: Vec<(EndpointId, u32)>,
    /// How switches do, if they are told by OpenFlow.
    pub switches: Option<SwitchesReport>,
    /// What numbers are called.
    pub names: Arc<Names>,
}

/// The ways from one host to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaysReport {
    /// From whom to whom.
    pub pair: Pair,
    /// The address that it is pinned to, if it is.
    pub pinned: Option<u8>,
    /// Those that arrive, by address.
    pub ways: Vec<Way>,
    /// What numbers are called.
    pub names: Arc<Names>,
}

/// The way of packets that are sent to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Which of the destination's addresses.
    pub address: u8,
    /// The same as packets have it.
    pub mac: MacAddress,
    /// The links out of the switches on the way, in order.
    pub links: Vec<LinkNumber>,
    /// The least of what these can carry.
    pub capacity: BitRate,
}

/// Why the controller does not do what it was told.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControlError {
    /// There is no such host.
    #[error("there is no host {0:?} in the network")]
    NoHost(String),
    /// Both ends are the same.
    #[error("{0} sends nothing to itself")]
    SameHost(String),
    /// The address leads nowhere.
    #[error("address {address} does not lead from {source_name} to {destination}: there are 0 to {highest}")]
    NoWay {
        /// The source.
        source_name: String,
        /// The destination.
        destination: String,
        /// The address.
        address: u8,
        /// The highest that there is.
        highest: u8,
    },
    /// It was not pinned.
    #[error("{source_name} > {destination} is not pinned")]
    NotPinned {
        /// The source.
        source_name: String,
        /// The destination.
        destination: String,
    },
}

/// What has happened since it was last asked.
#[derive(Debug, Default)]
pub(super) struct News {
    pub(super) decisions: Vec<Decision>,
    pub(super) actions: Vec<ActionReport>,
}

impl Desk {
    /// A controller as configured, over these routes.
    pub(super) fn new(
        config: &ControlConfig,
        state: &Arc<NetworkState>,
        actuator: Box<dyn Actuator>,
        clock: Clock,
    ) -> Desk {
        let paths = Paths::new(Arc::clone(state));
        let names = Arc::new(Names::of(&paths));
        let (sender, begun) = unbounded();
        let noting = Box::new(Noting { actuator, begun: sender });
        let controller =
            Controller::new(config.options, paths, config.decider.decider(), noting, clock.now());
        Desk(Mutex::new(Work {
            controller,
            clock,
            names,
            has_routes: false,
            switches: None,
            actions: VecDeque::new(),
            kept: config.options.kept,
            begun,
            looked_at: 0,
        }))
    }

    /// The network forwards otherwise.
    pub(super) fn set_paths(&self, state: &Arc<NetworkState>) {
        let paths = Paths::new(Arc::clone(state));
        let mut work = self.lock();
        work.names = Arc::new(Names::of(&paths));
        work.controller.set_paths(paths);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Work> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the controller does.
    pub fn report(&self) -> ControlReport {
        let work = self.lock();
        ControlReport {
            now: work.clock.now(),
            has_routes: work.has_routes,
            is_frozen: work.controller.is_frozen(),
            addresses: work.controller.paths().addresses(),
            counters: work.controller.counters(),
            pins: work.controller.pins().collect(),
            unresponsive: work.controller.unresponsive().collect(),
            switches: work.switches,
            names: Arc::clone(&work.names),
        }
    }

    /// The last `count` decisions, the latest first, and what numbers in them are called.
    pub fn decisions(&self, count: usize) -> (Vec<Decision>, Arc<Names>) {
        let work = self.lock();
        let decisions = work.controller.decisions();
        let skipped = decisions.len().saturating_sub(count);
        let mut last: Vec<Decision> = decisions.skip(skipped).cloned().collect();
        last.reverse();
        (last, Arc::clone(&work.names))
    }

    /// The last `count` actions, the latest first, and what numbers in them are called.
    pub fn actions(&self, count: usize) -> (Vec<ActionReport>, Arc<Names>) {
        let work = self.lock();
        (work.actions.iter().rev().take(count).cloned().collect(), Arc::clone(&work.names))
    }

    /// The ways from one host to another, by address.
    ///
    /// # Errors
    /// If there are no such hosts.
    pub fn ways(&self, source: &str, destination: &str) -> Result<WaysReport, ControlError> {
        let work = self.lock();
        let pair = work.pair(source, destination)?;
        let pinned = work.controller.pins().find(|(pinned, _)| *pinned == pair).map(|(_, address)| address);
        let mut paths = work.controller.paths().clone();
        let names = Arc::clone(&work.names);
        drop(work);
        let ways = (0..paths.addresses()).filter_map(|address| {
            let links = paths.of(pair, address)?.to_vec();
            let capacity = links.iter().map(|&link| paths.capacity(link)).min()?;
            Some(Way { address, mac: paths.topology().mac(pair.destination, address), links, capacity })
        });
        Ok(WaysReport { pair, pinned, ways: ways.collect(), names })
    }

    /// Sends everything from one host to another to this address, and leaves it there.
    ///
    /// # Errors
    /// If there are no such hosts, or the address does not lead there.
    pub fn pin(&self, source: &str, destination: &str, address: u8) -> Result<(), ControlError> {
        let mut work = self.lock();
        let pair = work.pair(source, destination)?;
        let mut paths = work.controller.paths().clone();
        if paths.of(pair, address).is_none() {
            return Err(ControlError::NoWay {
                source_name: source.to_owned(),
                destination: destination.to_owned(),
                address,
                highest: paths.addresses().saturating_sub(1),
            });
        }
        let now = work.clock.now();
        work.controller.pin(pair, address, now);
        Ok(())
    }

    /// Lets it go again.
    ///
    /// # Errors
    /// If there are no such hosts, or it was not pinned.
    pub fn unpin(&self, source: &str, destination: &str) -> Result<(), ControlError> {
        let mut work = self.lock();
        let pair = work.pair(source, destination)?;
        if !work.controller.pins().any(|(pinned, _)| pinned == pair) {
            let (source_name, destination) = (source.to_owned(), destination.to_owned());
            return Err(ControlError::NotPinned { source_name, destination });
        }
        work.controller.unpin(pair);
        Ok(())
    }

    /// Has it only watch, or steer again.
    pub fn freeze(&self, is_frozen: bool) {
        self.lock().controller.freeze(is_frozen);
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

impl Work {
    fn pair(&self, source: &str, destination: &str) -> Result<Pair, ControlError> {
        let host = |name: &str| match self.controller.paths().topology().node_named(name) {
            Some(Node::Endpoint(host)) => Ok(host),
            _ => Err(ControlError::NoHost(name.to_owned())),
        };
        let (source, destination): (EndpointId, EndpointId) = (host(source)?, host(destination)?);
        match source == destination {
            true => Err(ControlError::SameHost(self.names.host(source).to_owned())),
            false => Ok(Pair { source, destination }),
        }
    }

    /// Decisions, and actions that something came of, since this was last asked.
    pub(super) fn take_news(&mut self) -> News {
        let decided: u64 = self.controller.counters().decisions.iter().sum();
        let new = usize::try_from(decided - self.looked_at).unwrap_or(usize::MAX);
        self.looked_at = decided;
        let decisions = self.controller.decisions();
        let skipped = decisions.len().saturating_sub(new);
        let decisions = decisions.skip(skipped).cloned().collect();
        let begun: Vec<Action> = self.begun.try_iter().collect();
        let begun = begun.into_iter().map(|action| ActionReport { action, outcome: ActionOutcome::Begun });
        let refused = self.controller.take_failures().into_iter();
        let refused = refused.map(|(action, error)| ActionReport {
            action,
            outcome: ActionOutcome::Refused(error.to_string()),
        });
        let mut actions: Vec<ActionReport> = begun.chain(refused).collect();
        actions.sort_by_key(|report| report.action.id);
        for report in &actions {
            if self.actions.len() >= self.kept.max(1) {
                self.actions.pop_front();
            }
            self.actions.push_back(report.clone());
        }
        for Ended { action, outcome } in self.controller.take_ended() {
            let outcome = match outcome {
                Outcome::Confirmed(after) => ActionOutcome::Confirmed(after),
                Outcome::Expired => ActionOutcome::Expired,
                Outcome::Superseded => ActionOutcome::Superseded,
            };
            if let Some(kept) = self.actions.iter_mut().rev().find(|kept| kept.action.id == action.id) {
                kept.outcome = outcome.clone();
            }
            actions.push(ActionReport { action, outcome });
        }
        News { decisions, actions }
    }
}

/// An actuator whose actions are noted once begun. Whoever takes news empties the notes: no more than what one round
/// gives rise to wait there.
struct Noting {
    actuator: Box<dyn Actuator>,
    begun: Sender<Action>,
}

impl Actuator for Noting {
    fn name(&self) -> &'static str {
        self.actuator.name()
    }

    fn act(&mut self, action: &Action) -> Result<(), ActError> {
        self.actuator.act(action)?;
        let _ = self.begun.send(*action);
        Ok(())
    }

    fn found(&mut self, pair: Pair, address: u8, now: Timestamp) {
        self.actuator.found(pair, address, now);
    }

    fn failed(&mut self, action: &Action, from: u8) {
        self.actuator.failed(action, from);
    }
}
