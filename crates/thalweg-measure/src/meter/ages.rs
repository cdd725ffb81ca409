//! Slots in the order of their last use, without a write per use.
//!
//! An exact LRU list moves an entry to its front at every packet: writes to three cache lines that are unrelated to
//! the packet. Here a slot is added once to the bucket of the tick of its last use, and stays there while it is used
//! again. When the slot is removed, the caller checks whether it has been used since, and adds it back at its newer
//! tick. A slot is in at most one bucket (its owner records that), so the number of such moves is at most one per
//! packet, and far fewer in practice: about one per slot and idle timeout.
//!
//! The order is exact to one tick. Positions belong to slots, not to their flows: a slot that is freed and reused
//! stays where it is, which is never later than its newest use.
//!
//! A bucket is a list of chunks of one cache line, all full but the first, so slots are added and removed many at a
//! time in cached memory. Memory: 4.3 bytes per slot and 300 KiB.

use bytemuck::{Pod, Zeroable};

use crate::memory::{LargeArray, MemoryError};
use thalweg_wire::Bytes;

/// The number of buckets of the wheel; the ticks in use at any time span fewer.
const BUCKETS: usize = 4096;
/// The maximum span of ticks from the oldest to the newest.
pub(crate) const SPAN: u64 = 2048;

/// Slots per chunk: with the link, a cache line.
const CHUNK: usize = 15;
/// No chunk.
const NONE: u32 = 0;

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
struct Chunk {
    next: u32,
    slots: [u32; CHUNK],
}

/// A bucket: its first chunk and the number of slots in it.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    chunk: u32,
    filled: u32,
}

/// Slots by the tick of their last use.
#[derive(Debug)]
pub(crate) struct Ages {
    buckets: Vec<Bucket>,
    /// Chunk 0 is [`NONE`].
    chunks: LargeArray<Chunk>,
    /// The first of the chunks that are free again.
    free: u32,
    /// Chunks from here on have never been used.
    fresh: u32,
    /// All buckets of earlier ticks are empty.
    oldest: u64,
    slots: usize,
}

impl Ages {
    /// Allocates space for `capacity` slots: every bucket has at most one chunk that is not full.
    pub(crate) fn new(capacity: usize) -> Result<Self, MemoryError> {
        let chunks = LargeArray::zeroed(capacity / CHUNK + BUCKETS + 2)?;
        let buckets = vec![Bucket { chunk: NONE, filled: 0 }; BUCKETS];
        Ok(Ages { buckets, chunks, free: NONE, fresh: 1, oldest: 0, slots: 0 })
    }

    pub(crate) fn bytes(&self) -> Bytes {
        Bytes(self.chunks.bytes().0 + (BUCKETS * size_of::<Bucket>()) as u64)
    }

    /// Adds `slot`, which must not be in any bucket, at `tick`. A tick before the oldest counts as the oldest, one
    /// too far ahead as the last of the wheel: too early does no harm. An empty wheel accepts ticks up to [`SPAN`]
    /// before its first, because slots that were removed together are added back in any order.
    #[inline]
    pub(crate) fn put(&mut self, slot: u32, tick: u64) {
        if self.slots == 0 {
            self.oldest = tick.saturating_sub(SPAN);
        }
        let tick = tick.clamp(self.oldest, self.oldest.saturating_add(BUCKETS as u64 - 1));
        let bucket = &mut self.buckets[tick as usize % BUCKETS];
        if bucket.chunk == NONE || bucket.filled as usize == CHUNK {
            let chunk = match self.free {
                NONE => {
                    self.fresh += 1;
                    self.fresh - 1
                }
                free => {
                    self.free = self.chunks[free as usize].next;
                    free
                }
            };
            self.chunks[chunk as usize].next = bucket.chunk;
            *bucket = Bucket { chunk, filled: 0 };
        }
        self.chunks[bucket.chunk as usize].slots[bucket.filled as usize] = slot;
        bucket.filled += 1;
        self.slots += 1;
    }

    /// Returns the tick of the last slot removed; all earlier buckets are empty.
    pub(crate) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Removes slots of the oldest ticks before `limit`, as many as fit into `removed`, and returns them.
    #[inline]
    pub(crate) fn remove_before<'a>(&mut self, limit: u64, removed: &'a mut [u32]) -> &'a [u32] {
        let mut count = 0;
        while count < removed.len() && self.slots > 0 && self.oldest < limit {
            let bucket = &mut self.buckets[self.oldest as usize % BUCKETS];
            if bucket.chunk == NONE {
                self.oldest += 1;
                continue;
            }
            bucket.filled -= 1;
            let chunk = &mut self.chunks[bucket.chunk as usize];
            removed[count] = chunk.slots[bucket.filled as usize];
            count += 1;
            self.slots -= 1;
            if bucket.filled == 0 {
                let emptied = std::mem::replace(&mut bucket.chunk, chunk.next);
                bucket.filled = CHUNK as u32;
                chunk.next = self.free;
                self.free = emptied;
            }
        }
        &removed[..count]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every slot before `limit`, in the order of removal.
    fn removed(ages: &mut Ages, limit: u64) -> Vec<u32> {
        let mut all = Vec::new();
        while let [slot] = ages.remove_before(limit, &mut [0]) {
            all.push(*slot);
        }
        all
    }

    #[test]
    fn slots_are_removed_in_order_of_last_use_and_only_before_the_limit() {
        let mut ages = Ages::new(8).unwrap();
        for (slot, tick) in [(0, 100), (1, 102), (2, 101), (3, 102)] {
            ages.put(slot, tick);
        }
        assert!(removed(&mut ages, 100).is_empty());
        assert_eq!(removed(&mut ages, 101), [0]);
        ages.put(0, 105);
        assert_eq!(removed(&mut ages, 102), [2]);
        assert_eq!(removed(&mut ages, 103).len(), 2);
        assert_eq!(removed(&mut ages, u64::MAX), [0]);
        assert!(removed(&mut ages, u64::MAX).is_empty());
    }

    #[test]
    fn an_empty_wheel_accepts_any_tick() {
        let mut ages = Ages::new(2).unwrap();
        ages.put(1, 1 << 50);
        assert!(removed(&mut ages, 1 << 50).is_empty());
        assert_eq!(removed(&mut ages, (1 << 50) + 1), [1]);
        ages.put(0, 3);
        assert_eq!(removed(&mut ages, 4), [0]);
    }

    proptest! {
        /// Compared with a plain list of pairs; sometimes all slots are in use, to test for a shortage of chunks.
        #[test]
        fn removals_match_a_plain_list(
            capacity in 1u32..100,
            steps in prop::collection::vec((0u64..40, 0usize..120, 0u64..60), 1..40),
        ) {
            let mut ages = Ages::new(capacity as usize).unwrap();
            let mut list: Vec<(u64, u32)> = Vec::new();
            let (mut now, mut done) = (1_000, 0);
            for (pause, puts, delay) in steps {
                now += pause;
                let out: Vec<u32> = (0..capacity).filter(|slot| list.iter().all(|(_, s)| s != slot)).collect();
                for slot in out.into_iter().take(puts) {
                    let tick = now - u64::from(slot) % 3;
                    ages.put(slot, tick);
                    list.push((tick.max(done), slot));
                }
                let limit = now.saturating_sub(delay);
                let mut room = [0; 7];
                loop {
                    let given = ages.remove_before(limit, &mut room).to_vec();
                    for slot in &given {
                        let min = list.iter().map(|(tick, _)| *tick).min().unwrap();
                        let position = list.iter().position(|(_, s)| s == slot).unwrap();
                        let (tick, _) = list.swap_remove(position);
                        prop_assert!(tick == min && tick < limit);
                    }
                    if given.len() < room.len() {
                        break;
                    }
                }
                prop_assert!(list.iter().all(|(tick, _)| *tick >= limit));
                done = if list.is_empty() { 0 } else { done.max(limit) };
            }
        }
    }
}
