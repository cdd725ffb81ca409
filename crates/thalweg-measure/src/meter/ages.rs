//! Slots in the order in which they were last used, without a write for each use.
//!
//! An exact list of the least recently used moves an entry to its front at every packet: three cache lines
//! written in places that have nothing to do with the packet. Here a slot is put once into the bucket of the
//! tick at which it was last used, and stays there while it is used again; whoever takes it out finds that it
//! has been used since and puts it back at its newer tick. A slot is linked once at most, so the number of
//! such moves is at most one for each packet, and far fewer in fact: about one a slot and idle timeout.
//!
//! The order is exact to one tick. Links belong to slots, not to what occupies them: a slot that is freed and
//! used anew stays linked where it is, which is never later than its newest use.
//!
//! Memory: 4 bytes a slot and 16 KiB.

use crate::memory::{LargeArray, MemoryError};
use thalweg_wire::Bytes;

/// Buckets of the wheel; the ticks in use at any time span fewer.
const BUCKETS: usize = 4096;
/// Ticks from the oldest to the newest that a caller may span.
pub(crate) const SPAN: u64 = 2048;

/// Link of a slot that is in no bucket; zero, as fresh memory is.
const UNLINKED: u32 = 0;
/// Link of the last slot of a bucket.
const END: u32 = 1;
/// Links above are slot numbers, offset by this.
const OFFSET: u32 = 2;

/// Slots by the tick of their last use.
#[derive(Debug)]
pub(crate) struct Ages {
    /// First slot of each bucket, as a link.
    heads: Vec<u32>,
    /// Next slot in the same bucket, as a link.
    links: LargeArray<u32>,
    /// No bucket of an earlier tick holds anything.
    oldest: u64,
    linked: usize,
}

impl Ages {
    pub(crate) fn new(capacity: usize) -> Result<Self, MemoryError> {
        Ok(Ages { heads: vec![END; BUCKETS], links: LargeArray::zeroed(capacity)?, oldest: 0, linked: 0 })
    }

    pub(crate) fn bytes(&self) -> Bytes {
        Bytes(self.links.bytes().0 + (BUCKETS * size_of::<u32>()) as u64)
    }

    /// Puts `slot` in at `tick`, unless it is in already (then at an earlier tick, which will do). A tick before
    /// the oldest counts as the oldest.
    #[inline]
    pub(crate) fn link(&mut self, slot: u32, tick: u64) {
        if self.links[slot as usize] != UNLINKED {
            return;
        }
        if self.linked == 0 {
            self.oldest = tick;
        }
        let tick = tick.clamp(self.oldest, self.oldest + BUCKETS as u64 - 1);
        let head = &mut self.heads[tick as usize % BUCKETS];
        self.links[slot as usize] = *head;
        *head = slot + OFFSET;
        self.linked += 1;
    }

    /// The tick that the last slot taken out was linked at; no earlier one holds anything.
    pub(crate) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Takes out a slot of the oldest tick, if that is before `limit`.
    #[inline]
    pub(crate) fn take_before(&mut self, limit: u64) -> Option<u32> {
        while self.linked > 0 && self.oldest < limit {
            let head = &mut self.heads[self.oldest as usize % BUCKETS];
            if *head != END {
                let slot = *head - OFFSET;
                *head = std::mem::replace(&mut self.links[slot as usize], UNLINKED);
                self.linked -= 1;
                return Some(slot);
            }
            self.oldest += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_out_oldest_first_and_never_too_early() {
        let mut ages = Ages::new(8).unwrap();
        for (slot, tick) in [(0, 100), (1, 102), (2, 101), (3, 102)] {
            ages.link(slot, tick);
        }
        ages.link(0, 105);
        assert_eq!(ages.take_before(100), None);
        assert_eq!(ages.take_before(101), Some(0));
        ages.link(0, 105);
        assert_eq!(ages.take_before(102), Some(2));
        assert_eq!(ages.take_before(102), None);
        let mut rest = [ages.take_before(103), ages.take_before(103)];
        rest.sort();
        assert_eq!(rest, [Some(1), Some(3)]);
        assert_eq!(ages.take_before(u64::MAX), Some(0));
        assert_eq!(ages.take_before(u64::MAX), None);
    }

    #[test]
    fn an_empty_wheel_starts_anywhere() {
        let mut ages = Ages::new(2).unwrap();
        ages.link(1, 1 << 50);
        assert_eq!(ages.take_before(1 << 50), None);
        assert_eq!(ages.take_before((1 << 50) + 1), Some(1));
        ages.link(0, 3);
        assert_eq!(ages.take_before(4), Some(0));
    }
}
