//! Reassembly: which bytes of a flow have arrived.

use std::collections::VecDeque;

use crate::hosts::segment::SackBlock;

/// How an arrival relates to the bytes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The expected bytes, and no gap.
    InOrder,
    /// The expected bytes, before others that arrived earlier: fills a gap in whole or in part.
    FillsGap,
    /// Beyond the expected bytes. Now part of this block.
    Ahead(SackBlock),
    /// Only bytes that had arrived before.
    Duplicate,
}

/// The bytes that have arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct Reassembly {
    next: u64,
    /// Blocks beyond `next`: disjoint, not touching, ascending.
    ahead: VecDeque<SackBlock>,
}

impl Reassembly {
    /// Reuses the memory for another flow.
    pub(super) fn reset(&mut self) {
        self.next = 0;
        self.ahead.clear();
    }

    /// The first byte that has not arrived: RCV.NXT.
    #[inline]
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Adds the bytes of `block`.
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

    /// Blocks beyond a gap, ascending.
    #[cfg(test)]
    pub(super) fn ahead(&self) -> impl Iterator<Item = SackBlock> + '_ {
        self.ahead.iter().copied()
    }

    /// Whether no bytes have arrived beyond a gap.
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
        /// Compares with a plain set of bytes.
        #[test]
        fn reassembly_matches_a_set_of_bytes(blocks in prop::collection::vec((0u64..200, 1u64..40), 1..60)) {
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
