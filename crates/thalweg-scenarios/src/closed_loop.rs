//! The daemon running on a lab, in the scenario's process: collectors at the monitor ports, controller and actuator. It
//! starts from a [configuration](super::configuration) that a user could write; only faults and the tables of eBPF
//! switches are passed in as objects.
//! The trace is assembled from what the daemon publishes: events, counters and the last frames of its collectors.
//! Reading these is not urgent and does not disturb the measurement.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use thalweg_control::Pair;
use thalweg_control::control_loop::{Input, RouteCounters};
use thalweg_control::controller::ControllerCounters;
use thalweg_control::decide::Verdict;
use thalweg_daemon::collectors::CollectorHandle;
use thalweg_daemon::config::Config;
use thalweg_daemon::control::{self, ActionReport, Control, Injected};
use thalweg_daemon::event::CollectorState;
use thalweg_daemon::event::{Event, EventKind};
use thalweg_daemon::hub::{self, Hub, Subscriber};
use thalweg_daemon::service::{PreparedService, Service};
use thalweg_lab::Lab;
use thalweg_network::{Case, NetworkState, Node, RouterId, Topology};
use thalweg_wire::parse::Parser;
use thalweg_wire::{Packet, SourceCounters};

use super::configuration::{Files, RerouteOptions};
use super::delivery::{Delivery, FaultyDelivery};
use super::error::ScenarioError;
use super::switches::Switches;
use super::trace::{PathChange, RerouteRequest, Trace};

/// Interval at which the tracer reads events and frames.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Timeout for the daemon to start, including installing routes in Open vSwitch.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Timeout for a collector to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// A running daemon; it stops on drop.
pub(super) struct ClosedLoop {
    service: Option<Service>,
    control: Control,
    faulty: SharedDelivery,
    tracer: Arc<Mutex<Tracer>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    folder: PathBuf,
}

/// The counters of a closed loop.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LoopCounters {
    /// Counters of the controller.
    pub(super) controller: ControllerCounters,
    /// Counters of the routes.
    pub(super) routes: RouteCounters,
    /// Counters of the monitor ports.
    pub(super) sources: SourceCounters,
    /// Events and frames that were overwritten before the tracer read them.
    pub(super) missed: u64,
    /// Repeated ARP requests.
    pub(super) refreshes: u64,
    /// Packets seen at switches that are not on their route.
    pub(super) off_route: u64,
    /// Reports that collectors sent, that were lost before the controller, and that arrived out of order.
    pub(super) delivery_counts: [u64; 3],
}

impl ClosedLoop {
    /// Starts a daemon on a lab whose switches forward as `state` says.
    ///
    /// # Errors
    /// If the daemon cannot start.
    pub(super) fn start(
        lab: &Lab,
        state: &Arc<NetworkState>,
        reroute_options: &RerouteOptions,
    ) -> Result<ClosedLoop, ScenarioError> {
        ClosedLoop::run(lab, state, reroute_options, Injected::default())
    }

    /// Like [`start`](Self::start), for eBPF switches, and keeps their rules reconciled: routes around links that are
    /// down, restores missing rules and removes foreign ones.
    ///
    /// # Errors
    /// See [`start`](Self::start).
    pub(super) fn start_reconciling(
        lab: &Lab,
        state: &Arc<NetworkState>,
        reroute_options: &RerouteOptions,
    ) -> Result<ClosedLoop, ScenarioError> {
        let tables = Switches::start(&lab.plan().prefix)?;
        ClosedLoop::run(
            lab,
            state,
            reroute_options,
            Injected { tables: Some(Box::new(tables)), delivery: None },
        )
    }

    fn run(
        lab: &Lab,
        state: &Arc<NetworkState>,
        reroute_options: &RerouteOptions,
        injected: Injected,
    ) -> Result<ClosedLoop, ScenarioError> {
        let folder =
            std::env::temp_dir().join(format!("thalweg-{}{}", lab.plan().prefix, std::process::id()));
        let config = write_configuration(&folder, lab, state, reroute_options);
        let config = config.inspect_err(|_| remove(&folder))?;
        let faulty = SharedDelivery::default();
        let injected = Injected { delivery: Some(Box::new(faulty.clone())), ..injected };
        let service = PreparedService::open(config, injected).and_then(|opened| opened.start(None));
        let service = service.inspect_err(|_| remove(&folder)).map_err(|error| failed(&error))?;
        let control = service.control().cloned().expect("the configuration has a controller");
        let topology = Arc::clone(state.topology());
        let tracer = Arc::new(Mutex::new(Tracer::new(&service, &control, topology)));
        let is_over = Arc::new(AtomicBool::new(false));
        let poll = {
            let (tracer, is_over) = (Arc::clone(&tracer), Arc::clone(&is_over));
            move || {
                while !is_over.load(Ordering::Relaxed) {
                    thread::sleep(POLL_INTERVAL);
                    lock(&tracer).poll();
                }
            }
        };
        let thread = thread::Builder::new().name("trace".to_owned()).spawn(poll);
        let thread = Some(thread.map_err(|error| ScenarioError::Monitoring(error.to_string()))?);
        let service = Some(service);
        let running = ClosedLoop { service, control, faulty, tracer, is_over, thread, folder };
        running.await_start()?;
        Ok(running)
    }

    /// Waits until all collectors run and the routes are installed.
    fn await_start(&self) -> Result<(), ScenarioError> {
        let until = Instant::now() + START_TIMEOUT;
        loop {
            let collectors = self.collectors();
            let running = |collector: &CollectorHandle| collector.state() == CollectorState::Running;
            if collectors.iter().all(running) && self.control.state().report().has_routes {
                return Ok(());
            }
            for collector in &collectors {
                if let CollectorState::Failed { error, .. } = collector.state() {
                    return Err(ScenarioError::Monitoring(format!(
                        "collector {}: {error}",
                        collector.name()
                    )));
                }
            }
            if Instant::now() >= until {
                return Err(ScenarioError::Switches("routes not installed within 20 s".to_owned()));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Takes the trace since the last call.
    pub(super) fn take_trace(&self) -> Trace {
        let mut tracer = lock(&self.tracer);
        tracer.poll();
        tracer.take()
    }

    /// Moves pairs back to the base addresses of their destinations.
    ///
    /// # Errors
    /// If the controller does not know a pair.
    pub(super) fn reset_paths(&self, pairs: &[Pair]) -> Result<(), ScenarioError> {
        for &pair in pairs {
            self.pin(pair, 0)?;
            let [source, destination] = self.names(pair);
            let state = self.control.state();
            state.unpin(&source, &destination).map_err(|error| ScenarioError::Daemon(error.to_string()))?;
        }
        Ok(())
    }

    /// Pins a pair to an address of its destination.
    ///
    /// # Errors
    /// If the controller does not know the pair, or no path leads to the address.
    pub(super) fn pin(&self, pair: Pair, address: u8) -> Result<(), ScenarioError> {
        let [source, destination] = self.names(pair);
        let pinned = self.control.state().pin(&source, &destination, address);
        pinned.map_err(|error| ScenarioError::Daemon(error.to_string()))
    }

    fn names(&self, pair: Pair) -> [String; 2] {
        let tracer = lock(&self.tracer);
        [pair.source, pair.destination].map(|host| tracer.topology.name(Node::Endpoint(host)).to_owned())
    }

    /// Changes the delivery of reports, with random numbers from `seed`.
    pub(super) fn set_delivery(&self, delivery: Delivery, seed: u64) {
        self.faulty.set(delivery, seed);
    }

    /// Returns the counters so far.
    pub(super) fn counters(&self) -> LoopCounters {
        let report = self.control.state().report();
        let mut counters = LoopCounters {
            controller: report.counters,
            routes: report.routes,
            missed: lock(&self.tracer).missed,
            refreshes: report.refreshed,
            delivery_counts: self.faulty.counts(),
            ..LoopCounters::default()
        };
        for collector in self.collectors() {
            // Skip a collector that does not answer.
            let Ok(answer) = collector.counters(ANSWER_TIMEOUT) else { continue };
            counters.sources.frames += answer.value.source.frames;
            counters.sources.kernel_drops += answer.value.source.kernel_drops;
            counters.off_route += answer.value.collector.rates.cases[Case::OffPath.index()];
        }
        counters
    }

    fn collectors(&self) -> Vec<CollectorHandle> {
        self.service.as_ref().map(|service| service.daemon().collectors()).unwrap_or_default()
    }

    /// Stops the daemon, leaves rules and paths in place, and returns the counters.
    pub(super) fn finish(&mut self) -> LoopCounters {
        let counters = self.counters();
        self.stop();
        counters
    }

    fn stop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panicked thread has printed its message.
            let _ = thread.join();
        }
        drop(self.service.take());
        remove(&self.folder);
    }
}

impl Drop for ClosedLoop {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Writes the configuration files and loads them as the daemon does.
fn write_configuration(
    folder: &Path,
    lab: &Lab,
    state: &NetworkState,
    reroute_options: &RerouteOptions,
) -> Result<Config, ScenarioError> {
    let written = Files::of_state(lab.plan(), state, reroute_options).write(folder);
    let file = written.map_err(|error| ScenarioError::Daemon(format!("{}: {error}", folder.display())))?;
    Config::load(&file).map_err(|error| ScenarioError::Daemon(error.to_string()))
}

/// Removes the configuration; the system cleans its temporary folder if this fails.
fn remove(folder: &Path) {
    let _ = std::fs::remove_dir_all(folder);
}

fn failed(error: &dyn std::fmt::Display) -> ScenarioError {
    ScenarioError::Daemon(format!("{error:#}"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Assembles a trace from the daemon's events and frames.
struct Tracer {
    topology: Arc<Topology>,
    hub: Arc<Hub>,
    subscriber: Subscriber,
    control: Control,
    rings: Vec<Ring>,
    /// Broken paths that earlier traces contain.
    broken_paths: u64,
    /// Events and frames that were overwritten before they were read.
    missed: u64,
    trace: Trace,
}

/// The ring of frames of a collector.
struct Ring {
    router: RouterId,
    collector: CollectorHandle,
    /// Frames read or overwritten so far.
    seen: u64,
}

impl Tracer {
    fn new(service: &Service, control: &Control, topology: Arc<Topology>) -> Tracer {
        let hub = Arc::clone(service.daemon().hub());
        let ring = |collector: CollectorHandle| match topology.node_named(&collector.description().switch) {
            Some(Node::Router(router)) => Some(Ring { router, collector, seen: 0 }),
            _ => None,
        };
        Tracer {
            subscriber: hub.subscribe(None),
            hub,
            control: control.clone(),
            rings: service.daemon().collectors().into_iter().filter_map(ring).collect(),
            broken_paths: 0,
            missed: 0,
            trace: Trace::default(),
            topology,
        }
    }

    /// Reads new events and frames.
    fn poll(&mut self) {
        while let Some(delivery) = self.subscriber.next_delivery(&self.hub) {
            match delivery {
                hub::Delivery::Event(published) => self.handle_event(&published.event),
                hub::Delivery::Lost { count, .. } => self.missed += count,
            }
        }
        for ring in &mut self.rings {
            let packets = ring.new_packets(&mut self.missed);
            self.trace.add_packets(&self.topology, ring.router, &packets);
        }
    }

    fn handle_event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::AddressChange(change) => {
                if let Some((pair, address)) = Pair::of(&self.topology, &change.to) {
                    self.trace.add_path_change(PathChange { pair, address, time: change.time });
                }
            }
            EventKind::Action(ActionReport { action, times: Some(times), .. }, _) => {
                self.trace.requests.push(RerouteRequest {
                    pair: action.pair,
                    address: action.address,
                    event: action.issued,
                    decided: times.handled,
                    sent: times.started,
                });
            }
            EventKind::Decision(decision, _) if decision.verdict == Verdict::Reroute => {
                self.trace.most_flow_moves = self.trace.most_flow_moves.max(decision.flow_moves);
            }
            _ => {}
        }
    }

    fn take(&mut self) -> Trace {
        let control::ControlReport { counters, mut broken_paths, .. } = self.control.state().report();
        let new = (counters.broken_paths - self.broken_paths) as usize;
        self.broken_paths = counters.broken_paths;
        self.trace.broken_paths = broken_paths.split_off(broken_paths.len().saturating_sub(new));
        self.trace.requests.sort_by_key(|request| request.sent);
        std::mem::take(&mut self.trace)
    }
}

impl Ring {
    /// Parses the new frames into packets; adds overwritten frames to `missed`.
    fn new_packets(&mut self, missed: &mut u64) -> Vec<Packet> {
        let Some(samples) = self.collector.samples() else { return Vec::new() };
        let (copied, seen) = samples.copy_after(self.seen);
        *missed += seen - self.seen - copied.len() as u64;
        self.seen = seen;
        let parser = Parser { decapsulate: false };
        // Frames that are not IP packets belong to no transfer.
        copied.iter().filter_map(|frame| parser.parse(&frame).ok()).collect()
    }
}

/// Delivers reports from collectors to the controller; faults can be injected while it runs.
#[derive(Clone, Default)]
struct SharedDelivery(Arc<Mutex<FaultyDelivery<Input>>>);

impl SharedDelivery {
    fn set(&self, delivery: Delivery, seed: u64) {
        lock(&self.0).set(delivery, seed);
    }

    fn counts(&self) -> [u64; 3] {
        lock(&self.0).counts()
    }
}

impl control::Delivery for SharedDelivery {
    fn send(&mut self, report: Input) -> Vec<Input> {
        lock(&self.0).send(report)
    }

    fn flush(&mut self) -> Vec<Input> {
        lock(&self.0).flush()
    }
}
