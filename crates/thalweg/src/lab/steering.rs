//! From what collectors find to what hosts are told: a controller whose actions are ARP requests, sent out of the switch
//! ports of the hosts.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_capture::live::{FrameSender, LiveError};
use thalweg_control::Pair;
use thalweg_control::act::arp::{Arp, Frames};
use thalweg_control::act::{ActError, Action, Actuator};
use thalweg_control::controller::{Controller, ControllerOptions};
use thalweg_control::decide::Decider;
use thalweg_control::decide::loads::LIGHT;
use thalweg_control::notices::congestion;
use thalweg_control::routes::Paths;
use thalweg_lab::Lab;
use thalweg_measure::collector::{AddressChange, LinkEvent};
use thalweg_network::{EndpointId, NetworkState, RouterId, Topology};
use thalweg_wire::{Nanos, Timestamp};

use super::error::ScenarioError;
use crate::serve::daemon::wall_clock;

/// Hosts are told again of an address that is not their own choice this often: well before they ask for themselves, which
/// they do 5 s after they were told (`delay_first_probe_time` of arp(7)).
pub(super) const REFRESH: Nanos = Nanos::from_secs(2);

/// A pair was told another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// Whom.
    pub(super) pair: Pair,
    /// To which address of the destination it is to send.
    pub(super) address: u8,
    /// Packet time of the event that it was decided by.
    pub(super) event: Timestamp,
    /// When it was decided: just before the frame was sent.
    pub(super) decided: Timestamp,
    /// When the frame was sent.
    pub(super) sent: Timestamp,
}

/// A controller at work on a lab.
pub(super) struct Steering {
    controller: Controller,
    arp: Arc<Mutex<Arp<HostPorts>>>,
    topology: Arc<Topology>,
    told: Arc<Mutex<Vec<Told>>>,
}

impl Steering {
    /// Steers by what `decider` says.
    ///
    /// # Errors
    /// If a switch port cannot be opened.
    pub(super) fn new(
        lab: &Lab,
        state: &Arc<NetworkState>,
        decider: Box<dyn Decider>,
        patience: Nanos,
    ) -> Result<Steering, ScenarioError> {
        let topology = Arc::clone(state.topology());
        let arp = Arp::new(Arc::clone(&topology), HostPorts::open(lab)?, REFRESH);
        let (arp, told) = (Arc::new(Mutex::new(arp)), Arc::default());
        let actuator = Box::new(Timed { arp: Arc::clone(&arp), told: Arc::clone(&told) });
        let options = ControllerOptions { patience, ..ControllerOptions::default() };
        let paths = Paths::new(Arc::clone(state));
        let controller = Controller::new(options, paths, decider, actuator, wall_clock());
        Ok(Steering { controller, arp, topology, told })
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

    /// A collector has seen a flow with another address. Gives whose, and to which.
    pub(super) fn see(&mut self, change: &AddressChange) -> Option<(Pair, u8)> {
        let (pair, address) = Pair::of(&self.topology, &change.to)?;
        self.controller.seen(pair, address, change.time);
        Some((pair, address))
    }

    /// Lets time pass: what was not seen in time has failed, and hosts are told again what they would forget.
    pub(super) fn advance(&mut self, now: Timestamp) {
        self.controller.advance(now);
        // A host that cannot be reached now is told again the next time.
        let _ = lock(&self.arp).refresh(now);
    }

    /// How often hosts were told again.
    pub(super) fn refreshed(&self) -> u64 {
        lock(&self.arp).refreshed()
    }

    /// What hosts were told since this was last asked.
    pub(super) fn take_told(&self) -> Vec<Told> {
        std::mem::take(&mut lock(&self.told))
    }
}

/// Writes down when what was sent.
struct Timed {
    arp: Arc<Mutex<Arp<HostPorts>>>,
    told: Arc<Mutex<Vec<Told>>>,
}

impl Actuator for Timed {
    fn name(&self) -> &'static str {
        "arp"
    }

    fn act(&mut self, action: &Action) -> Result<(), ActError> {
        let decided = wall_clock();
        lock(&self.arp).act(action)?;
        let Action { pair, address, issued: event, .. } = *action;
        lock(&self.told).push(Told { pair, address, event, decided, sent: wall_clock() });
        Ok(())
    }
}

/// The switch ports of all hosts, by endpoint.
struct HostPorts {
    senders: Vec<FrameSender>,
}

impl HostPorts {
    fn open(lab: &Lab) -> Result<HostPorts, ScenarioError> {
        let topology = lab.topology();
        let open = |endpoint| -> Result<FrameSender, LiveError> {
            let (router, port) = (topology.router_of(endpoint), topology.port_of(endpoint));
            FrameSender::open(&lab.port_interface(router, port).expect("a port of the lab"))
        };
        let open_all = || topology.endpoint_ids().map(open).collect::<Result<_, _>>();
        Ok(HostPorts { senders: lab.fabric().within(open_all)?? })
    }
}

impl Frames for HostPorts {
    fn send(&mut self, to: EndpointId, frame: &[u8]) -> io::Result<()> {
        self.senders[to.index()].send(frame)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
