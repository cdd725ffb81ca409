//! The daemon at work on a lab: its collectors at the monitor ports, its controller, its means of steering, in the scenario's own
//! process. It is started with a [configuration](super::configuration) that a user could write; only faults, and the tables of
//! the eBPF switches, are handed in as objects.
//!
//! What happens is put together from what the daemon tells anybody: its events, its counters and the last frames that its
//! collectors keep. Reading these is nobody's hurry, and does not disturb what is measured.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use thalweg_control::Pair;
use thalweg_control::control_loop::{Input, RouteCounters};
use thalweg_control::controller::ControllerCounters;
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

use super::configuration::{Files, Steering};
use super::delivery::{Delivery, FaultyDelivery};
use super::error::ScenarioError;
use super::switches::Switches;
use super::trace::{Moved, Told, Trace};

/// How often what the daemon tells is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How long the daemon may take to begin, routes of switches of Open vSwitch included.
const BEGIN_PATIENCE: Duration = Duration::from_secs(20);

/// How long a collector may take to answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);

/// The daemon at work; it ends when this is dropped.
pub(super) struct ClosedLoop {
    service: Option<Service>,
    control: Control,
    faulty: SharedDelivery,
    tracer: Arc<Mutex<Tracer>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    folder: PathBuf,
}

/// What a loop has done, all in all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Of the controller.
    pub(super) controller: ControllerCounters,
    /// Of the routes.
    pub(super) routes: RouteCounters,
    /// Of the monitor ports.
    pub(super) sources: SourceCounters,
    /// Events and frames that the daemon had overwritten before they were looked at.
    pub(super) missed: u64,
    /// How often hosts were told again of what they would forget.
    pub(super) refreshed: u64,
    /// Packets that were seen at switches which no route leads them by.
    pub(super) elsewhere: u64,
    /// What collectors have found, how much of that was lost on the way to the controller, and how much arrived in
    /// another order.
    pub(super) delivered: [u64; 3],
}

impl ClosedLoop {
    /// Watches and steers a lab whose switches forward as `state` says.
    ///
    /// # Errors
    /// If the daemon cannot begin.
    pub(super) fn start(
        lab: &Lab,
        state: &Arc<NetworkState>,
        steering: &Steering,
    ) -> Result<ClosedLoop, ScenarioError> {
        ClosedLoop::run(lab, state, steering, Injected::default())
    }

    /// As [`start`](Self::start), on switches of eBPF; and keeps forwarding whole: routes around links that are down, and puts right
    /// what switches have forgotten, or somebody else has left in them.
    ///
    /// # Errors
    /// As of [`start`](Self::start).
    pub(super) fn start_reconciling(
        lab: &Lab,
        state: &Arc<NetworkState>,
        steering: &Steering,
    ) -> Result<ClosedLoop, ScenarioError> {
        let tables = Switches::of(&lab.plan().prefix)?;
        ClosedLoop::run(lab, state, steering, Injected { tables: Some(Box::new(tables)), delivery: None })
    }

    fn run(
        lab: &Lab,
        state: &Arc<NetworkState>,
        steering: &Steering,
        injected: Injected,
    ) -> Result<ClosedLoop, ScenarioError> {
        let folder =
            std::env::temp_dir().join(format!("thalweg-{}{}", lab.plan().prefix, std::process::id()));
        let config = write_configuration(&folder, lab, state, steering);
        let config = config.inspect_err(|_| remove(&folder))?;
        let faulty = SharedDelivery::default();
        let injected = Injected { delivery: Some(Box::new(faulty.clone())), ..injected };
        let service = PreparedService::open(config, injected).and_then(|opened| opened.start(None));
        let service = service.inspect_err(|_| remove(&folder)).map_err(|error| failed(&error))?;
        let control = service.control().cloned().expect("the configuration has a controller");
        let topology = Arc::clone(state.topology());
        let tracer = Arc::new(Mutex::new(Tracer::new(&service, &control, topology)));
        let is_over = Arc::new(AtomicBool::new(false));
        let look = {
            let (tracer, is_over) = (Arc::clone(&tracer), Arc::clone(&is_over));
            move || {
                while !is_over.load(Ordering::Relaxed) {
                    thread::sleep(LOOK);
                    lock(&tracer).look();
                }
            }
        };
        let thread = thread::Builder::new().name("trace".to_owned()).spawn(look);
        let thread = Some(thread.map_err(|error| ScenarioError::Watching(error.to_string()))?);
        let service = Some(service);
        let running = ClosedLoop { service, control, faulty, tracer, is_over, thread, folder };
        running.await_begin()?;
        Ok(running)
    }

    /// Waits until all collectors read, and the routes are there.
    fn await_begin(&self) -> Result<(), ScenarioError> {
        let until = Instant::now() + BEGIN_PATIENCE;
        loop {
            let collectors = self.collectors();
            let running = |collector: &CollectorHandle| collector.state() == CollectorState::Running;
            if collectors.iter().all(running) && self.control.state().report().has_routes {
                return Ok(());
            }
            for collector in &collectors {
                if let CollectorState::Failed { error, .. } = collector.state() {
                    return Err(ScenarioError::Watching(format!("collector {}: {error}", collector.name())));
                }
            }
            if Instant::now() >= until {
                return Err(ScenarioError::Switches("they did not take their routes in time".to_owned()));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// What has happened since this was last asked.
    pub(super) fn take_trace(&self) -> Trace {
        let mut tracer = lock(&self.tracer);
        tracer.look();
        tracer.take()
    }

    /// Sends pairs home, to the base addresses of their destinations.
    ///
    /// # Errors
    /// If the controller knows no such pair.
    pub(super) fn send_home(&self, pairs: &[Pair]) -> Result<(), ScenarioError> {
        for &pair in pairs {
            self.pin(pair, 0)?;
            let [source, destination] = self.names(pair);
            let state = self.control.state();
            state.unpin(&source, &destination).map_err(|error| ScenarioError::Daemon(error.to_string()))?;
        }
        Ok(())
    }

    /// Sends a pair to an address of its destination, and leaves it there.
    ///
    /// # Errors
    /// If the controller knows no such pair, or the address does not lead there.
    pub(super) fn pin(&self, pair: Pair, address: u8) -> Result<(), ScenarioError> {
        let [source, destination] = self.names(pair);
        let pinned = self.control.state().pin(&source, &destination, address);
        pinned.map_err(|error| ScenarioError::Daemon(error.to_string()))
    }

    fn names(&self, pair: Pair) -> [String; 2] {
        let tracer = lock(&self.tracer);
        [pair.source, pair.destination].map(|host| tracer.topology.name(Node::Endpoint(host)).to_owned())
    }

    /// Has what collectors find delivered otherwise, by chance with this seed.
    pub(super) fn deliver(&self, delivery: Delivery, seed: u64) {
        self.faulty.set(delivery, seed);
    }

    /// What it has done so far.
    pub(super) fn tally(&self) -> Tally {
        let report = self.control.state().report();
        let mut tally = Tally {
            controller: report.counters,
            routes: report.routes,
            missed: lock(&self.tracer).missed,
            refreshed: report.refreshed,
            delivered: self.faulty.counts(),
            ..Tally::default()
        };
        for collector in self.collectors() {
            // One that does not answer has counted nothing that anybody could know.
            let Ok(asked) = collector.counters(ANSWER_PATIENCE) else { continue };
            tally.sources.frames += asked.value.source.frames;
            tally.sources.kernel_drops += asked.value.source.kernel_drops;
            tally.elsewhere += asked.value.collector.rates.cases[Case::Elsewhere.index()];
        }
        tally
    }

    fn collectors(&self) -> Vec<CollectorHandle> {
        self.service.as_ref().map(|service| service.daemon().collectors()).unwrap_or_default()
    }

    /// Ends it, and leaves everything as it is. It can do nothing more.
    pub(super) fn end(&mut self) -> Tally {
        let tally = self.tally();
        self.stop();
        tally
    }

    fn stop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so itself.
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

/// The daemon's file and the network's, as the daemon reads them.
fn write_configuration(
    folder: &Path,
    lab: &Lab,
    state: &NetworkState,
    steering: &Steering,
) -> Result<Config, ScenarioError> {
    let written = Files::of_state(lab.plan(), state, steering).write(folder);
    let file = written.map_err(|error| ScenarioError::Daemon(format!("{}: {error}", folder.display())))?;
    Config::load(&file).map_err(|error| ScenarioError::Daemon(error.to_string()))
}

/// What cannot be removed is in the system's folder of what is temporary.
fn remove(folder: &Path) {
    let _ = std::fs::remove_dir_all(folder);
}

fn failed(error: &dyn std::fmt::Display) -> ScenarioError {
    ScenarioError::Daemon(format!("{error:#}"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts a trace together from what the daemon tells.
struct Tracer {
    topology: Arc<Topology>,
    hub: Arc<Hub>,
    subscriber: Subscriber,
    control: Control,
    rings: Vec<Ring>,
    /// Pairs that were found astray before.
    astray: u64,
    /// Events and frames that were overwritten before they were looked at.
    missed: u64,
    trace: Trace,
}

/// The frames that a collector keeps.
struct Ring {
    router: RouterId,
    collector: CollectorHandle,
    /// Frames that have been looked at, or were overwritten before.
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
            astray: 0,
            missed: 0,
            trace: Trace::default(),
            topology,
        }
    }

    /// Takes up what is new.
    fn look(&mut self) {
        while let Some(delivery) = self.subscriber.next_delivery(&self.hub) {
            match delivery {
                hub::Delivery::Event(published) => self.event(&published.event),
                hub::Delivery::Lost { count, .. } => self.missed += count,
            }
        }
        for ring in &mut self.rings {
            let packets = ring.new_packets(&mut self.missed);
            self.trace.take(&self.topology, ring.router, &packets);
        }
    }

    fn event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::AddressChange(change) => {
                if let Some((pair, address)) = Pair::of(&self.topology, &change.to) {
                    self.trace.moved(Moved { pair, address, time: change.time });
                }
            }
            EventKind::Action(ActionReport { action, times: Some(times), .. }, _) => {
                self.trace.told.push(Told {
                    pair: action.pair,
                    address: action.address,
                    event: action.issued,
                    decided: times.handled,
                    sent: times.started,
                });
            }
            _ => {}
        }
    }

    fn take(&mut self) -> Trace {
        let control::ControlReport { counters, broken_paths: mut astray, .. } = self.control.state().report();
        let new = (counters.astray - self.astray) as usize;
        self.astray = counters.astray;
        self.trace.astray = astray.split_off(astray.len().saturating_sub(new));
        self.trace.told.sort_by_key(|told| told.sent);
        std::mem::take(&mut self.trace)
    }
}

impl Ring {
    /// Packets of the frames that are new; those that were overwritten before are added to `missed`.
    fn new_packets(&mut self, missed: &mut u64) -> Vec<Packet> {
        let Some(samples) = self.collector.samples() else { return Vec::new() };
        let (copied, seen) = samples.copy_after(self.seen);
        *missed += seen - self.seen - copied.len() as u64;
        self.seen = seen;
        let mut packets = Vec::with_capacity(copied.len());
        let parser = Parser { peel_tunnels: false };
        for frame in copied.iter() {
            // What is no packet is no transfer's.
            let _ = parser.parse_onto(&frame, &mut packets);
        }
        packets
    }
}

/// What delivers the reports of collectors to the controller, and can be told otherwise meanwhile.
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
