//! Orders the rows of a partition by key.
//!
//! Each row becomes a 128-bit number: its key (104 bits) and its index (24 bits). Numbers are distributed over buckets by
//! their first differing bits, about four per bucket; then each bucket is sorted, by insertion sort at this size.

use super::row::Row;

/// Bits of an index.
const INDEX_BITS: u32 = 24;
/// Maximum number of rows.
pub(super) const MAX_ROWS: usize = 1 << INDEX_BITS;
/// Rows per bucket, as a power of two.
const BUCKET_BITS: u32 = 2;

/// A key and the index of its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyedIndex(u128);

impl KeyedIndex {
    /// Returns the key.
    #[inline]
    pub(super) fn key(self) -> u128 {
        self.0 >> INDEX_BITS
    }

    /// Returns the index of the row.
    #[inline]
    pub(super) fn index(self) -> usize {
        self.0 as usize & (MAX_ROWS - 1)
    }
}

/// Buffers for ordering, kept between partitions.
#[derive(Debug, Default)]
pub(super) struct Orderer {
    starts: Vec<u32>,
    ordered: Vec<KeyedIndex>,
}

impl Orderer {
    /// Orders rows whose keys agree in the bits from `shift` up.
    ///
    /// # Panics
    /// If there are more than [`MAX_ROWS`].
    pub(super) fn order<R: Row>(&mut self, rows: &[R], shift: u32) -> &[KeyedIndex] {
        assert!(rows.len() <= MAX_ROWS, "too many rows to order");
        let bits = (rows.len() >> BUCKET_BITS).max(1).ilog2().min(shift);
        let (shift, mask) = (shift - bits, (1usize << bits) - 1);
        let bucket = |key: u128| (key >> shift) as usize & mask;

        self.starts.clear();
        self.starts.resize(mask + 2, 0);
        for row in rows {
            self.starts[bucket(row.key()) + 1] += 1;
        }
        for at in 1..self.starts.len() {
            self.starts[at] += self.starts[at - 1];
        }
        self.ordered.clear();
        self.ordered.resize(rows.len(), KeyedIndex(0));
        for (index, row) in rows.iter().enumerate() {
            let key = row.key();
            let next = &mut self.starts[bucket(key)];
            self.ordered[*next as usize] = KeyedIndex(key << INDEX_BITS | index as u128);
            *next += 1;
        }
        // Each start has advanced to the end of its bucket.
        let mut start = 0;
        for &end in &self.starts[..=mask] {
            self.ordered[start..end as usize].sort_unstable();
            start = end as usize;
        }
        &self.ordered
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::{Fields, KEY_BITS, Narrow};
    use super::*;

    #[test]
    fn rows_are_ordered_by_key() {
        for count in [0, 1, 5, 1000] {
            let row = |i: u32| {
                let fields = Fields { source_port: (i % 11) as u16, ..Fields::default() };
                Narrow::new(i.wrapping_mul(0x9E37_79B9) % 50, i % 3, fields)
            };
            let rows: Vec<Narrow> = (0..count).map(row).collect();
            let mut orderer = Orderer::default();
            let ordered = orderer.order(&rows, KEY_BITS);
            let mut expected: Vec<(u128, usize)> = rows.iter().map(Row::key).zip(0..).collect();
            expected.sort_unstable();
            assert_eq!(
                ordered.iter().map(|keyed| (keyed.key(), keyed.index())).collect::<Vec<_>>(),
                expected
            );
        }
    }
}
