//! Groups by key, partitioned into parts that fit the cache.
//!
//! Rows are collected in the part that a hash of their key selects, and added to its groups in batches. Lookups thus hit
//! the second-level cache, however many groups exist.

use std::hash::{BuildHasher, RandomState};

use super::sums::Sums;

/// A key of `W` words and its sums.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<const W: usize> {
    pub(super) key: [u64; W],
    pub(super) sums: Sums,
}

/// Number of parts, as a power of two: with ten million groups, a part has a few megabytes.
const PART_BITS: u32 = 8;

/// Random seed of the hash. Attackers that spoof addresses control keys, and must not be able to cause collisions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed(u64);

impl Seed {
    pub(super) fn random() -> Seed {
        Seed(RandomState::new().hash_one(0))
    }

    /// Multiplies each word to 128 bits and combines the halves: every bit of the key affects all bits of the hash.
    #[inline]
    fn hash<const W: usize>(self, key: &[u64; W]) -> u64 {
        key.iter().fold(self.0, |hash, word| {
            let product = u128::from(hash ^ word) * 0x9E37_79B9_7F4A_7C15;
            product as u64 ^ (product >> 64) as u64
        })
    }
}

/// All groups of a worker.
#[derive(Debug)]
pub(super) struct Groups<const W: usize> {
    parts: Vec<Part<W>>,
    seed: Seed,
    /// Number of pending rows in all parts, and its limit.
    pending: usize,
    max_pending: usize,
}

impl<const W: usize> Groups<W> {
    /// Creates an empty set of groups. Pending rows take at most `pending_bytes`.
    pub(super) fn new(seed: Seed, pending_bytes: usize) -> Groups<W> {
        Groups {
            parts: (0..1 << PART_BITS).map(|_| Part::new()).collect(),
            seed,
            pending: 0,
            // Vectors double as they grow.
            max_pending: (pending_bytes / 2 / size_of::<Row<W>>()).max(1),
        }
    }

    /// Adds a row to the group of its key, now or later.
    #[inline]
    pub(super) fn add(&mut self, row: Row<W>) {
        let part = self.seed.hash(&row.key) >> (64 - PART_BITS);
        self.parts[part as usize].pending.push(row);
        self.pending += 1;
    }

    /// Applies pending rows if there are too many.
    pub(super) fn apply_if_full(&mut self) {
        if self.pending > self.max_pending {
            self.apply_pending();
        }
    }

    /// Applies all pending rows.
    pub(super) fn apply_pending(&mut self) {
        let fair = self.max_pending >> PART_BITS;
        for part in &mut self.parts {
            part.apply_pending(self.seed);
            // One key may have caused nearly all rows; next time it may be another.
            part.pending.shrink_to(2 * fair);
        }
        self.pending = 0;
    }

    /// Merges the groups of another worker with the same seed.
    pub(super) fn merge(&mut self, other: Groups<W>) {
        for (part, mut other) in self.parts.iter_mut().zip(other.parts) {
            for rows in [&mut other.groups, &mut other.pending] {
                part.pending.append(rows);
                part.apply_pending(self.seed);
            }
        }
    }

    /// Returns the groups of each part. No rows may be pending.
    pub(super) fn parts(&self) -> impl Iterator<Item = &[Row<W>]> {
        self.parts.iter().map(|part| &part.groups[..])
    }

    /// Returns the number of groups, without pending rows.
    pub(super) fn len(&self) -> usize {
        self.parts().map(<[_]>::len).sum()
    }

    /// Returns the memory of the groups, without pending rows.
    pub(super) fn bytes(&self) -> usize {
        let row = size_of::<Row<W>>();
        self.parts.iter().map(|part| part.groups.capacity() * row + part.slots.len() * size_of::<u64>()).sum()
    }
}

/// An empty slot. Its lower half is not a valid number.
const EMPTY: u64 = u64::MAX;
/// Lower half of a slot or a hash.
const HALF: u64 = u32::MAX as u64;

/// Groups of some keys: a hash table with linear probing, at most half full.
#[derive(Debug)]
struct Part<const W: usize> {
    pending: Vec<Row<W>>,
    /// A power of two of slots: lower half of the hash, and number of the group.
    slots: Vec<u64>,
    groups: Vec<Row<W>>,
}

impl<const W: usize> Part<W> {
    fn new() -> Part<W> {
        Part { pending: Vec::new(), slots: vec![EMPTY; 16], groups: Vec::new() }
    }

    fn apply_pending(&mut self, seed: Seed) {
        let mut pending = std::mem::take(&mut self.pending);
        for row in &pending {
            let hash = seed.hash(&row.key);
            let at = self.find(row, hash);
            match self.slots[at] {
                EMPTY => self.insert(row, at, hash, seed),
                slot => self.groups[(slot & HALF) as usize].sums.add(&row.sums),
            }
        }
        pending.clear();
        self.pending = pending;
    }

    /// Returns the slot of the key's group, or the empty slot for it.
    #[inline]
    fn find(&self, row: &Row<W>, hash: u64) -> usize {
        let mut at = first(hash, self.slots.len());
        loop {
            let slot = self.slots[at];
            // The hash half excludes most other keys without a comparison.
            if slot == EMPTY
                || slot >> 32 == hash & HALF && self.groups[(slot & HALF) as usize].key == row.key
            {
                return at;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    fn insert(&mut self, row: &Row<W>, at: usize, hash: u64, seed: Seed) {
        self.slots[at] = hash << 32 | self.groups.len() as u64;
        self.groups.push(*row);
        if self.groups.len() * 2 > self.slots.len() {
            self.grow(seed);
        }
    }

    #[cold]
    fn grow(&mut self, seed: Seed) {
        let length = self.slots.len() * 2;
        self.slots.clear();
        self.slots.resize(length, EMPTY);
        for (number, row) in self.groups.iter().enumerate() {
            let hash = seed.hash(&row.key);
            let mut at = first(hash, length);
            while self.slots[at] != EMPTY {
                at = (at + 1) & (length - 1);
            }
            self.slots[at] = hash << 32 | number as u64;
        }
    }
}

/// Returns the first slot to probe, from the hash bits after those that select the part.
#[inline]
fn first(hash: u64, slots: usize) -> usize {
    (hash << PART_BITS >> (64 - slots.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: u64, bytes: i64) -> Row<2> {
        Row { key: [key >> 40, key], sums: Sums { bytes, flows: 1, ..Sums::ZERO } }
    }

    #[test]
    fn each_key_has_one_group() {
        for pending_bytes in [0, 1 << 12, 1 << 20] {
            let seed = Seed::random();
            let mut workers = [Groups::new(seed, pending_bytes), Groups::new(seed, pending_bytes)];
            for i in 0..40_000u64 {
                let groups = &mut workers[i as usize % 2];
                groups.add(row((i % 10_007) << 20, 1));
                groups.apply_if_full();
            }
            let [mut all, other] = workers;
            all.merge(other);
            all.apply_pending();
            assert_eq!(all.len(), 10_007);
            let mut found: Vec<_> = all.parts().flatten().map(|row| (row.key[1], row.sums.bytes)).collect();
            found.sort_unstable();
            let expected = |key: u64| (key << 20, if key < 40_000 % 10_007 { 4 } else { 3 });
            assert_eq!(found, (0..10_007).map(expected).collect::<Vec<_>>());
        }
    }

    #[test]
    fn neighbouring_keys_spread_over_parts_and_slots() {
        let seed = Seed::random();
        for shift in [0, 8, 24, 32, 48] {
            let mut groups = Groups::<2>::new(seed, 1 << 20);
            (0..1 << 14).for_each(|key| groups.add(row(key << shift, 1)));
            groups.apply_pending();
            // 64 keys a part, with a standard deviation of 8; twelve of them are passed once in 10^30 runs.
            assert!(groups.parts().all(|part| part.len() < 160), "{shift}");
        }
    }
}
