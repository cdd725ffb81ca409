//! Who moves most: stored records grouped by what they have in common, and the largest groups ("top talkers").
//!
//! The Python package says the same as an Ibis expression for any engine (`python/thalweg/top.py`); results are equal to
//! the last bit. Here only the columns in question are read (see `grouper`), sums are added in parts that fit into the
//! cache (see `groups`), and groups are ordered when all are there (see `ranking`).
//!
//! **Memory**: a group takes 40 bytes for its sums, 16 to 32 for its place in a table, and its key: 16 an address, 4 a
//! number; twice that at worst, as vectors double. Where it passes [`Options::memory_bytes`], [`TopError::Memory`] says so.
//!
//! **Numbers** are those of signed 64 bits; products and sums beyond them stay at the largest.

mod error;
mod grouper;
mod groups;
mod key;
mod ranking;
mod sums;

#[cfg(test)]
mod tests;

pub use error::TopError;
pub use key::{KeyColumn, Value};

use std::ops::ControlFlow;
use std::path::PathBuf;

use grouper::Grouper;
use groups::{Groups, Seed};
use key::{MAX_WORDS, Place};
use sums::CounterColumns;

use crate::read::sweep::sweep;
use crate::read::{ReadError, Schema, Source};

/// A part of what a group has in common.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The column.
    pub column: KeyColumn,
    /// The same at the other end: a record belongs to the group of either, once where they are the same.
    pub either: Option<KeyColumn>,
}

/// What groups are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Bytes, scaled by sampling.
    Bytes,
    /// Packets, scaled by sampling.
    Packets,
    /// Records, which are flows or parts of them.
    Flows,
}

impl Order {
    /// The order of this name in Python and on the command line.
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

/// What is asked.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the records of a group have in common.
    pub key: Vec<Key>,
    /// What groups are ordered by, the largest first; equals by their keys, addresses by their text.
    pub order: Order,
    /// How many groups; `None`: all.
    pub limit: Option<usize>,
    /// Memory to stay within, bytes. Up to 8 MiB a thread come on top for buffers of reading.
    pub memory_bytes: u64,
    /// Threads that work, 1 to 256; each has groups of its own, in its part of the memory.
    pub threads: usize,
}

impl Options {
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
        if !(1..=256).contains(&self.threads) {
            return wrong("threads", "1 to 256", self.threads.to_string());
        }
        Ok(())
    }
}

/// A group, and what it counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What its records have in common, in the order of [`Options::key`].
    pub key: Vec<Value>,
    /// Bytes of the IP layer, scaled by sampling.
    pub bytes: i64,
    /// Packets, scaled by sampling.
    pub packets: i64,
    /// Records.
    pub flows: i64,
    /// Its part of what all records count, of what groups are ordered by; none where that is nothing.
    pub share: Option<f64>,
    /// First packet, microseconds since 1970 (UTC).
    pub flow_start_us: i64,
    /// Last packet.
    pub flow_end_us: i64,
}

/// Told how many records are done, and of how many; says whether to go on.
pub type Progress<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// What waits to be grouped takes so much memory at most, bytes.
const MOST_WAITING: u64 = 128 << 20;
/// Memory for a group in the answer, in Rust and for who takes it over.
const ANSWER_BYTES: u64 = 512;

/// The largest groups of the records in `paths` (Parquet files of flow records), the largest first.
///
/// `progress` is called every few thousand records, from this thread.
///
/// # Errors
/// A file that cannot be read or is not of flow records, a value that no record can have, an option out of range, more
/// groups than memory is given for, `progress` that breaks off.
pub fn top(
    paths: &[PathBuf],
    options: &Options,
    progress: &mut Progress<'_>,
) -> Result<Vec<Group>, TopError> {
    options.check()?;
    let check = |schema: &Schema<'_>| check(schema, &options.key);
    let sources = paths.iter().map(|path| Source::look(path, check)).collect::<Result<Vec<_>, _>>()?;
    let columns: Vec<_> = options.key.iter().map(|key| key.column).collect();
    let (places, words) = Place::all(&columns);
    let found = match words {
        1 => found::<1>,
        2 => found::<2>,
        3..=4 => found::<4>,
        5..=8 => found::<8>,
        _ => found::<MAX_WORDS>,
    };
    found(&sources, &places, options, progress)
}

/// The same, with keys of `W` words.
fn found<const W: usize>(
    sources: &[Source],
    places: &[Place],
    options: &Options,
    progress: &mut Progress<'_>,
) -> Result<Vec<Group>, TopError> {
    let records: u64 = sources.iter().flat_map(|source| &source.row_groups).sum();
    let mut done = 0;
    let mut advance = |rows: u64| {
        done += rows;
        match progress(done, records) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(TopError::Interrupted),
        }
    };
    let waiting_bytes = MOST_WAITING.min(options.memory_bytes / 4 / options.threads as u64);
    let groups_bytes = options.memory_bytes / options.threads as u64 - waiting_bytes;
    let too_many =
        |groups: usize| TopError::Memory { groups: groups as u64, memory_bytes: options.memory_bytes };

    let seed = Seed::random();
    let groupers = sweep(
        sources,
        options.threads,
        |row_groups, tick| {
            let mut grouper =
                Grouper::<W>::new(&options.key, places, Groups::new(seed, waiting_bytes as usize));
            for (source, number) in row_groups {
                grouper.read(&source.open(number)?, |grouper, rows| {
                    match (grouper.groups.bytes() + grouper.entries_bytes()) as u64 > groups_bytes {
                        true => Err(too_many(grouper.groups.len())),
                        false => tick(rows),
                    }
                })?;
            }
            grouper.groups.settle();
            Ok((grouper.groups, grouper.whole))
        },
        &mut advance,
        || TopError::Interrupted,
    )?;
    let mut groupers = groupers.into_iter();
    let (mut groups, mut whole) = groupers.next().expect("a worker at least");
    for (others, other) in groupers {
        groups.merge(others);
        whole.add(&other);
    }
    let limit = options.limit.unwrap_or(usize::MAX).min(groups.len());
    match limit as u64 > options.memory_bytes / ANSWER_BYTES {
        true => Err(too_many(limit)),
        false => Ok(ranking::ranking(&groups, &whole, places, options.order, limit)),
    }
}

/// Looks for the columns that are read.
fn check(schema: &Schema<'_>, key: &[Key]) -> Result<(), ReadError> {
    for key in key {
        key.column.check(schema)?;
        key.either.map_or(Ok(()), |either| either.check(schema))?;
    }
    CounterColumns::check(schema)
}
