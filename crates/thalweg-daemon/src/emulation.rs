//! The emulated network of all collectors and the controller (`[emulate]`).
//!
//! One thread runs the experiment at a configured pace, and queues the frames of each monitor port. Frames that find the queue full
//! are counted as lost, as by a network card. Collectors read these queues like any source. [`EmulationCommand`]s change the network
//! between two timeslots. The controller learns of links that fail or are repaired after a step of the thread.
//!
//! **Time** is emulated and starts at 0. Each batch contains the time up to which it is complete, so that time advances at a
//! collector without frames. A thread that cannot keep the pace lags by at most `MAX_LAG`. Time lost beyond that is counted.

mod redirections;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use thalweg_control::isolate::{Command, Input};
use thalweg_emulator::mirror::SNAP_LENGTH;
use thalweg_emulator::schemes::list::Scheme;
use thalweg_experiment::mirror::run::MirroredRun;
use thalweg_experiment::{Experiment, ExperimentError, Plan};
use thalweg_linux::clock::monotonic;
use thalweg_measure::collector::MonitorPort;
use thalweg_network::routing::ForwardingTable;
use thalweg_network::{EndpointId, LinkState, Node, RouterId};
use thalweg_wire::{Batch, FlowKey, FrameRef, Interface, LinkType, Nanos, Source, SourceCounters, Timestamp};

use redirections::Redirections;

/// Interval of the thread's steps: 20 us of emulated time at a pace of 0.01.
const STEP_INTERVAL: Duration = Duration::from_millis(2);

/// Capacity of a collector's queue, in batches: half a second.
const BATCH_QUEUE_CAPACITY: usize = 256;

/// Capacity of the command queue.
const COMMAND_QUEUE_CAPACITY: usize = 4_096;

/// Maximum lag of the emulation behind its pace.
const MAX_LAG: Duration = Duration::from_millis(200);

/// Maximum time that a collector waits for a batch.
const RECEIVE_TIMEOUT: Duration = Duration::from_millis(20);

/// The configuration of the emulation.
#[derive(Clone, Debug)]
pub struct EmulationConfig {
    /// Experiment file.
    pub path: PathBuf,
    /// The experiment.
    pub experiment: Experiment,
    /// Its scheme.
    pub scheme: Scheme,
    /// Emulated seconds per second.
    pub pace: f64,
    /// Monitor ports, by the name of the switch.
    pub ports: Vec<(Arc<str>, MonitorPort)>,
}

impl PartialEq for EmulationConfig {
    /// Compares the file, not the experiment, which has no equality.
    fn eq(&self, other: &EmulationConfig) -> bool {
        let EmulationConfig { path, experiment: _, scheme, pace, ports } = self;
        (path, scheme, pace, ports) == (&other.path, &other.scheme, &other.pace, &other.ports)
    }
}

/// A change of the emulated network, or a reading.
#[derive(Clone, Debug)]
pub enum EmulationCommand {
    /// Sets the forwarding table of a router.
    Forward(RouterId, ForwardingTable),
    /// Sets the address by which an endpoint sends to another.
    Address {
        /// The sender.
        source: EndpointId,
        /// The destination.
        destination: EndpointId,
        /// Number of the destination's address.
        address: u8,
    },
    /// Carries out a command of isolation, and sends its answer if it has one.
    Isolate(Command, Sender<Input>),
    /// Reads the counters of these flows and of the queues of mirrored ports, and sends [`Input::Reading`].
    ReadQueues(Vec<FlowKey>, Sender<Input>),
}

/// The daemon's emulation. Clones share it.
#[derive(Clone, Debug)]
pub struct Emulation(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    experiment: Experiment,
    pace: f64,
    queues: BTreeMap<Arc<str>, Queue>,
    commands: Sender<EmulationCommand>,
    /// Received by the thread.
    pending: Receiver<EmulationCommand>,
    /// The latest state of links that was not taken yet.
    links: Mutex<Option<LinkState>>,
    now: AtomicU64,
    /// When emulated time was 0, by the monotonic clock and without the lag; `u64::MAX` before the start.
    began: AtomicU64,
    lag: AtomicU64,
    /// Packets of redirected flows.
    redirected_packets: AtomicU64,
    is_stopping: AtomicBool,
    is_over: Arc<AtomicBool>,
}

/// The queue from the thread to a collector.
#[derive(Clone, Debug)]
struct Queue {
    sender: Sender<PortBatch>,
    receiver: Receiver<PortBatch>,
    lost: Arc<AtomicU64>,
}

/// The frames that a monitor port sent up to a time.
#[derive(Debug, Default)]
struct PortBatch {
    bytes: Vec<u8>,
    frames: Vec<FrameRef>,
    until: Timestamp,
}

impl Emulation {
    /// Creates an emulation without starting it.
    pub fn new(config: &EmulationConfig) -> Emulation {
        let queue = || {
            let (sender, receiver) = bounded(BATCH_QUEUE_CAPACITY);
            Queue { sender, receiver, lost: Arc::default() }
        };
        let (commands, pending) = bounded(COMMAND_QUEUE_CAPACITY);
        Emulation(Arc::new(Shared {
            experiment: config.experiment.clone(),
            pace: config.pace,
            queues: config.ports.iter().map(|(switch, _)| (Arc::clone(switch), queue())).collect(),
            commands,
            pending,
            links: Mutex::default(),
            now: AtomicU64::new(0),
            began: AtomicU64::new(u64::MAX),
            lag: AtomicU64::new(0),
            redirected_packets: AtomicU64::new(0),
            is_stopping: AtomicBool::new(false),
            is_over: Arc::default(),
        }))
    }

    /// Returns the emulated time.
    pub fn now(&self) -> Timestamp {
        Timestamp(self.0.now.load(Ordering::Acquire))
    }

    /// Returns the emulated seconds per second.
    pub fn pace(&self) -> f64 {
        self.0.pace
    }

    /// Returns the emulated time that is due at a time of the monotonic clock. Steps back when the emulation [lags](Self::lag).
    pub fn time_at(&self, monotonic: Timestamp) -> Timestamp {
        let began = Timestamp(self.0.began.load(Ordering::Acquire));
        Timestamp((monotonic.since(began).0 as f64 * self.0.pace) as u64)
    }

    /// Returns the time by which the emulation fell behind its pace.
    pub fn lag(&self) -> Nanos {
        Nanos(self.0.lag.load(Ordering::Relaxed))
    }

    /// Whether the emulation has ended. It carries out no command any more.
    pub fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::Acquire)
    }

    /// Returns the number of packets of redirected flows, of each up to its last reading or release.
    pub fn redirected_packets(&self) -> u64 {
        self.0.redirected_packets.load(Ordering::Relaxed)
    }

    /// Returns the source of a switch's monitor port, if it has one. Only one collector may read it at a time.
    pub fn port(&self, switch: &str) -> Option<EmulatedPort> {
        let queue = self.0.queues.get(switch)?;
        let snap_length = SNAP_LENGTH;
        let interface =
            Interface { name: Some(switch.to_owned()), link_type: LinkType::Ethernet, snap_length };
        Some(EmulatedPort {
            receiver: queue.receiver.clone(),
            batch: PortBatch::default(),
            interface: [interface],
            until: Arc::default(),
            is_over: Arc::clone(&self.0.is_over),
            delivered: 0,
            lost_before: queue.lost.load(Ordering::Relaxed),
            lost: Arc::clone(&queue.lost),
        })
    }

    /// Sends a command, which is carried out before the next timeslot.
    ///
    /// # Errors
    /// Returns the command if the queue is full.
    pub fn send(&self, command: EmulationCommand) -> Result<(), EmulationCommand> {
        self.0.commands.try_send(command).map_err(TrySendError::into_inner)
    }

    /// Returns the state of links if it has changed since the last call, as switches would report it.
    pub fn take_links(&self) -> Option<LinkState> {
        self.0.links.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Starts the emulation.
    ///
    /// # Errors
    /// If the experiment is invalid, or the thread cannot be started.
    pub fn start(&self) -> Result<JoinHandle<()>, StartError> {
        let plan = Plan::new(&self.0.experiment)?;
        let emulation = self.clone();
        let thread = std::thread::Builder::new().name("emulation".to_owned());
        Ok(thread.spawn(move || emulation.run(plan))?)
    }

    /// Requests a stop.
    pub fn stop(&self) {
        self.0.is_stopping.store(true, Ordering::Relaxed);
    }

    /// Ends the emulation before it has started, as if its network could not be built.
    #[cfg(test)]
    pub(crate) fn fail_to_start(&self) {
        self.0.is_over.store(true, Ordering::Release);
    }

    fn run(&self, plan: Plan) {
        let topology = plan.topology.clone();
        let mut network = match MirroredRun::new(plan, &topology) {
            Ok(feeds) => feeds,
            Err(error) => {
                self.0.is_over.store(true, Ordering::Release);
                return tracing::error!(%error, "emulation failed");
            }
        };
        // By router, to avoid a lookup of names for each batch.
        let queues: BTreeMap<RouterId, Queue> = topology
            .router_ids()
            .filter_map(|router| {
                Some((router, self.0.queues.get(topology.name(Node::Router(router)))?.clone()))
            })
            .collect();
        let mut links = network.links().clone();
        let mut redirections = Redirections::new(self.0.pace);
        let mut start = Instant::now();
        self.0.began.store(monotonic().0, Ordering::Release);
        while !network.is_over() && !self.0.is_stopping.load(Ordering::Relaxed) {
            for command in self.0.pending.try_iter() {
                execute(command, &mut network, &mut redirections);
                self.0.redirected_packets.store(redirections.packets(), Ordering::Relaxed);
            }
            let due = Timestamp((start.elapsed().as_secs_f64() * self.0.pace * 1e9) as u64);
            network.run_until(due);
            if *network.links() != links {
                links.clone_from(network.links());
                *self.0.links.lock().unwrap_or_else(PoisonError::into_inner) = Some(links.clone());
            }
            let until = network.now();
            self.0.now.store(until.0, Ordering::Release);
            network.deliver(|router, batch| queues[&router].put(batch, until));
            let should_be = Duration::from_secs_f64(until.0 as f64 / 1e9 / self.0.pace);
            let lag = start.elapsed().saturating_sub(should_be);
            if lag > MAX_LAG {
                start += lag;
                self.0.began.fetch_add(lag.as_nanos() as u64, Ordering::AcqRel);
                self.0.lag.fetch_add(lag.as_nanos() as u64, Ordering::Relaxed);
            }
            std::thread::sleep(STEP_INTERVAL);
        }
        tracing::info!(emulated = %Nanos(network.now().0), "emulation ended");
        self.0.is_over.store(true, Ordering::Release);
    }
}

/// Why an emulation cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The experiment is invalid.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// The thread cannot be started.
    #[error("cannot start the emulation thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// Carries out a command. Nobody waits for an answer that cannot be sent.
fn execute(command: EmulationCommand, network: &mut MirroredRun<'_>, redirections: &mut Redirections) {
    match command {
        EmulationCommand::Forward(router, table) => network.set_forwarding(router, Some(table)),
        EmulationCommand::Address { source, destination, address } => {
            network.set_address(source, destination, address)
        }
        EmulationCommand::Isolate(command, answers) => {
            if let Some(answer) = redirections.execute(command, network, monotonic()) {
                let _ = answers.send(answer);
            }
        }
        EmulationCommand::ReadQueues(flows, answers) => {
            let _ = answers.send(Input::Reading(redirections.read(&flows, network, monotonic())));
        }
    }
}

impl Queue {
    fn put(&self, batch: Batch<'_>, until: Timestamp) {
        let batch = PortBatch { bytes: batch.bytes.to_vec(), frames: batch.frames.to_vec(), until };
        if let Err(TrySendError::Full(batch)) = self.sender.try_send(batch) {
            self.lost.fetch_add(batch.frames.len() as u64, Ordering::Relaxed);
        }
    }
}

/// A monitor port of the daemon's emulation as a packet source.
#[derive(Debug)]
pub struct EmulatedPort {
    receiver: Receiver<PortBatch>,
    batch: PortBatch,
    interface: [Interface; 1],
    until: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    delivered: u64,
    lost: Arc<AtomicU64>,
    /// Frames lost before this source was opened.
    lost_before: u64,
}

impl EmulatedPort {
    /// Whether the next batch can be read without blocking.
    pub fn is_ready(&self) -> bool {
        !self.receiver.is_empty() || self.is_over.load(Ordering::Acquire)
    }

    /// Returns a function for the time up to which all frames have been read.
    pub fn clock(&self) -> impl Fn() -> Timestamp + use<> {
        let until = Arc::clone(&self.until);
        move || Timestamp(until.load(Ordering::Relaxed))
    }
}

impl Source for EmulatedPort {
    type Error = std::convert::Infallible;

    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, Self::Error> {
        // Read before the queue, so that the last batches are not missed.
        let is_over = self.is_over.load(Ordering::Acquire);
        match self.receiver.recv_timeout(RECEIVE_TIMEOUT) {
            Ok(batch) => {
                self.until.store(batch.until.0, Ordering::Relaxed);
                self.batch = batch;
            }
            Err(RecvTimeoutError::Timeout) if !is_over => self.batch.frames.clear(),
            Err(_) => return Ok(None),
        }
        self.delivered += self.batch.frames.len() as u64;
        let PortBatch { bytes, frames, .. } = &self.batch;
        Ok(Some(Batch { bytes, frames, interfaces: &self.interface }))
    }

    /// Frames that found the queue full are counted as kernel drops.
    fn counters(&mut self) -> SourceCounters {
        let kernel_drops = self.lost.load(Ordering::Relaxed) - self.lost_before;
        SourceCounters { frames: self.delivered, kernel_drops, ..SourceCounters::default() }
    }
}

#[cfg(test)]
mod tests;
