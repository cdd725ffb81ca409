//! The state of the controller, and requests of users: pins and freezing.
//!
//! One lock protects it, held while one event is processed or a report is copied, and never while anything is sent.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use thalweg_control::Pair;
use thalweg_control::control_loop::link_signals::LinkCounters;
use thalweg_control::control_loop::{
    ActionReport, Command, ControlLoop, ControlOptions, Input, Installation, LinkSource, RouteCounters,
    RouteOptions,
};
use thalweg_control::controller::ControllerCounters;
use thalweg_control::decide::{Decision, FlowMoves};
use thalweg_control::routes::LinkNumber;
use thalweg_network::state::StateError;
use thalweg_network::topology::UnknownPort;
use thalweg_network::{EndpointId, LinkId, NetworkState, Node};
use thalweg_wire::{BitRate, MacAddress, Nanos, Timestamp};
use thiserror::Error;

use super::SwitchesReport;
use super::clock::Clock;
use super::names::Names;
use crate::config::{ActuatorConfig, ControlConfig, split_direction};

/// Maximum number of broken paths to keep.
const MAX_BROKEN_PATHS: usize = 64;

/// Maximum wait of a user's request for its commands to be carried out.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(100);

/// The state of the controller.
pub struct ControlState {
    work: Mutex<Work>,
    /// Notified when commands have been carried out.
    carried_out: Condvar,
    /// Wakes the driver.
    wake: Sender<()>,
}

/// The control loop and its data, under one lock.
pub(super) struct Work {
    pub(super) control: ControlLoop,
    pub(super) clock: Clock,
    pub(super) names: Arc<Names>,
    /// The state of OpenFlow switches; `None` for other actuators.
    pub(super) switches: Option<SwitchesReport>,
    /// Number of ARP refreshes of hosts.
    pub(super) refreshed: u64,
    /// The latest broken paths, at most [`MAX_BROKEN_PATHS`]: a pair, and the address whose packets do not arrive.
    broken_paths: VecDeque<(Pair, u8)>,
    /// Numbers of requests of users: received, and carried out.
    requests: [u64; 2],
}

/// The state of the controller at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlReport {
    /// The controller's clock.
    pub now: Timestamp,
    /// Whether this daemon may change the switches.
    pub is_master: bool,
    /// Whether routes are installed.
    pub has_routes: bool,
    /// Whether it is frozen.
    pub is_frozen: bool,
    /// Number of addresses per host.
    pub addresses: u8,
    /// Counters of decisions and actions.
    pub counters: ControllerCounters,
    /// Counters of routes.
    pub routes: RouteCounters,
    /// Number of ARP refreshes of hosts.
    pub refreshed: u64,
    /// Broken paths, the latest last: a pair, and the address whose packets do not arrive.
    pub broken_paths: Vec<(Pair, u8)>,
    /// Links that are down.
    pub failed_links: Vec<LinkId>,
    /// Links that are held down because they flapped, and until when if they do not fail again.
    pub held_links: Vec<(LinkId, Timestamp)>,
    /// Counters of link signals.
    pub links: LinkCounters,
    /// Pinned pairs and their addresses.
    pub pins: Vec<(Pair, u8)>,
    /// Unresponsive hosts, and how many actions in a row they ignored.
    pub unresponsive: Vec<(EndpointId, u32)>,
    /// The state of OpenFlow switches; `None` for other actuators.
    pub switches: Option<SwitchesReport>,
    /// Names of hosts and links.
    pub names: Arc<Names>,
}

/// The paths from one host to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathsReport {
    /// Source and destination.
    pub pair: Pair,
    /// The pinned address, if any.
    pub pinned: Option<u8>,
    /// Number of moves of the pair that were decided and issued since the controller started.
    pub moves: u64,
    /// Known flows of the pair, with the moves of each.
    pub flows: Vec<FlowMoves>,
    /// Working paths, by address.
    pub paths: Vec<PathInfo>,
    /// Names of hosts and links.
    pub names: Arc<Names>,
}

/// The path of packets to one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathInfo {
    /// Number of the destination's address.
    pub address: u8,
    /// The MAC address.
    pub mac: MacAddress,
    /// The links out of the switches on the path, in order.
    pub links: Vec<LinkNumber>,
    /// The smallest capacity of these links.
    pub capacity: BitRate,
}

/// Why a request of a user is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControlError {
    /// The network has no such host.
    #[error("no host {0:?} in the network")]
    NoHost(String),
    /// Source and destination are the same.
    #[error("source and destination are both {0}")]
    SameHost(String),
    /// The address has no path.
    #[error("no path from {source_name} to {destination} by tree {address}: expected 0 to {highest}")]
    NoPath {
        /// The source.
        source_name: String,
        /// The destination.
        destination: String,
        /// The address.
        address: u8,
        /// The highest address.
        highest: u8,
    },
    /// The network has no such port.
    #[error(transparent)]
    NoPort(#[from] UnknownPort),
    /// Another daemon is the master of the switches.
    #[error("this daemon is a standby: pin pairs at the master of the switches")]
    Standby,
    /// The pair is not pinned.
    #[error("{source_name} > {destination} is not pinned")]
    NotPinned {
        /// The source.
        source_name: String,
        /// The destination.
        destination: String,
    },
}

impl ControlState {
    /// Creates a control loop for a network. It reads rules back at `read_back_interval`, if set. Also returns the channel that wakes
    /// its driver.
    ///
    /// # Errors
    /// If routes cannot be computed for the network.
    pub(super) fn new(
        config: &ControlConfig,
        read_back_interval: Option<Nanos>,
        network: &Arc<NetworkState>,
        clock: Clock,
    ) -> Result<(ControlState, Receiver<()>), StateError> {
        let control = ControlLoop::new(
            options(config, read_back_interval),
            network,
            config.decider.decider(),
            clock.now(),
        )?;
        let names = Arc::new(Names::of(control.controller().paths()));
        let (wake, wakeups) = bounded(1);
        let (broken_paths, requests) = (VecDeque::new(), [0; 2]);
        let work = Work { control, clock, names, switches: None, refreshed: 0, broken_paths, requests };
        let work = Mutex::new(work);
        Ok((ControlState { work, carried_out: Condvar::new(), wake }, wakeups))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next command. If there is none, all requests of users have been carried out.
    pub(super) fn next_command(&self) -> Option<Command> {
        let mut work = self.lock();
        let command = work.control.next_command();
        let [received, done] = work.requests;
        if command.is_none() && done < received {
            work.requests = [received; 2];
            self.carried_out.notify_all();
        }
        command
    }

    /// Passes a user's request to the loop, and waits at most [`REQUEST_TIMEOUT`] until it is carried out. The lock is released
    /// meanwhile.
    fn request(&self, mut work: MutexGuard<'_, Work>, input: Input) {
        work.apply(input);
        work.requests[0] += 1;
        let request = work.requests[0];
        // If the channel is full, the driver wakes already.
        let _ = self.wake.try_send(());
        let until = Instant::now() + REQUEST_TIMEOUT;
        while work.requests[1] < request {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.carried_out.wait_timeout(work, left);
            work = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns the state of the controller.
    pub fn report(&self) -> ControlReport {
        let work = self.lock();
        let controller = work.control.controller();
        ControlReport {
            now: work.clock.now(),
            is_master: work.control.is_master(),
            has_routes: work.control.has_routes(),
            is_frozen: controller.is_frozen(),
            addresses: controller.paths().addresses(),
            counters: controller.counters(),
            routes: work.control.route_counters(),
            refreshed: work.refreshed,
            broken_paths: work.broken_paths.iter().copied().collect(),
            failed_links: work.control.state().links().failed().collect(),
            held_links: work.control.held_links().collect(),
            links: work.control.link_counters(),
            pins: controller.pins().collect(),
            unresponsive: controller.unresponsive().collect(),
            switches: work.switches,
            names: Arc::clone(&work.names),
        }
    }

    /// Returns the last `count` decisions, latest first, and the names in them.
    pub fn decisions(&self, count: usize) -> (Vec<Decision>, Arc<Names>) {
        let work = self.lock();
        let decisions = work.control.controller().decisions();
        let skipped = decisions.len().saturating_sub(count);
        let mut last: Vec<Decision> = decisions.skip(skipped).cloned().collect();
        last.reverse();
        (last, Arc::clone(&work.names))
    }

    /// Returns the last `count` actions, latest first, and the names in them.
    pub fn actions(&self, count: usize) -> (Vec<ActionReport>, Arc<Names>) {
        let work = self.lock();
        (work.control.actions().rev().take(count).cloned().collect(), Arc::clone(&work.names))
    }

    /// Returns the paths from one host to another, by address.
    ///
    /// # Errors
    /// If a host is unknown, or both are the same.
    pub fn paths(&self, source: &str, destination: &str) -> Result<PathsReport, ControlError> {
        let work = self.lock();
        let pair = work.pair(source, destination)?;
        let controller = work.control.controller();
        let pinned = controller.pins().find(|(pinned, _)| *pinned == pair).map(|(_, address)| address);
        let (moves, flows) = (controller.moves(pair), controller.flow_moves(pair));
        let mut paths = controller.paths().clone();
        let names = Arc::clone(&work.names);
        drop(work);
        let paths = (0..paths.addresses()).filter_map(|address| {
            let links = paths.of(pair, address)?.to_vec();
            let capacity = links.iter().map(|&link| paths.capacity(link)).min()?;
            Some(PathInfo { address, mac: paths.topology().mac(pair.destination, address), links, capacity })
        });
        Ok(PathsReport { pair, pinned, moves, flows, paths: paths.collect(), names })
    }

    /// Pins all flows of a pair of hosts to an address.
    ///
    /// # Errors
    /// If a host is unknown, both are the same, or the address has no path; or if another daemon is the master of the
    /// switches.
    pub fn pin(&self, source: &str, destination: &str, address: u8) -> Result<(), ControlError> {
        let work = self.lock();
        let pair = work.pair(source, destination)?;
        if !work.control.is_master() {
            return Err(ControlError::Standby);
        }
        let mut paths = work.control.controller().paths().clone();
        if paths.of(pair, address).is_none() {
            return Err(ControlError::NoPath {
                source_name: source.to_owned(),
                destination: destination.to_owned(),
                address,
                highest: paths.addresses().saturating_sub(1),
            });
        }
        self.request(work, Input::Pin { pair, address });
        Ok(())
    }

    /// Unpins a pair of hosts.
    ///
    /// # Errors
    /// If a host is unknown, both are the same, or the pair is not pinned.
    pub fn unpin(&self, source: &str, destination: &str) -> Result<(), ControlError> {
        let mut work = self.lock();
        let pair = work.pair(source, destination)?;
        if !work.control.controller().pins().any(|(pinned, _)| pinned == pair) {
            let (source_name, destination) = (source.to_owned(), destination.to_owned());
            return Err(ControlError::NotPinned { source_name, destination });
        }
        work.apply(Input::Unpin(pair));
        Ok(())
    }

    /// Reports that a link went down or came up. The link is named by a port, with or without a direction. Returns its
    /// name.
    ///
    /// # Errors
    /// If there is no such port.
    pub fn report_link(&self, text: &str, is_up: bool) -> Result<String, ControlError> {
        let work = self.lock();
        let topology = work.control.state().topology();
        let link = topology.find_link_at(text).or_else(|error| {
            let (port, direction) = split_direction(text);
            direction.and_then(|_| topology.find_link_at(port).ok()).ok_or(error)
        })?;
        let name = work.names.cable(link).1.to_owned();
        self.request(work, Input::LinkReported { link, source: LinkSource::User, is_up });
        Ok(name)
    }

    /// Freezes or resumes the controller. A frozen controller decides but does not reroute.
    pub fn freeze(&self, is_frozen: bool) {
        self.lock().apply(Input::Freeze(is_frozen));
    }
}

impl fmt::Debug for ControlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlState").finish_non_exhaustive()
    }
}

impl Work {
    /// Passes an input to the loop. The driver carries out the resulting commands within a tick.
    pub(super) fn apply(&mut self, input: Input) {
        let before = Arc::clone(self.control.state());
        self.control.handle(self.clock.now(), input);
        if !Arc::ptr_eq(&before, self.control.state()) {
            self.names = Arc::new(Names::of(self.control.controller().paths()));
        }
    }

    /// Records broken paths.
    pub(super) fn record_broken_paths(&mut self, broken_paths: &[(Pair, u8)]) {
        self.broken_paths.extend(broken_paths);
        let surplus = self.broken_paths.len().saturating_sub(MAX_BROKEN_PATHS);
        self.broken_paths.drain(..surplus);
    }

    fn pair(&self, source: &str, destination: &str) -> Result<Pair, ControlError> {
        let host = |name: &str| match self.control.state().topology().node_named(name) {
            Some(Node::Endpoint(host)) => Ok(host),
            _ => Err(ControlError::NoHost(name.to_owned())),
        };
        let (source, destination): (EndpointId, EndpointId) = (host(source)?, host(destination)?);
        match source == destination {
            true => Err(ControlError::SameHost(self.names.host(source).to_owned())),
            false => Ok(Pair { source, destination }),
        }
    }
}

/// Returns the options of the control loop.
fn options(config: &ControlConfig, read_back_interval: Option<Nanos>) -> ControlOptions {
    let installation = match (config.actuator.installs_routes(), read_back_interval) {
        (true, _) => Installation::Tables,
        (false, Some(interval)) => Installation::Reconcile { interval: Some(interval) },
        (false, None) => Installation::Never,
    };
    let routes = RouteOptions {
        trees: Some(config.trees),
        // The emulator does not rewrite addresses at the last switch.
        writes_back: config.actuator != ActuatorConfig::Emulated,
        lead_time: config.route_lead_time,
        installation,
        starts_as_standby: matches!(config.actuator, ActuatorConfig::OpenFlow(_)),
    };
    ControlOptions {
        controller: config.options,
        min_share: config.min_share,
        learn_after: Some(config.learn_after),
        routes,
        damping: config.damping,
        ..ControlOptions::default()
    }
}
