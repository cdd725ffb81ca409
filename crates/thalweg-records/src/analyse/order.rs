//! The rows of a part in the order of their keys.
//!
//! A row becomes a number of 128 bits: its key (104) and its place (24). Numbers are put into buckets by their first
//! bits that differ, four or so a bucket, and each bucket is sorted, which for so few is an insertion sort.

use super::row::Row;

/// Bits of a place.
const PLACE_BITS: u32 = 24;
/// Most rows that can be ordered at once.
pub(super) const PLACES: usize = 1 << PLACE_BITS;
/// Rows a bucket, in bits.
const BUCKET_BITS: u32 = 2;

/// A key and the place of its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Keyed(u128);

impl Keyed {
    /// The key.
    #[inline]
    pub(super) fn key(self) -> u128 {
        self.0 >> PLACE_BITS
    }

    /// Where the row is.
    #[inline]
    pub(super) fn place(self) -> usize {
        self.0 as usize & (PLACES - 1)
    }
}

/// What ordering needs, kept from part to part.
#[derive(Debug, Default)]
pub(super) struct Orderer {
    starts: Vec<u32>,
    ordered: Vec<Keyed>,
}

impl Orderer {
    /// Orders rows whose keys are equal in the bits from `shift` up.
    ///
    /// # Panics
    /// If there are more than [`PLACES`].
    pub(super) fn order<R: Row>(&mut self, rows: &[R], shift: u32) -> &[Keyed] {
        assert!(rows.len() <= PLACES, "too many rows to order");
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
        self.ordered.resize(rows.len(), Keyed(0));
        for (place, row) in rows.iter().enumerate() {
            let key = row.key();
            let next = &mut self.starts[bucket(key)];
            self.ordered[*next as usize] = Keyed(key << PLACE_BITS | place as u128);
            *next += 1;
        }
        // Each start has moved on to its bucket's end.
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
    use super::super::row::{KEY_BITS, Narrow, Told};
    use super::*;

    #[test]
    fn rows_come_in_the_order_of_keys_and_each_once() {
        for count in [0, 1, 5, 1000] {
            let row = |i: u32| {
                let told = Told { source_port: (i % 11) as u16, ..Told::default() };
                Narrow::new(i.wrapping_mul(0x9E37_79B9) % 50, i % 3, told)
            };
            let rows: Vec<Narrow> = (0..count).map(row).collect();
            let mut orderer = Orderer::default();
            let ordered = orderer.order(&rows, KEY_BITS);
            let mut expected: Vec<(u128, usize)> = rows.iter().map(Row::key).zip(0..).collect();
            expected.sort_unstable();
            assert_eq!(
                ordered.iter().map(|keyed| (keyed.key(), keyed.place())).collect::<Vec<_>>(),
                expected
            );
        }
    }
}
