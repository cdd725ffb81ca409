//! Studies of papers, repeated on traces of ours: the dissertation's monitor figure by figure, NitroSketch claim by
//! claim.
//!
//! Each experiment has a folder under `experiments/`: `README.md` says what the source claims, and the command
//! writes `RESULT.md`, `table.csv` and `plot.svg` beside it.

mod hash_buckets;
mod length_filter;
mod nitro;
mod reported;

use std::path::{Path, PathBuf};

use crate::results::{Page, Table, save};

/// Which experiment, and on what.
#[derive(Clone, Debug, clap::Args)]
pub struct ExperimentOptions {
    /// Which
    #[arg(value_enum)]
    pub name: Experiment,
    /// Length of the trace, in packets; by default 38,000,000, and 10,000,000 for nitro-*
    #[arg(long)]
    pub packets: Option<u64>,
    /// Traces (of other seeds), seeds or runs that a box or a median is made from; by default as many as take a
    /// minute or two
    #[arg(long)]
    pub seeds: Option<u64>,
    /// Where the results go; by default its folder under `experiments/`
    #[arg(long)]
    pub output: Option<PathBuf>,
}

/// The experiments, named as their folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Experiment {
    /// Figure 3.3: flow entries in a hash bucket
    CheetahHashBuckets,
    /// Figure 3.4: what the length filter leaves out
    CheetahLengthFilter,
    /// Figure 3.6a: cheetahs reported with filter and sampling
    CheetahReported,
    /// NitroSketch: updates a second over p
    NitroThroughput,
    /// NitroSketch: error of every task over memory
    NitroMemory,
    /// NitroSketch: error over packets seen, and whether bounds hold
    NitroConvergence,
    /// NitroSketch: streams of any skew, and a flood
    NitroSkew,
    /// NitroSketch: beside packets sampled into an exact table
    NitroPacketSampling,
}

/// What an experiment came to.
struct Outcome {
    page: Page,
    table: Table,
}

impl Experiment {
    /// Its folder under `experiments/`.
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
        }
    }

    /// Packets and seeds, unless told otherwise.
    const fn defaults(self) -> (u64, u64) {
        match self {
            Experiment::CheetahHashBuckets
            | Experiment::CheetahLengthFilter
            | Experiment::CheetahReported => (38_000_000, 10),
            Experiment::NitroThroughput | Experiment::NitroMemory => (10_000_000, 3),
            Experiment::NitroConvergence => (10_000_000, 20),
            Experiment::NitroSkew => (10_000_000, 10),
            Experiment::NitroPacketSampling => (10_000_000, 5),
        }
    }
}

/// Runs an experiment and writes its results.
///
/// # Errors
/// If the trace is refused or the results cannot be written.
pub fn run(options: &ExperimentOptions) -> anyhow::Result<()> {
    let ExperimentOptions { name, packets, seeds, .. } = *options;
    let (packets, seeds) = (packets.unwrap_or(name.defaults().0), seeds.unwrap_or(name.defaults().1).max(1));
    let output = options.output.clone().unwrap_or_else(|| Path::new("experiments").join(name.folder()));
    let plot = output.join("plot.svg");
    let command = format!("thalweg-bench experiment {} --packets {packets} --seeds {seeds}", name.folder());
    let outcome = match name {
        Experiment::CheetahHashBuckets => hash_buckets::run(packets, &command, &plot),
        Experiment::CheetahLengthFilter => length_filter::run(packets, seeds, &command, &plot),
        Experiment::CheetahReported => reported::run(packets, seeds, &command, &plot),
        Experiment::NitroThroughput => nitro::throughput::run(packets, seeds, &command, &plot),
        Experiment::NitroMemory => nitro::memory::run(packets, seeds, &command, &plot),
        Experiment::NitroConvergence => nitro::convergence::run(packets, seeds, &command, &plot),
        Experiment::NitroSkew => nitro::skew::run(packets, seeds, &command, &plot),
        Experiment::NitroPacketSampling => nitro::packet_sampling::run(packets, seeds, &command, &plot),
    };
    let Outcome { mut page, table } = outcome?;
    page.paragraph("![plot](plot.svg)");
    save(&output.join("RESULT.md"), page.text())?;
    save(&output.join("table.csv"), &table.csv())
}
