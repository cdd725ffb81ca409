//! Which bytes of a flow have arrived: all below `next`, and blocks beyond it.

use std::collections::VecDeque;

use crate::hosts::segment::SackBlock;

/// What an arrival is to what has arrived before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The bytes that were due, and nothing waits beyond them.
    InOrder,
    /// The bytes that were due, with others beyond: it fills a gap, in whole or in part.
    FillsGap,
    /// Ahead of what is due; it is now part of this block.
    Ahead(SackBlock),
    /// Nothing new.
    Duplicate,
}

/// The bytes that have arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct Reassembly {
    next: u64,
    /// Disjoint and not touching, ascending, all beyond `next`.
    ahead: VecDeque<SackBlock>,
}

impl Reassembly {
    /// Empties it for another flow, and keeps its memory.
    pub(super) fn reset(&mut self) {
        self.next = 0;
        self.ahead.clear();
    }

    /// First byte that has not arrived: RCV.NXT.
    #[inline]
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Takes the bytes of `block`.
    #[inline]
    pub(super) fn insert(&mut self, block: SackBlock) -> Arrival {
        if block.end <= self.next {
            return Arrival::Duplicate;
        }
        if block.start > self.next {
            return self.insert_ahead(block);
        }
        self.next = block.end;
        if self.ahead.is_empty() {
            return Arrival::InOrder;
        }
        while let Some(first) = self.ahead.front()
            && first.start <= self.next
        {
            self.next = self.next.max(first.end);
            self.ahead.pop_front();
        }
        Arrival::FillsGap
    }

    fn insert_ahead(&mut self, block: SackBlock) -> Arrival {
        let from = self.ahead.partition_point(|other| other.end < block.start);
        let to = self.ahead.partition_point(|other| other.start <= block.end);
        if from == to {
            self.ahead.insert(from, block);
            return Arrival::Ahead(block);
        }
        if self.ahead[from].start <= block.start && block.end <= self.ahead[from].end {
            return Arrival::Duplicate;
        }
        let joined = block.joined(self.ahead[from]).joined(self.ahead[to - 1]);
        self.ahead[from] = joined;
        self.ahead.drain(from + 1..to);
        Arrival::Ahead(joined)
    }

    /// Blocks that wait beyond a gap, ascending.
    #[cfg(test)]
    pub(super) fn ahead(&self) -> impl Iterator<Item = SackBlock> + '_ {
        self.ahead.iter().copied()
    }

    /// Whether nothing waits beyond a gap.
    pub(super) fn has_no_gap(&self) -> bool {
        self.ahead.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a plain set of bytes.
        #[test]
        fn it_knows_the_bytes_that_have_arrived(blocks in prop::collection::vec((0u64..200, 1u64..40), 1..60)) {
            let mut reassembly = Reassembly::default();
            let mut bytes = BTreeSet::new();
            for (start, length) in blocks {
                let before = bytes.len();
                bytes.extend(start..start + length);
                let arrival = reassembly.insert(SackBlock { start, end: start + length });
                prop_assert_eq!(arrival == Arrival::Duplicate, bytes.len() == before);
                let next = (0..).find(|byte| !bytes.contains(byte)).unwrap();
                prop_assert_eq!(reassembly.next(), next);
                let ahead: Vec<u64> = reassembly.ahead().flat_map(|block| block.start..block.end).collect();
                let beyond: Vec<u64> = bytes.iter().copied().filter(|&byte| byte >= next).collect();
                prop_assert_eq!(ahead, beyond);
                prop_assert!(reassembly.ahead.iter().zip(reassembly.ahead.iter().skip(1))
                    .all(|(one, other)| one.end < other.start));
                if let Arrival::Ahead(block) = arrival {
                    prop_assert!(block.start <= start && start + length <= block.end);
                    prop_assert!(reassembly.ahead().any(|other| other == block));
                }
            }
        }
    }
}
