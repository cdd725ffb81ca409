//! Top talkers: groups stored records and returns the largest groups.
//!
//! The Python package computes the same with an Ibis expression on any engine (`python/thalweg/top.py`); results are equal
//! to the last bit. This implementation reads only the columns needed (see `grouper`), sums in parts that fit the cache
//! (see `groups`), and sorts at the end (see `ranking`). A flow that several routers exported counts once (see `once`).
//!
//! **Memory**: a group takes 40 bytes for its sums, 16 to 32 for its hash table slot, and its key: 16 per address, 4 per
//! number; at worst twice that, because vectors double. Above [`Options::memory_bytes`], it fails with
//! [`TopError::Memory`].
//!
//! **Numbers** are signed 64-bit integers; products and sums saturate.

pub mod dimension;
mod error;
mod grouper;
mod groups;
mod key;
mod once;
mod ranking;
pub mod series;
mod sums;

#[cfg(test)]
mod tests;

pub use error::TopError;
pub use key::{KeyColumn, Value};
pub use once::Once;

use std::ops::ControlFlow;
use std::path::PathBuf;

use grouper::Grouper;
use groups::{Groups, Seed};
use key::{MAX_WORDS, Position};
use once::LeftOut;
use sums::CounterColumns;

use crate::read::scan::{Tick, scan};
use crate::read::{ReadError, RowSet, Schema, Source};
use crate::select::Selection;

/// A component of the key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The column.
    pub column: KeyColumn,
    /// The column of the other end, if a record belongs to the groups of both ends (to one group if they are equal).
    pub either: Option<KeyColumn>,
}

/// Sort order of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Bytes, scaled by the sampling interval.
    Bytes,
    /// Packets, scaled by the sampling interval.
    Packets,
    /// Records, which are flows or parts of flows.
    Flows,
}

impl Order {
    /// Returns the order with this name in Python and on the command line.
    #[must_use]
    pub fn named(name: &str) -> Option<Order> {
        match name {
            "bytes" => Some(Order::Bytes),
            "packets" => Some(Order::Packets),
            "flows" => Some(Order::Flows),
            _ => None,
        }
    }
}

/// Options of a ranking.
#[derive(Clone, Debug)]
pub struct Options {
    /// Components of the key.
    pub key: Vec<Key>,
    /// Sort order, largest first; ties by key, addresses as text.
    pub order: Order,
    /// Maximum number of groups; `None` for all.
    pub limit: Option<usize>,
    /// Counts a flow once although several routers exported it; `None`: all records count.
    pub once: Option<Once>,
    /// Memory limit in bytes. Read buffers need up to 8 MiB per thread in addition.
    pub memory_bytes: u64,
    /// Number of threads, 1 to 256. They share the memory equally.
    pub threads: usize,
}

impl Options {
    /// Returns the number of passes over `records` that find out which of them count.
    fn passes(&self, records: u64) -> u64 {
        self.once.map_or(0, |_| 1 + once::passes(records, self.memory_bytes))
    }

    /// Returns the records that do not count.
    fn leave_out(
        &self,
        sources: &[Source],
        left_out: Option<&RowSet>,
        advance: &mut Tick<'_, TopError>,
    ) -> Result<LeftOut, TopError> {
        let mut left_out = LeftOut::new(left_out.cloned());
        if let Some(once) = self.once {
            once::leave_out(sources, once, &mut left_out, self.memory_bytes, self.threads, advance)?;
        }
        Ok(left_out)
    }

    fn check(&self) -> Result<(), TopError> {
        let wrong = |option, expected, found| Err(TopError::Option { option, expected, found });
        let columns = |key: &Key| [Some(key.column), key.either].into_iter().flatten();
        let mut names: Vec<&str> = self.key.iter().flat_map(columns).map(KeyColumn::name).collect();
        names.sort_unstable();
        if names.is_empty() || names.windows(2).any(|two| two[0] == two[1]) {
            return wrong("key", "columns, none of them twice", names.join(", "));
        }
        if self.key.iter().filter(|key| key.either.is_some()).count() > 1 {
            return wrong("key", "one column at most that takes either end", names.join(", "));
        }
        if let Some(Once { gap_us: ..0, .. }) = self.once {
            return wrong("gap", "0 or more", "a negative time".to_owned());
        }
        if !(1..=256).contains(&self.threads) {
            return wrong("threads", "1 to 256", self.threads.to_string());
        }
        Ok(())
    }
}

/// The largest groups, and what they do not contain.
#[derive(Clone, Debug, PartialEq)]
pub struct Top {
    /// The groups, largest first.
    pub groups: Vec<Group>,
    /// Number of all groups.
    pub total_groups: u64,
    /// Sums over all records.
    pub total: Total,
    /// Number of observation points of all records; 0 without [`Options::once`].
    pub observation_points: u64,
    /// Records that do not count, because another observation point counts their flow.
    pub records_left_out: u64,
}

/// Sums over all records; a record that belongs to two groups counts once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// Bytes of the IP layer, scaled by the sampling interval.
    pub bytes: i64,
    /// Packets, scaled by the sampling interval.
    pub packets: i64,
    /// Number of records.
    pub flows: i64,
}

/// A group and its sums.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Values of the key, in the order of [`Options::key`].
    pub key: Vec<Value>,
    /// Bytes of the IP layer, scaled by the sampling interval.
    pub bytes: i64,
    /// Packets, scaled by the sampling interval.
    pub packets: i64,
    /// Number of records.
    pub flows: i64,
    /// Share of the total over all records, of the quantity that groups are ordered by; `None` if the total is 0.
    pub share: Option<f64>,
    /// Time of the first packet, microseconds since 1970 (UTC).
    pub flow_start_us: i64,
    /// Time of the last packet.
    pub flow_end_us: i64,
}

/// Called with the steps done and the total; returns whether to continue.
pub type Progress<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// Maximum memory of pending rows.
const MAX_PENDING_BYTES: u64 = 128 << 20;
/// Memory of a group in the result, including its conversion by the caller.
const RESULT_BYTES: u64 = 512;

/// Returns the largest groups of the records in `paths` (Parquet files of flow records), largest first.
///
/// Calls `progress` every few thousand records, from this thread.
///
/// # Errors
/// If a file cannot be read or does not contain flow records, a value or an option is out of range, the groups do not fit
/// the memory limit, or `progress` stops the work.
pub fn top(paths: &[PathBuf], options: &Options, progress: &mut Progress<'_>) -> Result<Top, TopError> {
    options.check()?;
    let sources = Source::read_footers(paths, |schema| check(schema, options))?;
    counted(&sources, None, options, progress)
}

/// Returns the largest groups of selected records, as [`top`].
///
/// # Errors
/// As [`top`].
pub fn top_of(
    selection: &Selection,
    options: &Options,
    progress: &mut Progress<'_>,
) -> Result<Top, TopError> {
    options.check()?;
    counted(selection.sources(), selection.left_out(), options, progress)
}

/// Decides which records count, and groups them.
fn counted(
    sources: &[Source],
    left_out: Option<&RowSet>,
    options: &Options,
    progress: &mut Progress<'_>,
) -> Result<Top, TopError> {
    let records: u64 = sources.iter().map(Source::rows).sum();
    let passes = options.passes(records);
    let mut done = 0;
    let mut advance = |rows: u64| {
        done += rows;
        match progress(done, records * (passes + 1)) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(TopError::Interrupted),
        }
    };
    let left_out = options.leave_out(sources, left_out, &mut advance)?;
    grouped(sources, &left_out, options, &mut advance)
}

/// Returns the largest groups of the records that count.
fn grouped(
    sources: &[Source],
    left_out: &LeftOut,
    options: &Options,
    advance: &mut Tick<'_, TopError>,
) -> Result<Top, TopError> {
    let columns: Vec<_> = options.key.iter().map(|key| key.column).collect();
    let (positions, words) = Position::all(&columns);
    let top_groups = match words {
        1 => top_groups::<1>,
        2 => top_groups::<2>,
        3..=4 => top_groups::<4>,
        5..=8 => top_groups::<8>,
        _ => top_groups::<MAX_WORDS>,
    };
    top_groups(sources, left_out, &positions, options, advance)
}

/// Computes the groups with keys of `W` words.
fn top_groups<const W: usize>(
    sources: &[Source],
    left_out: &LeftOut,
    positions: &[Position],
    options: &Options,
    advance: &mut Tick<'_, TopError>,
) -> Result<Top, TopError> {
    let pending_bytes = MAX_PENDING_BYTES.min(options.memory_bytes / 4 / options.threads as u64);
    let groups_bytes = options.memory_bytes / options.threads as u64 - pending_bytes;
    let too_many =
        |groups: usize| TopError::Memory { groups: groups as u64, memory_bytes: options.memory_bytes };

    let seed = Seed::random();
    let groupers = scan(
        sources,
        options.threads,
        |row_groups, tick| {
            let mut grouper =
                Grouper::<W>::new(&options.key, positions, Groups::new(seed, pending_bytes as usize));
            for (source, number) in row_groups {
                let left_out = left_out.rows(source, number);
                grouper.read(&source.open(number)?, left_out.as_ref(), |grouper, rows| {
                    match (grouper.groups.bytes() + grouper.entries_bytes()) as u64 > groups_bytes {
                        true => Err(too_many(grouper.groups.len())),
                        false => tick(rows),
                    }
                })?;
            }
            grouper.groups.apply_pending();
            Ok((grouper.groups, grouper.whole))
        },
        advance,
        || TopError::Interrupted,
    )?;
    let mut groupers = groupers.into_iter();
    let (mut groups, mut whole) = groupers.next().expect("at least one worker");
    for (others, other) in groupers {
        groups.merge(others);
        whole.add(&other);
    }
    let limit = options.limit.unwrap_or(usize::MAX).min(groups.len());
    match limit as u64 > options.memory_bytes / RESULT_BYTES {
        true => Err(too_many(limit)),
        false => Ok(Top {
            groups: ranking::ranking(&groups, &whole, positions, options.order, limit),
            total_groups: groups.len() as u64,
            total: Total { bytes: whole.bytes, packets: whole.packets, flows: whole.flows },
            observation_points: left_out.observation_points,
            records_left_out: left_out.count(),
        }),
    }
}

/// Checks that all columns exist.
fn check(schema: &Schema<'_>, options: &Options) -> Result<(), ReadError> {
    for key in &options.key {
        key.column.check(schema)?;
        key.either.map_or(Ok(()), |either| either.check(schema))?;
    }
    options.once.map_or(Ok(()), |_| once::check(schema))?;
    CounterColumns::check(schema)
}
