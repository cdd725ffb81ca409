//! Sets of rows: one bit per row of all files.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Source;

/// Rows of some files. Threads can add rows at the same time.
#[derive(Debug, Default)]
pub(crate) struct RowSet {
    bits: Vec<AtomicU64>,
}

/// The rows of a row group that are in a set.
pub(crate) struct GroupRows<'a> {
    bits: &'a [AtomicU64],
    first_row: u64,
}

impl GroupRows<'_> {
    /// Whether the row at this position of the row group is in the set.
    #[inline]
    pub(crate) fn contains(&self, row: u64) -> bool {
        let row = self.first_row + row;
        self.bits[(row / 64) as usize].load(Ordering::Relaxed) >> (row % 64) & 1 == 1
    }
}

impl RowSet {
    /// Creates an empty set of rows of these files.
    pub(crate) fn new(sources: &[Source]) -> RowSet {
        let rows = sources.last().map_or(0, Source::end_row);
        RowSet { bits: (0..rows.div_ceil(64)).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Adds a row, by its number in all files.
    pub(crate) fn insert(&self, row: u64) {
        self.bits[(row / 64) as usize].fetch_or(1 << (row % 64), Ordering::Relaxed);
    }

    /// Returns the rows of a row group.
    pub(crate) fn of_group(&self, source: &Source, group: usize) -> GroupRows<'_> {
        GroupRows { bits: &self.bits, first_row: source.first_row(group) }
    }
}

impl Clone for RowSet {
    fn clone(&self) -> RowSet {
        let copy = |word: &AtomicU64| AtomicU64::new(word.load(Ordering::Relaxed));
        RowSet { bits: self.bits.iter().map(copy).collect() }
    }
}
