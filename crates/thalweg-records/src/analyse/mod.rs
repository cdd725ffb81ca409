//! Analysis of stored flow records on one machine: reconstructs flows, and groups them into parallel flowsets.
//!
//! It computes section 2.2 of the dissertation: flow reconstruction, the elephant rule, and equations 2.1 to 2.3. The Python
//! package computes the same with Ibis expressions on any engine; results are equal to the last bit. This implementation
//! is optimised for speed and makes two passes:
//!
//! 1. **Scatter.** Reads the needed columns of each Parquet file in blocks that fit the cache. Each record becomes a
//!    packed row in the partition of its key (see `row`, `packed`). Partitions that exceed the memory limit are written to an
//!    unlinked file beside the results (see `partitions`).
//! 2. **Assemble.** Orders each partition by key (see `order`), joins the records of a key to flows (see `flow`, `elephant`),
//!    groups the flows of each pair of hosts into flowsets (see `flowset`), and writes both (see `write`).
//!
//! Results are ordered by a hash of source and destination whose first bits are the source's, so that neighbouring rows
//! have few sources; then flows by ports, protocol and start, and flowsets by addresses and start. Neither order nor
//! contents depend on the order of the input, the memory limit, or the number of threads.
//!
//! Result files are durable before they get their names.
//!
//! **Memory** stays within [`Options::memory_bytes`], except for the records of one key and the flows of one pair of
//! hosts, which are held at once; [`Statistics::largest_key`] and [`Statistics::largest_pair`] report how many.
//!
//! **Numbers** are signed 64-bit integers and saturate at their maximum. Records whose scaled counts saturate are
//! counted in [`Statistics::saturated`]. Saturated sums are not counted.

mod assemble;
mod block;
mod chunks;
mod elephant;
mod error;
mod flow;
mod flowset;
mod largest;
mod options;
mod order;
mod packed;
mod partitions;
pub(crate) mod points;
mod row;
mod scatter;
mod table;
mod write;

#[cfg(test)]
pub(crate) mod tests;

pub use error::AnalyseError;
pub use flowset::{Flowset, Rule};
pub use largest::FlowsetOrder;
pub use options::Options;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::read::{RowSet, Source};
use crate::select::Selection;
use partitions::Spill;
use points::Points;

/// Output files. Results with `None` are only counted.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    /// File of the flows.
    pub flows: Option<PathBuf>,
    /// File of the flowsets.
    pub flowsets: Option<PathBuf>,
}

/// What to do with the results.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    outputs: &'a Outputs,
    /// Which flowsets to return, and how many.
    largest: Option<(FlowsetOrder, usize)>,
}

/// Counters of an analysis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Records read.
    pub records: u64,
    /// Records whose end preceded their start; the times were swapped.
    pub swapped_times: u64,
    /// Records whose octets or packets times the sampling interval exceed 2^63 - 1, and were clamped.
    pub saturated: u64,
    /// Observation points: exporter, domain and direction.
    pub observation_points: u64,
    /// Reconstructed flows.
    pub flows: u64,
    /// Flows that are elephants.
    pub elephants: u64,
    /// Flowsets, including those of one flow.
    pub flowsets: u64,
    /// Flowsets of one flow.
    pub single_flows: u64,
    /// Bytes written to spill files, including repeated writes.
    pub spilled_bytes: u64,
    /// Largest number of records of one key that had to be held beyond the memory limit; 0 if none.
    pub largest_key: u64,
    /// Largest number of flows of one pair of hosts that had to be held beyond the memory limit; 0 if none.
    pub largest_pair: u64,
}

impl Statistics {
    /// Adds the counters of another worker.
    fn add(&mut self, other: &Statistics) {
        self.records += other.records;
        self.swapped_times += other.swapped_times;
        self.saturated += other.saturated;
        self.flows += other.flows;
        self.elephants += other.elephants;
        self.flowsets += other.flowsets;
        self.single_flows += other.single_flows;
        self.largest_key = self.largest_key.max(other.largest_key);
        self.largest_pair = self.largest_pair.max(other.largest_pair);
    }
}

/// Called with the steps done and the total; returns whether to continue.
pub type Progress<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// Reconstructs the flows of the records in `paths` (Parquet files of flow records) and groups them into flowsets.
///
/// Calls `progress` every few thousand records, from this thread; each record is two steps. Files get their names when
/// they are complete.
///
/// # Errors
/// If a file cannot be read or does not contain flow records, a value or an option is out of range, results or spill
/// files cannot be written, or `progress` stops the analysis.
pub fn analyse(
    paths: &[PathBuf],
    outputs: &Outputs,
    options: &Options,
    progress: &mut Progress<'_>,
) -> Result<Statistics, AnalyseError> {
    options.check()?;
    let sources = Source::read_footers(paths, block::check)?;
    let beside = outputs.flows.as_deref().or(outputs.flowsets.as_deref()).and_then(Path::parent);
    let directory = match beside {
        Some(directory) if directory.as_os_str().is_empty() => Path::new(".").to_owned(),
        Some(directory) => directory.to_owned(),
        None => std::env::temp_dir(),
    };
    let wanted = Wanted { outputs, largest: None };
    Ok(run(&sources, None, wanted, &directory, options, progress)?.0)
}

/// Returns the largest flowsets of selected records, the largest first, and counters. Files of records that exceed memory are
/// written to the system's directory for temporary files.
///
/// # Errors
/// As [`analyse`].
pub fn largest_flowsets(
    selection: &Selection,
    (order, limit): (FlowsetOrder, usize),
    options: &Options,
    progress: &mut Progress<'_>,
) -> Result<(Vec<Flowset>, Statistics), AnalyseError> {
    options.check()?;
    let wanted = Wanted { outputs: &Outputs::default(), largest: Some((order, limit)) };
    let left_out = selection.left_out();
    let (statistics, largest) =
        run(selection.sources(), left_out, wanted, &std::env::temp_dir(), options, progress)?;
    Ok((largest, statistics))
}

/// Makes both passes over the rows that are not in `left_out`.
fn run(
    sources: &[Source],
    left_out: Option<&RowSet>,
    wanted: Wanted<'_>,
    directory: &Path,
    options: &Options,
    progress: &mut Progress<'_>,
) -> Result<(Statistics, Vec<Flowset>), AnalyseError> {
    let records: u64 = sources.iter().map(Source::rows).sum();
    let spill = Spill::new(directory);
    let points = Mutex::new(Points::default());
    let mut progress = |done: u64| match progress(done, 2 * records) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(AnalyseError::Interrupted),
    };

    let input = scatter::Input { sources, left_out, records };
    let scattered = scatter::scatter(input, options, &spill, &points, &mut progress)?;
    let points = points.into_inner().expect("no worker panicked");
    let mut statistics = scattered.statistics.clone();
    let ranks = points.ranks();
    let (assembled, largest) =
        assemble::assemble(scattered, wanted, options, &spill, &ranks, &mut |done| progress(records + done))?;
    // Rows that are left out are not assembled.
    progress(2 * records)?;
    statistics.add(&assembled);
    statistics.observation_points = points.len() as u64;
    statistics.spilled_bytes = spill.bytes();
    Ok((statistics, largest))
}
