//! What the controller knows and has done, for whoever asks; and what people may apply it.
//!
//! One lock, held for as long as it takes to decide about one event, or to copy what is asked for; never while anything
//! is sent.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use thalweg_control::Pair;
use thalweg_control::control_loop::{
    ActionReport, Command, ControlLoop, ControlOptions, Input, Installation, RouteCounters, RouteOptions,
};
use thalweg_control::controller::ControllerCounters;
use thalweg_control::decide::Decision;
use thalweg_control::routes::LinkNumber;
use thalweg_network::state::StateError;
use thalweg_network::{EndpointId, NetworkState, Node};
use thalweg_wire::{BitRate, MacAddress, Nanos, Timestamp};
use thiserror::Error;

use super::SwitchesReport;
use super::clock::Clock;
use super::names::Names;
use crate::config::{ActuatorConfig, ControlConfig};

/// Pairs and addresses by which packets did not arrive that are kept.
const MAX_BROKEN_PATHS: usize = 64;

/// How long a user waits at most until what they want is under way.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(100);

/// What the controller knows and has done.
pub struct ControlState {
    work: Mutex<Work>,
    /// Told when commands have been carried out.
    carried_out: Condvar,
    /// Wakes the driver.
    wake: Sender<()>,
}

/// The control loop, and what is kept beside it.
pub(super) struct Work {
    pub(super) control: ControlLoop,
    pub(super) clock: Clock,
    pub(super) names: Arc<Names>,
    /// How switches do, if they are told by OpenFlow.
    pub(super) switches: Option<SwitchesReport>,
    /// How often hosts were told again.
    pub(super) refreshed: u64,
    /// Pairs and addresses by which packets did not arrive: the latest, [`MAX_BROKEN_PATHS`] at most.
    broken_paths: VecDeque<(Pair, u8)>,
    /// What users wanted so far, and how much of it has been carried out.
    requests: [u64; 2],
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
    /// What it has done to routes.
    pub routes: RouteCounters,
    /// How often hosts were told again of what they would forget.
    pub refreshed: u64,
    /// Pairs and addresses by which packets set out and did not arrive, the latest last.
    pub broken_paths: Vec<(Pair, u8)>,
    /// What is pinned to which address.
    pub pins: Vec<(Pair, u8)>,
    /// Hosts that take no notice, and of how many actions in a row.
    pub unresponsive: Vec<(EndpointId, u32)>,
    /// How switches do, if they are told by OpenFlow.
    pub switches: Option<SwitchesReport>,
    /// What numbers are called.
    pub names: Arc<Names>,
}

/// The paths from one host to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathsReport {
    /// From whom to whom.
    pub pair: Pair,
    /// The address that it is pinned to, if it is.
    pub pinned: Option<u8>,
    /// Those that arrive, by address.
    pub paths: Vec<PathInfo>,
    /// What numbers are called.
    pub names: Arc<Names>,
}

/// The way of packets that are sent to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathInfo {
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
    NoPath {
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

impl ControlState {
    /// A control loop as configured, over this network, which reads back what switches have so often, if they can say; and what
    /// wakes its driver.
    ///
    /// # Errors
    /// If the network can have no routes as configured.
    pub(super) fn new(
        config: &ControlConfig,
        read_back_interval: Option<Nanos>,
        network: &Arc<NetworkState>,
        clock: Clock,
    ) -> Result<(ControlState, Receiver<()>), StateError> {
        let control =
            ControlLoop::new(options(config, read_back_interval), network, config.decider.decider(), clock.now())?;
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

    /// The next command; if there is none, all that users wanted is under way.
    pub(super) fn next_command(&self) -> Option<Command> {
        let mut work = self.lock();
        let command = work.control.next_command();
        let [wanted, done] = work.requests;
        if command.is_none() && done < wanted {
            work.requests = [wanted; 2];
            self.carried_out.notify_all();
        }
        command
    }

    /// Tells the loop what a user wants, and waits until that is under way, though not for long. The lock is not held
    /// meanwhile.
    fn request(&self, mut work: MutexGuard<'_, Work>, input: Input) {
        work.apply(input);
        work.requests[0] += 1;
        let request = work.requests[0];
        // It is being wakeups already if there is no room.
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

    /// How the controller does.
    pub fn report(&self) -> ControlReport {
        let work = self.lock();
        let controller = work.control.controller();
        ControlReport {
            now: work.clock.now(),
            has_routes: work.control.has_routes(),
            is_frozen: controller.is_frozen(),
            addresses: controller.paths().addresses(),
            counters: controller.counters(),
            routes: work.control.route_counters(),
            refreshed: work.refreshed,
            broken_paths: work.broken_paths.iter().copied().collect(),
            pins: controller.pins().collect(),
            unresponsive: controller.unresponsive().collect(),
            switches: work.switches,
            names: Arc::clone(&work.names),
        }
    }

    /// The last `count` decisions, the latest first, and what numbers in them are called.
    pub fn decisions(&self, count: usize) -> (Vec<Decision>, Arc<Names>) {
        let work = self.lock();
        let decisions = work.control.controller().decisions();
        let skipped = decisions.len().saturating_sub(count);
        let mut last: Vec<Decision> = decisions.skip(skipped).cloned().collect();
        last.reverse();
        (last, Arc::clone(&work.names))
    }

    /// The last `count` actions, the latest first, and what numbers in them are called.
    pub fn actions(&self, count: usize) -> (Vec<ActionReport>, Arc<Names>) {
        let work = self.lock();
        (work.control.actions().rev().take(count).cloned().collect(), Arc::clone(&work.names))
    }

    /// The paths from one host to another, by address.
    ///
    /// # Errors
    /// If there are no such hosts.
    pub fn paths(&self, source: &str, destination: &str) -> Result<PathsReport, ControlError> {
        let work = self.lock();
        let pair = work.pair(source, destination)?;
        let pinned =
            work.control.controller().pins().find(|(pinned, _)| *pinned == pair).map(|(_, address)| address);
        let mut paths = work.control.controller().paths().clone();
        let names = Arc::clone(&work.names);
        drop(work);
        let paths = (0..paths.addresses()).filter_map(|address| {
            let links = paths.of(pair, address)?.to_vec();
            let capacity = links.iter().map(|&link| paths.capacity(link)).min()?;
            Some(PathInfo { address, mac: paths.topology().mac(pair.destination, address), links, capacity })
        });
        Ok(PathsReport { pair, pinned, paths: paths.collect(), names })
    }

    /// Sends everything from one host to another to this address, and leaves it there.
    ///
    /// # Errors
    /// If there are no such hosts, or the address does not lead there.
    pub fn pin(&self, source: &str, destination: &str, address: u8) -> Result<(), ControlError> {
        let work = self.lock();
        let pair = work.pair(source, destination)?;
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

    /// Lets it go again.
    ///
    /// # Errors
    /// If there are no such hosts, or it was not pinned.
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

    /// Has it only watch, or steer again.
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
    /// Tells the loop something, now. What follows from it is for the driver to carry out, a tick later at most.
    pub(super) fn apply(&mut self, input: Input) {
        let before = Arc::clone(self.control.state());
        self.control.handle(self.clock.now(), input);
        if !Arc::ptr_eq(&before, self.control.state()) {
            self.names = Arc::new(Names::of(self.control.controller().paths()));
        }
    }

    /// Keeps what went broken_paths.
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

/// What the loop is to do.
fn options(config: &ControlConfig, read_back_interval: Option<Nanos>) -> ControlOptions {
    let installation = match (config.actuator.installs_routes(), read_back_interval) {
        (true, _) => Installation::Tables,
        (false, Some(interval)) => Installation::Reconcile { interval: Some(interval) },
        (false, None) => Installation::Never,
    };
    let routes = RouteOptions {
        trees: Some(config.trees),
        // In the emulator packets keep their address to the end.
        writes_back: config.actuator != ActuatorConfig::Emulated,
        settle: config.settle_routes,
        installation,
    };
    ControlOptions {
        controller: config.options,
        least_share: config.least_share,
        learn_after: Some(config.learn_after),
        routes,
        ..ControlOptions::default()
    }
}
