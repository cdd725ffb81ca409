//! A hash table that numbers distinct values by first occurrence.

use std::hash::{BuildHasher, RandomState};

/// A key of the table.
pub(super) trait Key: Copy + Default + Eq {
    /// Returns a hash with good high bits, unpredictable without `seed`.
    fn hash(self, seed: [u64; 2]) -> u64;
}

/// Multiply-shift (Dietzfelbinger et al. 1997) with a random odd factor: two keys share one of m slots with probability at
/// most 2/m, even if an attacker chooses the keys.
impl Key for u32 {
    #[inline]
    fn hash(self, seed: [u64; 2]) -> u64 {
        u64::from(self).wrapping_mul(seed[0])
    }
}

impl Key for u64 {
    #[inline]
    fn hash(self, seed: [u64; 2]) -> u64 {
        let product = u128::from(self ^ seed[1]).wrapping_mul(u128::from(seed[0]));
        (product ^ (product >> 64)) as u64
    }
}

impl Key for u128 {
    #[inline]
    fn hash(self, seed: [u64; 2]) -> u64 {
        let low = (self as u64).hash(seed);
        (low ^ (self >> 64) as u64).hash([seed[1] | 1, seed[0]])
    }
}

/// Open addressing with linear probing; at most half full.
pub(super) struct Table<K> {
    /// Key and its number plus one; 0 marks a free slot.
    slots: Vec<(K, u32)>,
    /// 64 minus the logarithm of the number of slots.
    shift: u32,
    entries: usize,
    seed: [u64; 2],
}

/// Number of slots that are read before the first is examined.
const PREFETCH: usize = 32;

/// Initial number of slots.
const MIN_SLOTS: usize = 64;

impl<K: Key> Default for Table<K> {
    fn default() -> Self {
        Table::new()
    }
}

impl<K: Key> Table<K> {
    /// Creates an empty table with a random seed, because exporters control the keys. Numbers do not depend on the seed.
    pub(super) fn new() -> Table<K> {
        let draw = || RandomState::new().hash_one(0_u8);
        let slots = vec![(K::default(), 0); MIN_SLOTS];
        Table { slots, shift: 64 - MIN_SLOTS.ilog2(), entries: 0, seed: [draw() | 1, draw()] }
    }

    /// Removes all keys; keeps the memory.
    pub(super) fn clear(&mut self) {
        self.slots.fill((K::default(), 0));
        self.entries = 0;
    }

    /// Appends the numbers of some keys. A new key gets `next`, which is incremented; `is_new` is called with its index.
    ///
    /// Slots are read [`PREFETCH`] keys at a time, so that memory accesses overlap: a table of hundreds of thousands of
    /// addresses does not fit the processor's own cache.
    #[inline]
    pub(super) fn number_all(
        &mut self,
        keys: impl ExactSizeIterator<Item = K>,
        next: &mut u32,
        ids: &mut Vec<u32>,
        mut is_new: impl FnMut(usize),
    ) {
        let (mut index, mut next_number) = (0, *next);
        let (mut some, mut slots) = ([K::default(); PREFETCH], [(K::default(), 0); PREFETCH]);
        let mut keys = keys.fuse();
        loop {
            let mut count = 0;
            for ((key, slot), next_key) in some.iter_mut().zip(&mut slots).zip(&mut keys) {
                (*key, *slot) = (next_key, self.slots[self.slot(next_key)]);
                count += 1;
            }
            if count == 0 {
                break;
            }
            for (&key, &(found, number)) in some[..count].iter().zip(&slots[..count]) {
                if number > 0 && found == key {
                    ids.push(number - 1);
                } else {
                    let number = self.number(key, next_number);
                    if number == next_number {
                        next_number += 1;
                        is_new(index);
                    }
                    ids.push(number);
                }
                index += 1;
            }
        }
        *next = next_number;
    }

    /// Returns the number of a key; a new key gets `next`.
    #[inline]
    pub(super) fn number(&mut self, key: K, next: u32) -> u32 {
        let mut slot = self.slot(key);
        loop {
            let (found, number) = self.slots[slot];
            if number == 0 {
                self.insert(slot, key, next);
                return next;
            }
            if found == key {
                return number - 1;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    #[inline]
    fn slot(&self, key: K) -> usize {
        (key.hash(self.seed) >> self.shift) as usize
    }

    #[cold]
    fn insert(&mut self, slot: usize, key: K, number: u32) {
        self.slots[slot] = (key, number + 1);
        self.entries += 1;
        if self.entries * 2 > self.slots.len() {
            self.grow();
        }
    }

    fn grow(&mut self) {
        let larger = vec![(K::default(), 0); self.slots.len() * 2];
        let smaller = std::mem::replace(&mut self.slots, larger);
        self.shift -= 1;
        for (key, number) in smaller.into_iter().filter(|&(_, number)| number > 0) {
            let mut slot = self.slot(key);
            while self.slots[slot].1 > 0 {
                slot = (slot + 1) & (self.slots.len() - 1);
            }
            self.slots[slot] = (key, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_are_numbered_by_first_occurrence(
            keys in prop::collection::vec(0_u64..300, 0..2000)
        ) {
            let mut seen: Vec<u64> = Vec::new();
            let (mut narrow, mut wide) = (Table::<u32>::new(), Table::<u128>::new());
            for round in 0..2 {
                for &key in &keys {
                    let expected = seen.iter().position(|&other| other == key).unwrap_or(seen.len());
                    let next = seen.len() as u32;
                    prop_assert_eq!(narrow.number(key as u32, next), expected as u32);
                    prop_assert_eq!(wide.number(u128::from(key) << 70, next), expected as u32);
                    if expected == seen.len() {
                        seen.push(key);
                    }
                }
                if round == 0 {
                    narrow.clear();
                    wide.clear();
                    seen.clear();
                }
            }
        }
    }
}
