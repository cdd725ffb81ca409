//! Maps a hash to the slot of a table, with buckets of one cache line.
//!
//! A bucket has twelve places, each with an 8-bit tag from the hash and a slot number. A lookup touches one line and
//! the tags almost always identify the slot to compare. A full bucket spills into the next ones and counts the
//! spilled entries, so a lookup stops at the first bucket that never did; removal decrements the count and leaves no
//! tombstones. (Tags as in Swiss tables, overflow counts as in F14: both public designs of 2017 to 2019.)
//!
//! Memory: 64 bytes for every six slots of capacity, 10.7 bytes per slot. At capacity a bucket overflows with
//! probability 0.9 % (Poisson, mean 6, more than 12).

use bytemuck::{Pod, Zeroable};

use crate::memory::{LargeArray, MemoryError, prefetch};
use thalweg_wire::Bytes;

const PLACES: usize = 12;
/// Slots of capacity per bucket: half the places, so that few buckets overflow.
const SLOTS_PER_BUCKET: usize = 6;
/// A tag of zero marks a free place.
const FREE: u8 = 0;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Bucket {
    tags: [u8; PLACES],
    /// The number of entries that belong to this or an earlier bucket, and are in a later one.
    spilled: u32,
    slots: [u32; PLACES],
}

/// Slots by hash. Keys are not stored here: the caller compares.
#[derive(Debug)]
pub(crate) struct SlotIndex {
    buckets: LargeArray<Bucket>,
}

impl std::fmt::Debug for Bucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bucket").field("tags", &self.tags).field("spilled", &self.spilled).finish()
    }
}

impl SlotIndex {
    /// Creates an index over `capacity` slots.
    pub(crate) fn new(capacity: usize) -> Result<Self, MemoryError> {
        Ok(SlotIndex { buckets: LargeArray::zeroed(capacity / SLOTS_PER_BUCKET + 1)? })
    }

    pub(crate) fn bytes(&self) -> Bytes {
        self.buckets.bytes()
    }

    /// Prefetches the bucket of `hash`.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(&self.buckets[bucket_of(hash, self.buckets.len())]);
    }

    /// Returns the first slot in the bucket of `hash` with a matching tag: most likely, but not certainly, the right
    /// one.
    #[inline(always)]
    pub(crate) fn candidate(&self, hash: u64) -> Option<u32> {
        let bucket = &self.buckets[bucket_of(hash, self.buckets.len())];
        bucket.tagged(tag_of(hash)).next().map(|place| bucket.slots[place])
    }

    /// Returns the slot with this hash that `is_it` accepts.
    #[inline]
    pub(crate) fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let tag = tag_of(hash);
        for number in self.probe(hash) {
            let bucket = &self.buckets[number];
            if let Some(place) = bucket.tagged(tag).find(|place| is_it(bucket.slots[*place])) {
                return Some(bucket.slots[place]);
            }
            if bucket.spilled == 0 {
                return None;
            }
        }
        None
    }

    /// Adds a slot that is not in the index. It cannot be full: slots are at most half of the places.
    pub(crate) fn insert(&mut self, hash: u64, slot: u32) {
        let tag = tag_of(hash);
        for number in self.probe(hash) {
            let bucket = &mut self.buckets[number];
            if let Some(place) = bucket.tagged(FREE).next() {
                bucket.tags[place] = tag;
                bucket.slots[place] = slot;
                return;
            }
            bucket.spilled += 1;
        }
        unreachable!("an index has twice as many places as its table has slots");
    }

    /// Removes a slot that is in the index under this hash.
    pub(crate) fn remove(&mut self, hash: u64, slot: u32) {
        let tag = tag_of(hash);
        for number in self.probe(hash) {
            let bucket = &mut self.buckets[number];
            if let Some(place) = bucket.tagged(tag).find(|place| bucket.slots[*place] == slot) {
                bucket.tags[place] = FREE;
                return;
            }
            bucket.spilled -= 1;
        }
        unreachable!("a slot is removed under the hash that it was inserted under");
    }

    /// Returns the numbers of the buckets to search, the one of `hash` first.
    #[inline]
    fn probe(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let buckets = self.buckets.len();
        let own = bucket_of(hash, buckets);
        (own..buckets).chain(0..own)
    }
}

impl Bucket {
    /// Returns the places with this tag.
    #[inline(always)]
    fn tagged(&self, tag: u8) -> Matches {
        #[cfg(target_arch = "x86_64")]
        return self.tagged_by_vector(tag);
        #[cfg(not(target_arch = "x86_64"))]
        self.tagged_one_by_one(tag)
    }

    /// Compares all places at once; every x86-64 processor has the instructions (SSE2).
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    #[expect(unsafe_code, reason = "vector instructions are marked unsafe for processors without them")]
    fn tagged_by_vector(&self, tag: u8) -> Matches {
        use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set1_epi8};
        const TAGS: u32 = (1 << PLACES) - 1;
        let (head, _) = bytemuck::bytes_of(self).split_first_chunk::<16>().expect("a bucket has 64 bytes");
        let tags: __m128i = bytemuck::must_cast(*head);
        // SAFETY: SSE2 is part of x86-64; these three compute on values and touch no memory.
        let equal = unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(tags, _mm_set1_epi8(tag as i8))) };
        Matches(equal as u32 & TAGS)
    }

    #[cfg(any(test, not(target_arch = "x86_64")))]
    fn tagged_one_by_one(&self, tag: u8) -> Matches {
        let bits = self.tags.iter().enumerate().map(|(place, its)| u32::from(*its == tag) << place);
        Matches(bits.sum())
    }
}

/// Places of a bucket, a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Matches(u32);

impl Iterator for Matches {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let place = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(place)
    }
}

/// The high bits choose the bucket, by multiplication: any number of buckets, no division.
#[inline(always)]
fn bucket_of(hash: u64, buckets: usize) -> usize {
    ((u128::from(hash) * buckets as u128) >> 64) as usize
}

/// The low bits are the tag, never [`FREE`].
#[inline(always)]
fn tag_of(hash: u64) -> u8 {
    (hash as u8).max(1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[cfg(target_arch = "x86_64")]
        #[test]
        fn vector_and_portable_search_agree(tags in any::<[u8; PLACES]>(), spilled in any::<u32>(), tag in any::<u8>()) {
            let tags = tags.map(|tag| tag % 4);
            let bucket = Bucket { tags, spilled, slots: [0; PLACES] };
            for tag in [tag, tag % 4] {
                prop_assert_eq!(bucket.tagged_by_vector(tag), bucket.tagged_one_by_one(tag));
            }
        }

        /// Few distinct hashes, so that buckets overflow and spill over each other.
        #[test]
        fn the_slot_index_matches_a_hash_map(
            capacity in 1usize..60,
            steps in prop::collection::vec((any::<bool>(), 0u64..8), 0..400),
        ) {
            let mut index = SlotIndex::new(capacity).unwrap();
            let mut truth: HashMap<u32, u64> = HashMap::new();
            for (add, hash) in steps {
                let hash = hash << 61 | 7;
                let free = (0..capacity as u32).find(|slot| !truth.contains_key(slot));
                let present = truth.iter().find(|(_, h)| **h == hash).map(|(slot, _)| *slot);
                match (add, free, present) {
                    (true, Some(slot), _) => {
                        index.insert(hash, slot);
                        truth.insert(slot, hash);
                    }
                    (false, _, Some(slot)) => {
                        index.remove(hash, slot);
                        truth.remove(&slot);
                    }
                    _ => {}
                }
                for slot in 0..capacity as u32 {
                    let hash = truth.get(&slot).copied();
                    prop_assert_eq!(index.find(hash.unwrap_or(7), |s| s == slot), hash.map(|_| slot));
                }
            }
            for (slot, hash) in truth {
                index.remove(hash, slot);
            }
            prop_assert!(index.buckets.iter().all(|bucket| bucket.spilled == 0 && bucket.tags == [FREE; PLACES]));
        }
    }
}
