//! Groups by their keys, in parts that fit into the cache.
//!
//! Sums wait in the part that a hash of their key names, and are added to its groups many at a time: then a group is
//! found in the second-level cache, however many there are in all.

use std::hash::{BuildHasher, RandomState};

use super::sums::Sums;

/// What records with a key count. A key is `W` words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<const W: usize> {
    pub(super) key: [u64; W],
    pub(super) sums: Sums,
}

/// Parts, in bits of the hash: of ten million groups, one has a few megabytes.
const PART_BITS: u32 = 8;

/// How keys are hashed. Who spoofs addresses chooses the keys, and must not choose where they collide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed(u64);

impl Seed {
    pub(super) fn random() -> Seed {
        Seed(RandomState::new().hash_one(0))
    }

    /// The halves of a product of 128 bits, put together for each word: each bit of a key reaches all bits of the hash.
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
    /// Rows that wait in all parts, and how many may.
    waiting: usize,
    most_waiting: usize,
}

impl<const W: usize> Groups<W> {
    /// None yet; what waits takes so much memory at most.
    pub(super) fn new(seed: Seed, waiting_bytes: usize) -> Groups<W> {
        Groups {
            parts: (0..1 << PART_BITS).map(|_| Part::new()).collect(),
            seed,
            waiting: 0,
            // Vectors double as they grow.
            most_waiting: (waiting_bytes / 2 / size_of::<Row<W>>()).max(1),
        }
    }

    /// Adds to the group of a key, now or later.
    #[inline]
    pub(super) fn add(&mut self, row: Row<W>) {
        let part = self.seed.hash(&row.key) >> (64 - PART_BITS);
        self.parts[part as usize].waiting.push(row);
        self.waiting += 1;
    }

    /// Lets no more rows wait than there may.
    pub(super) fn keep_within(&mut self) {
        if self.waiting > self.most_waiting {
            self.settle();
        }
    }

    /// Adds all that waits.
    pub(super) fn settle(&mut self) {
        let fair = self.most_waiting >> PART_BITS;
        for part in &mut self.parts {
            part.settle(self.seed);
            // One key may have had nearly all rows; the next time it may be another.
            part.waiting.shrink_to(2 * fair);
        }
        self.waiting = 0;
    }

    /// Takes over the groups of another worker with the same seed.
    pub(super) fn merge(&mut self, other: Groups<W>) {
        for (part, mut other) in self.parts.iter_mut().zip(other.parts) {
            for rows in [&mut other.groups, &mut other.waiting] {
                part.waiting.append(rows);
                part.settle(self.seed);
            }
        }
    }

    /// The groups of each part, where nothing waits.
    pub(super) fn parts(&self) -> impl Iterator<Item = &[Row<W>]> {
        self.parts.iter().map(|part| &part.groups[..])
    }

    /// How many groups there are, without what waits.
    pub(super) fn len(&self) -> usize {
        self.parts().map(<[_]>::len).sum()
    }

    /// Memory that groups take, without what waits.
    pub(super) fn bytes(&self) -> usize {
        let row = size_of::<Row<W>>();
        self.parts.iter().map(|part| part.groups.capacity() * row + part.slots.len() * size_of::<u64>()).sum()
    }
}

/// A slot without a group. Its lower half is no number.
const EMPTY: u64 = u64::MAX;
/// The lower half of a slot or of a hash.
const HALF: u64 = u32::MAX as u64;

/// Some of the keys: a hash table with linear probing, at most half full.
#[derive(Debug)]
struct Part<const W: usize> {
    waiting: Vec<Row<W>>,
    /// A power of two of them: lower half of the hash, number of the group.
    slots: Vec<u64>,
    groups: Vec<Row<W>>,
}

impl<const W: usize> Part<W> {
    fn new() -> Part<W> {
        Part { waiting: Vec::new(), slots: vec![EMPTY; 16], groups: Vec::new() }
    }

    fn settle(&mut self, seed: Seed) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for row in &waiting {
            let hash = seed.hash(&row.key);
            let at = self.find(row, hash);
            match self.slots[at] {
                EMPTY => self.insert(row, at, hash, seed),
                slot => self.groups[(slot & HALF) as usize].sums.add(&row.sums),
            }
        }
        waiting.clear();
        self.waiting = waiting;
    }

    /// The slot of a key's group, or the empty one that could have it.
    #[inline]
    fn find(&self, row: &Row<W>, hash: u64) -> usize {
        let mut at = first(hash, self.slots.len());
        loop {
            let slot = self.slots[at];
            // Most other keys are told by the half of the hash, without a look at them.
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

/// Where a hash is looked for first, of so many slots (a power of two): by its bits after those that name the part.
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
    fn each_key_has_one_group_whatever_may_wait_and_whoever_took_it() {
        for waiting_bytes in [0, 1 << 12, 1 << 20] {
            let seed = Seed::random();
            let mut workers = [Groups::new(seed, waiting_bytes), Groups::new(seed, waiting_bytes)];
            for i in 0..40_000u64 {
                let groups = &mut workers[i as usize % 2];
                groups.add(row((i % 10_007) << 20, 1));
                groups.keep_within();
            }
            let [mut all, other] = workers;
            all.merge(other);
            all.settle();
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
            groups.settle();
            // 64 keys a part, with a standard deviation of 8; twelve of them are passed once in 10^30 runs.
            assert!(groups.parts().all(|part| part.len() < 160), "{shift}");
        }
    }
}
