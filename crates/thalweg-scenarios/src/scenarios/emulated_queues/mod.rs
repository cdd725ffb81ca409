//! `emulated-queues`: throughput and queue of five senders to one receiver, with real TCP over an emulated network and with emulated
//! hosts in the same network (Flexplane, NSDI 2017, section 5.1 and table 2).
//!
//! ```text
//!   h1 ┐
//!   h2 │
//!   h3 ├─ iperf3 ── emulated switch, measured queue ── h0
//!   h4 │
//!   h5 ┘
//! ```
//!
//! Each run has a lab of its own, so the arbiter's verdict on late timeslots is that of the run. Afterwards emulated hosts send the same in virtual
//! time; their stacks delay packets as long as the endpoints did, so round trips are equal.
//!
//! | file | contents |
//! |---|---|
//! | [`experiment`] | the networks |
//! | [`queue`] | lengths of a queue |
//! | [`bounds`] | the claims, with bounds that were fixed before the first measurement |

pub mod bounds;
pub mod experiment;
pub mod queue;

use std::path::Path;
use std::thread;
use std::time::Duration;

use serde::Serialize;
use thalweg_lab::Headroom;
use thalweg_lab::headroom::HeadroomProbe;
use thalweg_linux::clock::realtime;
use thalweg_wire::{BitRate, Nanos, Timestamp};

use super::Setting;
use crate::emulated::{ArbiterRun, EmulatedSession, EndpointRun, Planner};
use crate::error::ScenarioError;
use crate::session::HeadroomSum;
use crate::traffic::{self, Server, Transfer};
use experiment::{SENDERS, Scheme};
pub use queue::QueueLengths;

/// Default duration of the measurement of each run, after the warm-up.
pub const DEFAULT_SECONDS: u64 = 10;

/// Default number of trials.
pub const DEFAULT_TRIALS: u32 = 3;

/// Default rate of the emulated links.
pub const DEFAULT_RATE: BitRate = BitRate(600_000_000);

/// The longest warm-up: CUBIC takes some seconds to fill a queue of 25 ms again after a loss.
const LONGEST_WARM_UP: Duration = Duration::from_secs(10);

/// Payload of a full segment with time stamps, and what it takes on an emulated link: IP packet, Ethernet header and checksum, preamble and gap.
const PAYLOAD: f64 = 1_448.0;
const ON_THE_LINK: f64 = 1_538.0;

/// How long requests and answers wait for others. At the paper's rates, as many come in a few microseconds.
pub const BATCH_DELAY: &str = "500us";

/// How long iperf3 may take to listen.
const LISTENING: Duration = Duration::from_millis(300);

/// Options of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Runs of each scheme.
    pub trials: u32,
    /// Duration of the measurement of a run.
    pub duration: Duration,
    /// Seed of the first trial.
    pub seed: u64,
}

/// What emulated hosts measured.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRun {
    /// Payload received, in bits per second.
    pub goodput_bps: f64,
    /// The queue after the warm-up, each millisecond, in packets.
    pub queue: Vec<u32>,
}

/// Runs an experiment with emulated hosts in virtual time, with a folder for its files.
pub type HostRunner<'a> = dyn Fn(&str, &Path) -> Result<HostRun, String> + 'a;

/// Throughput and queue, of real or emulated hosts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Payload received, in bits per second.
    pub goodput_bps: f64,
    /// The queue in packets.
    pub queue: QueueLengths,
}

/// A run of a scheme.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The scheme.
    pub scheme: Scheme,
    /// The trial, from 1.
    pub trial: u32,
    /// With real TCP.
    pub real: Measured,
    /// With emulated hosts.
    pub hosts: Measured,
    /// All samples of both queues.
    #[serde(skip)]
    pub samples: [Vec<u32>; 2],
    /// What the endpoints added to the emulated delay of a packet: the mean of both directions, of medians.
    pub overhead_ns: u64,
    /// Bytes of the emulation protocol in both directions, as a share of the bytes of the hosts' packets; headers from Ethernet on count.
    pub protocol_share: f64,
    /// Packets that endpoints dropped without a decision of the arbiter.
    pub undecided_packets: u64,
    /// The arbiter's report.
    pub arbiter: ArbiterRun,
}

/// The results of all trials.
#[derive(Clone, Debug)]
pub struct Results {
    /// The options.
    pub options: Options,
    /// Rate of the emulated links.
    pub rate: BitRate,
    /// All runs, in their order.
    pub runs: Vec<Run>,
    /// Headroom over all measurements.
    pub headroom: Headroom,
}

/// All runs of a scheme.
#[derive(Clone, Debug, Serialize)]
pub struct OfScheme {
    /// The scheme.
    pub scheme: Scheme,
    /// With real TCP: mean goodput, and the queue of all runs.
    pub real: Measured,
    /// With emulated hosts.
    pub hosts: Measured,
    /// What the endpoints added to the emulated delay of a packet, in the mean.
    pub overhead_ns: u64,
}

/// What the emulated links leave for the payload of TCP, in bits per second.
pub fn link_payload(rate: BitRate) -> f64 {
    rate.0 as f64 * PAYLOAD / ON_THE_LINK
}

/// Runs the scenario.
///
/// # Errors
/// If iperf3 is missing or fails, or a lab cannot be created.
pub fn run(
    options: &Options,
    planner: &Planner<'_>,
    hosts: &HostRunner<'_>,
    setting: &mut Setting<'_>,
) -> Result<Results, ScenarioError> {
    traffic::check()?;
    let mut headroom = HeadroomSum::default();
    let mut runs = Vec::new();
    for trial in 1..=options.trials {
        for scheme in Scheme::ALL {
            let network = experiment::network(scheme, setting.rate, options.warm_up(), options.duration);
            let folder = tempfile::tempdir().map_err(|error| {
                ScenarioError::Monitoring(format!("cannot create a temporary folder: {error}"))
            })?;
            let real = measure(&network, options, folder.path(), planner, &mut headroom, setting)?;
            let seed = options.seed + u64::from(trial) - 1;
            let text = experiment::with_hosts(&network, Nanos(real.overhead_ns), seed);
            let emulated = hosts(&text, folder.path()).map_err(ScenarioError::Monitoring)?;
            (setting.on_progress)(&format!(
                "trial {trial} of {}, {}: {:.1} Mbit/s, median queue {}; emulated hosts: {:.1} Mbit/s, {}; {:.4} % of the slots late",
                options.trials,
                scheme.name(),
                real.goodput_bps / 1e6,
                QueueLengths::of(&real.queue).median,
                emulated.goodput_bps / 1e6,
                QueueLengths::of(&emulated.queue).median,
                100.0 * real.arbiter.late_share,
            ));
            runs.push(Run::new(scheme, trial, real, emulated));
        }
    }
    Ok(Results { options: *options, rate: setting.rate, runs, headroom: headroom.total() })
}

/// What a run with real TCP measured.
struct RealRun {
    goodput_bps: f64,
    queue: Vec<u32>,
    overhead_ns: u64,
    protocol_share: f64,
    undecided_packets: u64,
    arbiter: ArbiterRun,
}

/// Measures real TCP in a new lab.
fn measure(
    network: &str,
    options: &Options,
    folder: &Path,
    planner: &Planner<'_>,
    headroom: &mut HeadroomSum,
    setting: &Setting<'_>,
) -> Result<RealRun, ScenarioError> {
    let session = EmulatedSession::up_with(
        network,
        planner,
        &setting.prefix,
        folder,
        &setting.stop,
        &["--batch-delay", BATCH_DELAY],
    )?;
    let servers = (0..SENDERS).map(|number| Server::start_on(&session.host(0), number));
    let servers = servers.collect::<Result<Vec<_>, _>>()?;
    thread::sleep(LISTENING);
    let start = |number: u16| {
        let ends = session.ends(number + 1, 0);
        Transfer::start_steady(&ends, number, options.warm_up(), options.duration)
    };
    let transfers = (0..SENDERS).map(start).collect::<Result<Vec<_>, _>>()?;
    session.sleep(options.warm_up())?;
    let (from, probe) = (realtime(), HeadroomProbe::start()?);
    session.sleep(options.duration)?;
    let until = realtime();
    headroom.add(&probe)?;
    let mut goodput_bps = 0.0;
    for transfer in transfers {
        goodput_bps += transfer.finish(|| session.is_stopped())?.rate;
    }
    drop(servers);
    let protocol_bytes = session.loopback_bytes()?;
    let arbiter = session.finish()?;
    let endpoint = |number: u16| EndpointRun::read(folder, &format!("h{number}"));
    let endpoints = (0..=SENDERS).map(endpoint).collect::<Result<Vec<_>, _>>()?;
    let (receiver, senders) = (&endpoints[0], &endpoints[1..]);
    let of_senders = senders.iter().map(|it| it.overhead_ns).sum::<u64>() / u64::from(SENDERS);
    let bytes: u64 = endpoints.iter().map(|it| it.intercepted_bytes).sum();
    Ok(RealRun {
        goodput_bps,
        queue: queue::read(folder, Timestamp(arbiter.started_at_ns), from, until)?,
        overhead_ns: (of_senders + receiver.overhead_ns) / 2,
        protocol_share: protocol_bytes as f64 / bytes.max(1) as f64,
        undecided_packets: endpoints.iter().map(|it| it.undecided_packets).sum(),
        arbiter,
    })
}

impl Run {
    fn new(scheme: Scheme, trial: u32, real: RealRun, hosts: HostRun) -> Run {
        Run {
            scheme,
            trial,
            real: Measured { goodput_bps: real.goodput_bps, queue: QueueLengths::of(&real.queue) },
            hosts: Measured { goodput_bps: hosts.goodput_bps, queue: QueueLengths::of(&hosts.queue) },
            samples: [real.queue, hosts.queue],
            overhead_ns: real.overhead_ns,
            protocol_share: real.protocol_share,
            undecided_packets: real.undecided_packets,
            arbiter: real.arbiter,
        }
    }
}

impl Options {
    /// The time before the measurement of a run: as long as the measurement, within a limit.
    pub fn warm_up(&self) -> Duration {
        self.duration.min(LONGEST_WARM_UP)
    }
}

impl Results {
    /// Returns all runs of each scheme together.
    pub fn schemes(&self) -> Vec<OfScheme> {
        Scheme::ALL.into_iter().filter_map(|scheme| self.of(scheme)).collect()
    }

    /// `None` without runs.
    fn of(&self, scheme: Scheme) -> Option<OfScheme> {
        let runs: Vec<&Run> = self.runs.iter().filter(|run| run.scheme == scheme).collect();
        let all = |which: usize, goodput: fn(&Run) -> f64| {
            let samples: Vec<u32> = runs.iter().flat_map(|run| &run.samples[which]).copied().collect();
            let goodput_bps = runs.iter().map(|run| goodput(run)).sum::<f64>() / runs.len() as f64;
            Measured { goodput_bps, queue: QueueLengths::of(&samples) }
        };
        (!runs.is_empty()).then(|| OfScheme {
            scheme,
            real: all(0, |run| run.real.goodput_bps),
            hosts: all(1, |run| run.hosts.goodput_bps),
            overhead_ns: runs.iter().map(|run| run.overhead_ns).sum::<u64>() / runs.len() as u64,
        })
    }
}
