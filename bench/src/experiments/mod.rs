//! Reproductions of papers on synthetic traces and in emulated networks: figures of the heavy-hitter dissertation,
//! its simulation study of thresholds, claims of NitroSketch, tables and figures of Flexplane and Planck.
//!
//! Each experiment has a folder under `experiments/`: `README.md` states the claim of the source, and the command
//! writes `RESULT.md`, `table.csv`, `table.json` and `plot.svg` next to it.

mod cftes;
mod flexplane;
mod hash_buckets;
mod length_filter;
mod nitro;
mod planck;
mod planck_te;
mod reported;

use std::path::{Path, PathBuf};

use self::flexplane::Study;
use crate::results::{Page, Table, save};

/// Options of an experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct ExperimentOptions {
    /// Experiment
    #[arg(value_enum)]
    pub name: Experiment,
    /// Length of the trace in packets [default: 38,000,000; nitro-*: 10,000,000; not for flexplane-*, planck-* and cftes-*]
    #[arg(long)]
    pub packets: Option<u64>,
    /// Emulated seconds per run of flexplane-*, planck-* and cftes-* [default: as in the experiment]
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Number of seeds or runs per value [default: as many as take a minute or two]
    #[arg(long)]
    pub seeds: Option<u64>,
    /// Run a small size of cftes-*, in seconds instead of an hour: 2 seeds of 5 s unless set
    #[arg(long)]
    pub quick: bool,
    /// Build folder of the ns-3 programs, for flexplane-cross-check
    #[arg(long, default_value = "target/bench-peers/ns3")]
    pub build: PathBuf,
    /// Output folder [default: the experiment's folder under `experiments/`]
    #[arg(long)]
    pub output: Option<PathBuf>,
}

/// The experiments, named after their folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Experiment {
    /// Dissertation, figure 3.3: flow entries per hash bucket
    CheetahHashBuckets,
    /// Dissertation, figure 3.4: packets and flows dropped by the length filter
    CheetahLengthFilter,
    /// Dissertation, figure 3.6a: cheetahs reported with filter and sampling
    CheetahReported,
    /// NitroSketch: updates per second by p
    NitroThroughput,
    /// NitroSketch: error of every task by memory
    NitroMemory,
    /// NitroSketch: error by packets seen, and validity of bounds
    NitroConvergence,
    /// NitroSketch: robustness against skew and floods
    NitroSkew,
    /// NitroSketch: comparison with packet sampling
    NitroPacketSampling,
    /// Flexplane, table 2: throughput and queues of DropTail, RED and DCTCP
    FlexplaneQueues,
    /// Flexplane, figures 4 and 7: completion times of a web search workload
    FlexplaneCompletion,
    /// Flexplane, figure 6: trade-off between short and long flows
    FlexplaneTradeOff,
    /// Flexplane, section 5.2: HULL's marking threshold
    FlexplaneHullThreshold,
    /// Flexplane, table 3: lines of code per scheme
    FlexplaneLines,
    /// Cross-check of the emulator with ns-3
    FlexplaneCrossCheck,
    /// Planck, figures 5 to 7: bursts of samples
    PlanckBursts,
    /// Planck, figures 8 and 9: latency of samples
    PlanckLatency,
    /// Planck, figure 10: a flow that starts
    PlanckSlowStart,
    /// Planck, figure 11: error by oversubscription
    PlanckError,
    /// Planck, figure 12 and table 1: from a packet to an estimate
    PlanckTimeline,
    /// Planck, figure 14: traffic engineering by workload
    PlanckTeWorkloads,
    /// Planck, figure 17: traffic engineering by flow size
    PlanckTeSizes,
    /// Planck, figure 18: traffic engineering flow by flow
    PlanckTeFlows,
    /// Traffic engineering with more hosts, uneven links, lost events, faster and slower control
    PlanckTeStress,
    /// Traffic engineering under faults
    PlanckTeFaults,
    /// Dissertation, figure 4.3: burstiness of background traffic
    CftesBurstiness,
    /// Dissertation, figure 4.5: loss of background traffic by the rate of a cheetah flow
    CftesLossByRate,
    /// Dissertation, figure 4.6: loss of background traffic by its burstiness
    CftesLossByLambda,
    /// Dissertation, figure 4.7: throughput of a cheetah flow in a scavenger queue
    CftesThroughput,
    /// Dissertation, table 3.3 and figures 3.9 to 3.12: loss by TCP buffer, rate and round trip
    CftesSwitchBuffer,
    /// Beyond the dissertation: 14 days with a threshold that follows the traffic
    CftesClosedLoop,
}

/// The results of an experiment.
struct Outcome {
    page: Page,
    table: Table,
}

impl Experiment {
    /// Returns its folder under `experiments/`.
    pub const fn folder(self) -> &'static str {
        match self {
            Experiment::CheetahHashBuckets => "cheetah-hash-buckets",
            Experiment::CheetahLengthFilter => "cheetah-length-filter",
            Experiment::CheetahReported => "cheetah-reported",
            Experiment::NitroThroughput => "nitro-throughput",
            Experiment::NitroMemory => "nitro-memory",
            Experiment::NitroConvergence => "nitro-convergence",
            Experiment::NitroSkew => "nitro-skew",
            Experiment::NitroPacketSampling => "nitro-packet-sampling",
            Experiment::FlexplaneQueues => "flexplane-queues",
            Experiment::FlexplaneCompletion => "flexplane-completion",
            Experiment::FlexplaneTradeOff => "flexplane-trade-off",
            Experiment::FlexplaneHullThreshold => "flexplane-hull-threshold",
            Experiment::FlexplaneLines => "flexplane-lines",
            Experiment::FlexplaneCrossCheck => "flexplane-cross-check",
            Experiment::PlanckBursts => "planck-bursts",
            Experiment::PlanckLatency => "planck-latency",
            Experiment::PlanckSlowStart => "planck-slow-start",
            Experiment::PlanckError => "planck-error",
            Experiment::PlanckTimeline => "planck-timeline",
            Experiment::PlanckTeWorkloads => "planck-te-workloads",
            Experiment::PlanckTeSizes => "planck-te-sizes",
            Experiment::PlanckTeFlows => "planck-te-flows",
            Experiment::PlanckTeStress => "planck-te-stress",
            Experiment::PlanckTeFaults => "planck-te-faults",
            Experiment::CftesBurstiness => "cftes-burstiness",
            Experiment::CftesLossByRate => "cftes-loss-by-rate",
            Experiment::CftesLossByLambda => "cftes-loss-by-lambda",
            Experiment::CftesThroughput => "cftes-throughput",
            Experiment::CftesSwitchBuffer => "cftes-switch-buffer",
            Experiment::CftesClosedLoop => "cftes-closed-loop",
        }
    }

    /// Returns the default numbers of packets (0 without a trace) and seeds.
    const fn defaults(self) -> (u64, u64) {
        match self {
            Experiment::CheetahHashBuckets
            | Experiment::CheetahLengthFilter
            | Experiment::CheetahReported => (38_000_000, 10),
            Experiment::NitroThroughput | Experiment::NitroMemory => (10_000_000, 3),
            Experiment::NitroConvergence => (10_000_000, 20),
            Experiment::NitroSkew => (10_000_000, 10),
            Experiment::NitroPacketSampling => (10_000_000, 5),
            Experiment::FlexplaneCompletion => (0, 4),
            Experiment::FlexplaneQueues | Experiment::FlexplaneHullThreshold => (0, 3),
            Experiment::FlexplaneTradeOff => (0, 6),
            Experiment::FlexplaneCrossCheck => (0, 5),
            Experiment::PlanckBursts | Experiment::PlanckError | Experiment::PlanckTimeline => (0, 5),
            Experiment::PlanckTeWorkloads | Experiment::PlanckTeFlows => (0, 5),
            Experiment::PlanckTeSizes | Experiment::PlanckTeStress | Experiment::PlanckTeFaults => (0, 3),
            Experiment::CftesBurstiness
            | Experiment::CftesLossByRate
            | Experiment::CftesLossByLambda
            | Experiment::CftesThroughput => (0, 60),
            Experiment::CftesClosedLoop => (0, 30),
            Experiment::CftesSwitchBuffer => (0, 20),
            Experiment::PlanckLatency => (0, 2),
            Experiment::PlanckSlowStart => (0, 1),
            Experiment::FlexplaneLines => (0, 1),
        }
    }
}

/// Runs an experiment and writes its results.
///
/// # Errors
/// If the trace cannot be generated or the results cannot be written.
pub fn run(options: &ExperimentOptions) -> anyhow::Result<()> {
    let ExperimentOptions { name, packets, quick, .. } = *options;
    let seeds = options.seeds.or(quick.then_some(2));
    let seconds = options.seconds.or(quick.then_some(5.0));
    let (packets, seeds) = (packets.unwrap_or(name.defaults().0), seeds.unwrap_or(name.defaults().1).max(1));
    let output = options.output.clone().unwrap_or_else(|| Path::new("experiments").join(name.folder()));
    let plot = output.join("plot.svg");
    let command = match (packets, seconds) {
        (0, None) => format!("thalweg-bench experiment {} --seeds {seeds}", name.folder()),
        (0, Some(seconds)) => {
            format!("thalweg-bench experiment {} --seconds {seconds} --seeds {seeds}", name.folder())
        }
        _ => format!("thalweg-bench experiment {} --packets {packets} --seeds {seeds}", name.folder()),
    };
    let study = Study {
        folder: &Path::new("experiments").join(name.folder()),
        seeds,
        seconds,
        build: &options.build,
        command: &command,
        plot: &plot,
    };
    let outcome = match name {
        Experiment::CheetahHashBuckets => hash_buckets::run(packets, &command, &plot),
        Experiment::CheetahLengthFilter => length_filter::run(packets, seeds, &command, &plot),
        Experiment::CheetahReported => reported::run(packets, seeds, &command, &plot),
        Experiment::NitroThroughput => nitro::throughput::run(packets, seeds, &command, &plot),
        Experiment::NitroMemory => nitro::memory::run(packets, seeds, &command, &plot),
        Experiment::NitroConvergence => nitro::convergence::run(packets, seeds, &command, &plot),
        Experiment::NitroSkew => nitro::skew::run(packets, seeds, &command, &plot),
        Experiment::NitroPacketSampling => nitro::packet_sampling::run(packets, seeds, &command, &plot),
        Experiment::FlexplaneQueues => flexplane::queues::run(&study),
        Experiment::FlexplaneCompletion => flexplane::completion::run(&study),
        Experiment::FlexplaneTradeOff => flexplane::trade_off::run(&study),
        Experiment::FlexplaneHullThreshold => flexplane::hull_threshold::run(&study),
        Experiment::FlexplaneLines => flexplane::schemes_lines::run(&study),
        Experiment::FlexplaneCrossCheck => flexplane::cross_check::run(&study),
        Experiment::PlanckBursts => planck::bursts::run(&study),
        Experiment::PlanckLatency => planck::latency::run(&study),
        Experiment::PlanckSlowStart => planck::slow_start::run(&study),
        Experiment::PlanckError => planck::error::run(&study),
        Experiment::PlanckTimeline => planck::timeline::run(&study),
        Experiment::PlanckTeWorkloads => planck_te::workloads::run(&study),
        Experiment::PlanckTeSizes => planck_te::sizes::run(&study),
        Experiment::PlanckTeFlows => planck_te::flows::run(&study),
        Experiment::PlanckTeStress => planck_te::stress::run(&study),
        Experiment::PlanckTeFaults => planck_te::faults::run(&study),
        Experiment::CftesBurstiness => cftes::burstiness::run(&study),
        Experiment::CftesLossByRate => cftes::loss_by_rate::run(&study),
        Experiment::CftesLossByLambda => cftes::loss_by_lambda::run(&study),
        Experiment::CftesThroughput => cftes::throughput::run(&study),
        Experiment::CftesSwitchBuffer => cftes::switch_buffer::run(&study),
        Experiment::CftesClosedLoop => cftes::closed_loop::run(&study),
    };
    let Outcome { mut page, table } = outcome?;
    page.paragraph("![plot](plot.svg)");
    save(&output.join("RESULT.md"), page.text())?;
    save(&output.join("table.json"), &table.json()?)?;
    save(&output.join("table.csv"), &table.csv())
}
