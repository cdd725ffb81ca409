//! The dissertation's study of its monitor, figure by figure, on a trace of ours.
//!
//! Each experiment has a folder under `experiments/`: `README.md` says what the source claims, and the command
//! writes `RESULT.md`, `table.csv` and `plot.svg` beside it.

mod hash_buckets;
mod length_filter;
mod reported;

use std::path::{Path, PathBuf};

use crate::results::{Page, Table, save};

/// Which experiment, and on what.
#[derive(Clone, Debug, clap::Args)]
pub struct ExperimentOptions {
    /// Which
    #[arg(value_enum)]
    pub name: Experiment,
    /// Length of the trace, in packets
    #[arg(long, default_value_t = 38_000_000)]
    pub packets: u64,
    /// Traces (of other seeds) or sampling seeds that a box is made from
    #[arg(long, default_value_t = 10)]
    pub seeds: u64,
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
        }
    }
}

/// Runs an experiment and writes its results.
///
/// # Errors
/// If the trace is refused or the results cannot be written.
pub fn run(options: &ExperimentOptions) -> anyhow::Result<()> {
    let ExperimentOptions { name, packets, seeds, .. } = *options;
    let output = options.output.clone().unwrap_or_else(|| Path::new("experiments").join(name.folder()));
    let plot = output.join("plot.svg");
    let command = format!("thalweg-bench experiment {} --packets {packets} --seeds {seeds}", name.folder());
    let outcome = match name {
        Experiment::CheetahHashBuckets => hash_buckets::run(packets, &command, &plot),
        Experiment::CheetahLengthFilter => length_filter::run(packets, seeds, &command, &plot),
        Experiment::CheetahReported => reported::run(packets, seeds, &command, &plot),
    };
    let Outcome { mut page, table } = outcome?;
    page.paragraph("![plot](plot.svg)");
    save(&output.join("RESULT.md"), page.text())?;
    save(&output.join("table.csv"), &table.csv())
}
