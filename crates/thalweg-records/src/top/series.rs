//! Traffic over time: bytes of each interval, of the largest groups and of all others together.
//!
//! The bytes of a record are spread evenly from its first packet to its last. For a record that lasts from s to e, an interval
//! within it gets floor(bytes * interval / (e - s)), the first interval floor(bytes * (its end - s) / (e - s)), and the last one
//! the rest, so that no byte is lost. The Python package computes the same (`python/thalweg/series.py`).
//!
//! **Memory**: as the ranking ([`top`](super::top())) for the largest groups, and 32 bytes for each group and interval.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::key::{MAX_WORDS, OpenColumn, Position, Value};
use super::sums::{CounterColumns, Counters, Sums};
use super::{Key, Options, Progress, Top, TopError, grouped};
use crate::read::scan::{RowGroups, Tick, scan};
use crate::read::{BLOCK, Source};
use crate::select::Selection;

/// Maximum number of intervals.
pub const MAX_INTERVALS: usize = 100_000;

/// A range of time in intervals of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intervals {
    /// Start of the first one, microseconds since 1970 (UTC): a multiple of the length.
    pub first_us: i64,
    /// Length of an interval in microseconds.
    pub length_us: i64,
    /// Number of intervals.
    pub count: usize,
}

impl Intervals {
    /// Returns the intervals with parts of a range. They start at multiples of their length.
    ///
    /// # Errors
    /// If the range is empty, or has more than [`MAX_INTERVALS`].
    pub fn of_range(start_us: i64, end_us: i64, length_us: i64) -> Result<Intervals, TopError> {
        if length_us < 1 || end_us <= start_us {
            return Err(TopError::Option {
                option: "intervals",
                expected: "a length of 1 us or more, and an end after the start",
                found: format!("{start_us} us to {end_us} us, {length_us} us each"),
            });
        }
        let first_us = start_us - start_us.rem_euclid(length_us);
        let count = (end_us - first_us).unsigned_abs().div_ceil(length_us.unsigned_abs());
        if count > MAX_INTERVALS as u64 {
            let found = count.to_string();
            return Err(TopError::Option { option: "intervals", expected: "at most 100,000", found });
        }
        Ok(Intervals { first_us, length_us, count: count as usize })
    }

    /// Returns the index of the interval that contains a time; it may be outside.
    fn index(&self, time_us: i64) -> i64 {
        (time_us - self.first_us).div_euclid(self.length_us)
    }
}

/// Traffic over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The largest groups by bytes, the largest first; one without a key if records are not grouped.
    pub groups: Vec<SeriesGroup>,
    /// All other groups together; `None` if there are none.
    pub other: Option<SeriesGroup>,
    /// Records that do not count, because another observation point counts their flow.
    pub records_left_out: u64,
}

/// A group over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesGroup {
    /// Values of the key.
    pub key: Vec<Value>,
    /// Bytes of all its records.
    pub total_bytes: i64,
    /// Bytes in each interval; bytes of other times are in none.
    pub bytes: Vec<i64>,
}

impl SeriesGroup {
    /// Returns the bytes of times outside the intervals.
    pub fn bytes_outside(&self) -> i64 {
        let inside = self.bytes.iter().fold(0_i64, |sum, bytes| sum.saturating_add(*bytes));
        self.total_bytes.saturating_sub(inside)
    }
}

/// Returns the traffic of selected records over time. `options` select the groups by bytes, as for a ranking; without a key, all
/// traffic is one group.
///
/// # Errors
/// As [`top`](super::top()), and if a key has a column that takes either end, because the groups would not add up.
pub fn series(
    selection: &Selection,
    options: &Options,
    intervals: Intervals,
    progress: &mut Progress<'_>,
) -> Result<Series, TopError> {
    let has_key = !options.key.is_empty();
    if has_key {
        options.check()?;
    }
    if options.key.iter().any(|key| key.either.is_some()) {
        return Err(TopError::Option {
            option: "key",
            expected: "columns of one end, so that groups add up",
            found: "a column that takes either end".to_owned(),
        });
    }
    let sources = selection.sources();
    let records: u64 = sources.iter().map(Source::rows).sum();
    let all = records * (options.passes(records) + 1 + u64::from(has_key));
    let mut done = 0;
    let mut advance = |rows: u64| {
        done += rows;
        match progress(done, all) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(TopError::Interrupted),
        }
    };
    let left_out = options.leave_out(sources, selection.left_out(), &mut advance)?;
    let top = match has_key {
        true => Some(grouped(sources, &left_out, options, &mut advance)?),
        false => None,
    };
    let chosen = Chosen::new(&options.key, top.as_ref());
    let worker = |groups: &mut RowGroups<'_>, tick: &mut Tick<'_, TopError>| {
        let mut spread = Spread::new(chosen.count + 1, intervals);
        let (mut counters, mut keys) = (Counters::new(), vec![[0; MAX_WORDS]; BLOCK]);
        for (source, number) in groups {
            let left_out = left_out.rows(source, number);
            let group = source.open(number)?;
            let mut columns = CounterColumns::open(&group)?;
            let open = |key: &Key| key.column.open(&group);
            let mut open: Vec<OpenColumn> = options.key.iter().map(open).collect::<Result<_, _>>()?;
            let mut left = group.rows;
            while left > 0 {
                let rows = left.min(BLOCK as u64) as usize;
                counters.read(&mut columns, rows)?;
                if let Some(left_out) = &left_out {
                    let done = group.rows - left;
                    counters.leave_out(rows, |row| left_out.contains(done + row as u64));
                }
                for (column, position) in open.iter_mut().zip(&chosen.positions) {
                    column.read(rows, |(row, bits)| position.put(&mut keys[row], bits))?;
                }
                for (key, record) in keys.iter().zip(counters.records(rows)) {
                    if record.flows > 0 {
                        spread.add(chosen.number(key), &record);
                    }
                }
                left -= rows as u64;
                tick(rows as u64)?;
            }
        }
        Ok(spread)
    };
    let workers = scan(sources, options.threads, worker, &mut advance, || TopError::Interrupted)?;
    let mut workers = workers.into_iter();
    let mut spread = workers.next().expect("at least one worker");
    workers.for_each(|other| spread.merge(&other));
    Ok(finished(spread, &chosen, top, left_out.count()))
}

fn finished(spread: Spread, chosen: &Chosen, top: Option<Top>, records_left_out: u64) -> Series {
    let mut groups = spread.groups();
    let other =
        groups.pop().filter(|_| top.as_ref().is_some_and(|top| top.total_groups as usize > chosen.count));
    let keys =
        top.map_or_else(|| vec![Vec::new()], |top| top.groups.into_iter().map(|group| group.key).collect());
    let named = keys.into_iter().zip(groups).map(|(key, group)| SeriesGroup { key, ..group });
    Series { groups: named.collect(), other, records_left_out }
}

/// The groups that have numbers of their own.
struct Chosen {
    positions: Vec<Position>,
    /// By the words of the key that are used.
    numbers: HashMap<Box<[u64]>, usize>,
    words: usize,
    count: usize,
}

impl Chosen {
    fn new(key: &[Key], top: Option<&Top>) -> Chosen {
        let columns: Vec<_> = key.iter().map(|key| key.column).collect();
        let (positions, words) = Position::all(&columns);
        let Some(top) = top else { return Chosen { positions, numbers: HashMap::new(), words, count: 1 } };
        let encoded = |values: &[Value]| {
            let mut key = vec![0; words];
            values.iter().zip(&positions).for_each(|(value, position)| position.put(&mut key, value.bits()));
            key.into_boxed_slice()
        };
        let numbers =
            top.groups.iter().enumerate().map(|(number, group)| (encoded(&group.key), number)).collect();
        Chosen { positions, numbers, words, count: top.groups.len() }
    }

    /// Returns the number of a key's group; all others have the last.
    #[inline]
    fn number(&self, key: &[u64; MAX_WORDS]) -> usize {
        match self.positions.is_empty() {
            true => 0,
            false => self.numbers.get(&key[..self.words]).copied().unwrap_or(self.count),
        }
    }
}

/// Bytes of groups in intervals.
struct Spread {
    intervals: Intervals,
    /// For each group its total, and for each interval what is in it, and by how much the share of whole intervals changes at it.
    groups: Vec<(i128, Vec<i128>, Vec<i128>)>,
}

impl Spread {
    fn new(groups: usize, intervals: Intervals) -> Spread {
        let count = intervals.count;
        Spread { intervals, groups: vec![(0, vec![0; count], vec![0; count]); groups] }
    }

    fn add(&mut self, group: usize, record: &Sums) {
        let Intervals { first_us, length_us, .. } = self.intervals;
        let (start, end) =
            (record.flow_start_us.min(record.flow_end_us), record.flow_start_us.max(record.flow_end_us));
        let (first, last) = (self.intervals.index(start), self.intervals.index(end));
        let whole = record.bytes;
        let (total, bytes, changes) = &mut self.groups[group];
        *total += i128::from(whole);
        if first == last {
            return add_at(bytes, first, whole);
        }
        // As in SQL, with floating-point numbers.
        let share =
            |overlap_us: i64| (whole as f64 * overlap_us as f64 / (end - start).max(1) as f64).floor() as i64;
        let head = share(first_us + (first + 1) * length_us - start);
        let full = share(length_us);
        add_at(bytes, first, head);
        add_at(bytes, last, whole - head - full * (last - first - 1));
        add_at(changes, (first + 1).max(0), full);
        add_at(changes, last.max(0), -full);
    }

    fn merge(&mut self, other: &Spread) {
        for ((total, bytes, changes), other) in self.groups.iter_mut().zip(&other.groups) {
            *total += other.0;
            bytes.iter_mut().zip(&other.1).for_each(|(sum, more)| *sum += more);
            changes.iter_mut().zip(&other.2).for_each(|(sum, more)| *sum += more);
        }
    }

    fn groups(self) -> Vec<SeriesGroup> {
        let clamped = |number: i128| i64::try_from(number).unwrap_or(i64::MAX);
        let group = |(total, bytes, changes): (i128, Vec<i128>, Vec<i128>)| {
            let shares = changes.iter().scan(0, |share, change| {
                *share += change;
                Some(*share)
            });
            let bytes = bytes.iter().zip(shares).map(|(bytes, share)| clamped(bytes + share)).collect();
            SeriesGroup { key: Vec::new(), total_bytes: clamped(total), bytes }
        };
        self.groups.into_iter().map(group).collect()
    }
}

/// Adds to the interval at an index, unless it is outside.
fn add_at(amounts: &mut [i128], index: i64, amount: i64) {
    if let Some(there) = usize::try_from(index).ok().and_then(|index| amounts.get_mut(index)) {
        *there += i128::from(amount);
    }
}
