//! Analysis of stored flow records on one machine: flows put together again, and parallel flowsets of them.
//!
//! What it computes is section 2.2 of the dissertation: flow reconstruction, the cheetah rule, and equations 2.1 to 2.3.
//! The Python package says the same as Ibis expressions for any engine; results are equal to the last bit. Here it is
//! done for speed, in two sweeps:
//!
//! 1. **Scatter.** Of each Parquet file only the needed columns are read, in blocks that stay in the cache. A record
//!    becomes a row that goes, packed, to the part of its key (see `row`, `packed`). Beyond the memory given, parts go
//!    to an unlinked file beside the results (see `parts`).
//! 2. **Assemble.** One part after another is ordered by key (see `order`); the records of each key become flows (see
//!    `flow`, `cheetah`), the flows of each pair of hosts flowsets (see `flowset`), and both are written (see `write`).
//!
//! Rows of the results are ordered by a hash of source and destination that begins with the source's, so that neighbours
//! have few sources; then flows by ports, protocol and start, flowsets by the addresses and start. The order, as the
//! rows, depends neither on the order of the input nor on the memory or the threads given.
//!
//! Results are on the disk before they have their names.
//!
//! **Memory** stays within [`Options::memory_bytes`], except that the records of one key, and the flows of one pair of
//! hosts, are held at once however many they are; [`Statistics::largest_key`] and [`Statistics::largest_pair`] say how
//! many that was.
//!
//! **Numbers** are those of signed 64 bits. What is beyond them stays at the largest: records that reach it by being
//! scaled are counted ([`Statistics::saturated`]), sums are not.

mod assemble;
mod block;
mod cheetah;
mod chunks;
mod error;
mod flow;
mod flowset;
mod options;
mod order;
mod packed;
mod parts;
mod points;
mod row;
mod scatter;
mod table;
mod write;

#[cfg(test)]
pub(crate) mod tests;

pub use error::AnalyseError;
pub use flowset::Rule;
pub use options::Options;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::read::Source;
use parts::Spill;
use points::Points;

/// Where results go; what is `None` is only counted.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    /// File of the flows.
    pub flows: Option<PathBuf>,
    /// File of the flowsets.
    pub flowsets: Option<PathBuf>,
}

/// What an analysis came upon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Records read.
    pub records: u64,
    /// Records that ended before they began, and were turned round.
    pub swapped_times: u64,
    /// Records whose octets or packets, times the sampling interval, pass 2^63 - 1 and were taken as that.
    pub saturated: u64,
    /// Observation points: exporter, domain and direction.
    pub observation_points: u64,
    /// Flows put together.
    pub flows: u64,
    /// Those of them that are cheetahs.
    pub cheetahs: u64,
    /// Flowsets, single flows included.
    pub flowsets: u64,
    /// Those of one flow.
    pub single_flows: u64,
    /// Bytes that did not fit into memory, each time they were written.
    pub spilled_bytes: u64,
    /// Most records of one key that memory was meant not to hold at once, but had to; 0 if it never came to that.
    pub largest_key: u64,
    /// Most flows of one pair of hosts that memory was meant not to hold at once, but had to, to find their flowsets; 0
    /// if it never came to that.
    pub largest_pair: u64,
}

impl Statistics {
    /// Adds what another worker came upon.
    fn add(&mut self, other: &Statistics) {
        self.records += other.records;
        self.swapped_times += other.swapped_times;
        self.saturated += other.saturated;
        self.flows += other.flows;
        self.cheetahs += other.cheetahs;
        self.flowsets += other.flowsets;
        self.single_flows += other.single_flows;
        self.largest_key = self.largest_key.max(other.largest_key);
        self.largest_pair = self.largest_pair.max(other.largest_pair);
    }
}

/// Told how much is done, and of how much; says whether to go on.
pub type Progress<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// Reconstructs the flows of the records in `paths` (Parquet files of flow records) and groups them into flowsets.
///
/// `progress` is called every few thousand records, from this thread, with steps done and steps in all; a record is
/// two steps. Files get their names when they are complete.
///
/// # Errors
/// A file that cannot be read or is not of flow records, a value that no record can have, an option out of range, no
/// room for results or spilled records, `progress` that breaks off.
pub fn analyse(
    paths: &[PathBuf],
    outputs: &Outputs,
    options: &Options,
    progress: &mut Progress<'_>,
) -> Result<Statistics, AnalyseError> {
    options.check()?;
    let sources = paths.iter().map(|path| Source::look(path, block::check)).collect::<Result<Vec<_>, _>>()?;
    let records: u64 = sources.iter().flat_map(|source| &source.row_groups).sum();
    let beside = outputs.flows.as_deref().or(outputs.flowsets.as_deref()).and_then(Path::parent);
    let directory = match beside {
        Some(directory) if directory.as_os_str().is_empty() => Path::new(".").to_owned(),
        Some(directory) => directory.to_owned(),
        None => std::env::temp_dir(),
    };
    let spill = Spill::new(&directory);
    let points = Mutex::new(Points::default());
    let mut progress = |done: u64| match progress(done, 2 * records) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(AnalyseError::Interrupted),
    };

    let scattered = scatter::scatter(&sources, records, options, &spill, &points, &mut progress)?;
    let points = points.into_inner().expect("no worker panicked");
    let mut statistics = scattered.statistics.clone();
    let ranks = points.ranks();
    let assembled = assemble::assemble(scattered, outputs, options, &spill, &ranks, &mut |done| {
        progress(records + done)
    })?;
    statistics.add(&assembled);
    statistics.observation_points = points.len() as u64;
    statistics.spilled_bytes = spill.bytes();
    Ok(statistics)
}
