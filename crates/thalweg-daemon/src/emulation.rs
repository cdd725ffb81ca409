//! The emulation that all collectors read from together, and that the controller steers (`[emulate]`).
//!
//! One thread runs the experiment, so much emulated time for each second of the clock, and puts what monitor ports send into
//! a bounded queue for each; what does not fit is counted as lost, as a network card does it. Collectors read these queues
//! as they read any source. Who steers the network does so by [`EmulationCommand`]s, which are carried out between two slots.
//!
//! **Time** is the emulated one, from 0 on. Each batch also says until when it has everything, so that a collector that
//! hears nothing knows that time goes on. A thread that cannot keep the pace falls lag by `MAX_LAG` at most, and
//! then goes on from where it is; what it has lost is counted.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use thalweg_emulator::mirror::SNAP_LENGTH;
use thalweg_experiment::mirror::run::MirroredRun;
use thalweg_experiment::{Experiment, ExperimentError, Plan};
use thalweg_measure::collector::MonitorPort;
use thalweg_network::routing::ForwardingTable;
use thalweg_network::{EndpointId, Node, RouterId};
use thalweg_wire::{Batch, FrameRef, Interface, LinkType, Nanos, Source, SourceCounters, Timestamp};

/// How often the thread goes on: at a pace of 0.01 every 20 us of emulated time.
const STEP_INTERVAL: Duration = Duration::from_millis(2);

/// Batches that may wait for a collector: half a second of its inattention.
const BATCH_QUEUE_CAPACITY: usize = 256;

/// Orders that may wait for the thread.
const COMMAND_QUEUE_CAPACITY: usize = 4_096;

/// How far lag its pace the emulation may fall before the pace gives way.
const MAX_LAG: Duration = Duration::from_millis(200);

/// How long a collector waits for a batch.
const RECEIVE_TIMEOUT: Duration = Duration::from_millis(20);

/// What is emulated.
#[derive(Clone, Debug)]
pub struct EmulationConfig {
    /// The experiment's file.
    pub path: PathBuf,
    /// What it says.
    pub experiment: Experiment,
    /// Emulated seconds in a second.
    pub pace: f64,
    /// Monitor ports, by the name of their switch.
    pub ports: Vec<(Arc<str>, MonitorPort)>,
}

impl PartialEq for EmulationConfig {
    /// Experiments of which nothing can be told apart here may still differ: the file is what is compared.
    fn eq(&self, other: &EmulationConfig) -> bool {
        let EmulationConfig { path, experiment: _, pace, ports } = self;
        (path, pace, ports) == (&other.path, &other.pace, &other.ports)
    }
}

/// What is done to the emulated network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmulationCommand {
    /// A router goes by this table.
    Forward(RouterId, ForwardingTable),
    /// An endpoint sends to another of its destination's addresses.
    Address {
        /// Who sends.
        source: EndpointId,
        /// To whom.
        destination: EndpointId,
        /// To which of its addresses.
        address: u8,
    },
}

/// The daemon's emulation. Cheap to clone: all clones are the same.
#[derive(Clone, Debug)]
pub struct Emulation(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    experiment: Experiment,
    pace: f64,
    queues: BTreeMap<Arc<str>, Queue>,
    commands: Sender<EmulationCommand>,
    /// Taken by the thread.
    pending: Receiver<EmulationCommand>,
    now: AtomicU64,
    lag: AtomicU64,
    is_stopping: AtomicBool,
    is_over: Arc<AtomicBool>,
}

/// From the thread to a collector.
#[derive(Clone, Debug)]
struct Queue {
    sender: Sender<PortBatch>,
    receiver: Receiver<PortBatch>,
    lost: Arc<AtomicU64>,
}

/// What a monitor port has sent up to a time.
#[derive(Debug, Default)]
struct PortBatch {
    bytes: Vec<u8>,
    frames: Vec<FrameRef>,
    until: Timestamp,
}

impl Emulation {
    /// An emulation that has not start.
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
            now: AtomicU64::new(0),
            lag: AtomicU64::new(0),
            is_stopping: AtomicBool::new(false),
            is_over: Arc::default(),
        }))
    }

    /// Emulated time.
    pub fn now(&self) -> Timestamp {
        Timestamp(self.0.now.load(Ordering::Acquire))
    }

    /// How much of the clock's time was lost, since the emulation could not keep its pace.
    pub fn lag(&self) -> Nanos {
        Nanos(self.0.lag.load(Ordering::Relaxed))
    }

    /// What a switch's monitor port sends, if it has one. To be read by one collector at a time.
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
            handed_on: 0,
            lost_before: queue.lost.load(Ordering::Relaxed),
            lost: Arc::clone(&queue.lost),
        })
    }

    /// Has something done before the next slot.
    ///
    /// # Errors
    /// The command, if too many wait.
    pub fn command(&self, command: EmulationCommand) -> Result<(), EmulationCommand> {
        self.0.commands.try_send(command).map_err(TrySendError::into_inner)
    }

    /// Begins.
    ///
    /// # Errors
    /// If the experiment means nothing any more, or the system has no more threads.
    pub fn start(&self) -> Result<JoinHandle<()>, StartError> {
        let plan = Plan::new(&self.0.experiment)?;
        let emulation = self.clone();
        let thread = std::thread::Builder::new().name("emulation".to_owned());
        Ok(thread.spawn(move || emulation.run(plan))?)
    }

    /// Ends it soon.
    pub fn stop(&self) {
        self.0.is_stopping.store(true, Ordering::Relaxed);
    }

    fn run(&self, plan: Plan) {
        let topology = plan.topology.clone();
        let mut network = match MirroredRun::new(plan, &topology) {
            Ok(feeds) => feeds,
            Err(error) => return tracing::error!(%error, "emulation failed"),
        };
        // By router, so that no name is looked up for each batch.
        let queues: BTreeMap<RouterId, Queue> = topology
            .router_ids()
            .filter_map(|router| {
                Some((router, self.0.queues.get(topology.name(Node::Router(router)))?.clone()))
            })
            .collect();
        let mut start = Instant::now();
        while !network.is_over() && !self.0.is_stopping.load(Ordering::Relaxed) {
            for command in self.0.pending.try_iter() {
                execute(command, &mut network);
            }
            let due = Timestamp((start.elapsed().as_secs_f64() * self.0.pace * 1e9) as u64);
            network.run_until(due);
            let until = network.now();
            self.0.now.store(until.0, Ordering::Release);
            network.deliver(|router, batch| queues[&router].put(batch, until));
            let should_be = Duration::from_secs_f64(until.0 as f64 / 1e9 / self.0.pace);
            let lag = start.elapsed().saturating_sub(should_be);
            if lag > MAX_LAG {
                start += lag;
                self.0.lag.fetch_add(lag.as_nanos() as u64, Ordering::Relaxed);
            }
            std::thread::sleep(STEP_INTERVAL);
        }
        tracing::info!(emulated = %Nanos(network.now().0), "emulation ended");
        self.0.is_over.store(true, Ordering::Release);
    }
}

/// Why an emulation does not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The experiment is wrong.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// There is no thread to be had.
    #[error("cannot start the thread of the emulation: {0}")]
    Thread(#[from] std::io::Error),
}

fn execute(command: EmulationCommand, network: &mut MirroredRun<'_>) {
    match command {
        EmulationCommand::Forward(router, table) => network.set_forwarding(router, Some(table)),
        EmulationCommand::Address { source, destination, address } => network.set_address(source, destination, address),
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
    handed_on: u64,
    lost: Arc<AtomicU64>,
    /// What was lost before this was opened.
    lost_before: u64,
}

impl EmulatedPort {
    /// Whether the next batch comes without waiting.
    pub fn is_ready(&self) -> bool {
        !self.receiver.is_empty() || self.is_over.load(Ordering::Acquire)
    }

    /// The time up to which everything has been handed on, as of the last batch.
    pub fn clock(&self) -> impl Fn() -> Timestamp + use<> {
        let until = Arc::clone(&self.until);
        move || Timestamp(until.load(Ordering::Relaxed))
    }
}

impl Source for EmulatedPort {
    type Error = std::convert::Infallible;

    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, Self::Error> {
        // Before looking: what was put in last is there then.
        let is_over = self.is_over.load(Ordering::Acquire);
        match self.receiver.recv_timeout(RECEIVE_TIMEOUT) {
            Ok(batch) => {
                self.until.store(batch.until.0, Ordering::Relaxed);
                self.batch = batch;
            }
            Err(RecvTimeoutError::Timeout) if !is_over => self.batch.frames.clear(),
            Err(_) => return Ok(None),
        }
        self.handed_on += self.batch.frames.len() as u64;
        let PortBatch { bytes, frames, .. } = &self.batch;
        Ok(Some(Batch { bytes, frames, interfaces: &self.interface }))
    }

    /// What the queue had no room for stands in the place of what a kernel drops.
    fn counters(&mut self) -> SourceCounters {
        let kernel_drops = self.lost.load(Ordering::Relaxed) - self.lost_before;
        SourceCounters { frames: self.handed_on, kernel_drops, ..SourceCounters::default() }
    }
}

#[cfg(test)]
mod tests;
