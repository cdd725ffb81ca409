//! Loss detection by sequence numbers.
//!
//! A sequence number counts units, which the format defines. A reordered message fills the gap that it left, so
//! reordering is not a loss. A number that matches no gap is either a duplicate or the first after a restart; the next
//! message decides which, because it continues one of the two sequences.

/// The number of gaps kept for reordered messages.
const MAX_GAPS: usize = 8;

/// A gap above this value to a number below this value may be a restart: exporters start at 0.
const NEAR_ZERO: u32 = 1 << 20;

/// The state of a sequence.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sequence {
    /// The number of the next message.
    expected: Option<u32>,
    /// The number of the next message if the exporter has restarted.
    suspected: Option<u32>,
    /// The first numbers and the lengths of the last gaps, newest first.
    gaps: [(u32, u32); MAX_GAPS],
}

/// The position of a message in the sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The expected message, or the first one.
    Next,
    /// A message after a gap of this many units.
    After(u32),
    /// A reordered message of this many units, which were counted as lost.
    Late(u32),
    /// A message that matches neither the sequence nor a gap.
    OutOfSequence,
    /// The second message after a restart.
    Restarted,
}

impl Sequence {
    /// Adds a message with sequence number `number` and `units` units, if known, and classifies it.
    pub(super) fn observe(&mut self, number: u32, units: Option<u32>) -> Arrival {
        let next = units.map(|units| number.wrapping_add(units));
        let arrival = self.classify(number, units.unwrap_or(0));
        match arrival {
            Arrival::Next | Arrival::After(_) | Arrival::Restarted => {
                self.expected = next;
                self.suspected = None;
            }
            Arrival::OutOfSequence => self.suspected = next,
            Arrival::Late(_) => {}
        }
        arrival
    }

    /// Resets the state after a restart of the exporter.
    pub(super) fn restart(&mut self) {
        *self = Sequence::default();
    }

    fn classify(&mut self, number: u32, units: u32) -> Arrival {
        let Some(expected) = self.expected else { return Arrival::Next };
        let gap = number.wrapping_sub(expected);
        if gap == 0 {
            return Arrival::Next;
        }
        if self.suspected == Some(number) {
            self.gaps = Default::default();
            return Arrival::Restarted;
        }
        if self.fill(number, units) {
            return Arrival::Late(units);
        }
        let may_be_restart = gap > NEAR_ZERO && number < NEAR_ZERO;
        if gap >= 1 << 31 || may_be_restart {
            return Arrival::OutOfSequence;
        }
        self.gaps.copy_within(..MAX_GAPS - 1, 1);
        self.gaps[0] = (expected, gap);
        Arrival::After(gap)
    }

    /// Fills a gap with `units` from `number`. Returns whether they were missing.
    fn fill(&mut self, number: u32, units: u32) -> bool {
        let within = |&(first, length): &(u32, u32)| {
            let from = number.wrapping_sub(first);
            units > 0 && from < length && units <= length - from
        };
        let Some(index) = self.gaps.iter().position(within) else { return false };
        let (first, length) = self.gaps[index];
        let before = number.wrapping_sub(first);
        let after = (number.wrapping_add(units), length - before - units);
        self.gaps[index] = (first, before);
        if after.1 > 0 {
            // Keep both parts of the gap, and drop the oldest gap.
            self.gaps[index..].rotate_right(1);
            self.gaps[index] = after;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the losses after each message (number, units).
    fn lost(messages: &[(u32, u32)]) -> Vec<i64> {
        let (mut sequence, mut lost) = (Sequence::default(), 0);
        let each = messages.iter().map(|&(number, units)| {
            match sequence.observe(number, Some(units)) {
                Arrival::After(gap) => lost += i64::from(gap),
                Arrival::Late(units) => lost -= i64::from(units),
                _ => {}
            }
            lost
        });
        each.collect()
    }

    #[test]
    fn gaps_are_losses_until_late_messages_fill_them() {
        assert_eq!(lost(&[(10, 5), (15, 5), (30, 5)]), [0, 0, 10]);
        assert_eq!(lost(&[(u32::MAX - 4, 5), (0, 5), (7, 1)]), [0, 0, 2]);
        assert_eq!(lost(&[(10, 5), (20, 5), (15, 5), (25, 5)]), [0, 5, 0, 0]);
        // Three are missing; the middle one arrives first.
        assert_eq!(lost(&[(0, 1), (4, 1), (2, 1), (1, 1), (3, 1), (5, 1)]), [0, 3, 2, 1, 0, 0]);
    }

    #[test]
    fn the_next_message_distinguishes_duplicate_and_restart() {
        let mut sequence = Sequence::default();
        let mut observe = |number| sequence.observe(number, Some(1));
        observe(500);
        assert_eq!(observe(500), Arrival::OutOfSequence, "duplicate");
        assert_eq!(observe(501), Arrival::Next);
        assert_eq!(observe(0), Arrival::OutOfSequence);
        assert_eq!(observe(1), Arrival::Restarted);
        assert_eq!(observe(2), Arrival::Next);
        // A restart after high numbers looks like a gap.
        let mut sequence = Sequence::default();
        let mut observe = |number| sequence.observe(number, Some(1));
        observe(4_000_000_000);
        assert_eq!(observe(0), Arrival::OutOfSequence);
        assert_eq!(observe(1), Arrival::Restarted);
        // An equally long gap to a high number is a gap.
        assert_eq!(observe(1_000_000_000), Arrival::After(999_999_998));
    }

    #[test]
    fn counting_restarts_after_a_message_of_unknown_size() {
        let mut sequence = Sequence::default();
        sequence.observe(0, Some(3));
        assert_eq!(sequence.observe(3, None), Arrival::Next);
        assert_eq!(sequence.observe(100, Some(3)), Arrival::Next);
        assert_eq!(sequence.observe(104, Some(3)), Arrival::After(1));
    }

    proptest! {
        #[test]
        fn dropped_messages_are_losses_and_swapped_ones_are_not(
            units in prop::collection::vec((1u32..50, prop::bool::weighted(0.1)), 2..100),
            swaps in prop::collection::vec(0usize..98, 0..10),
            first in any::<u32>(),
        ) {
            // At least `NEAR_ZERO`, so that no gap leads below it.
            let mut number = first.max(NEAR_ZERO);
            prop_assume!(number < u32::MAX - 5000);
            let mut messages = Vec::new();
            let (mut dropped, last) = (0, units.len() - 1);
            for (index, &(units, drop)) in units.iter().enumerate() {
                if drop && index > 1 && index < last - last.min(1) {
                    dropped += i64::from(units);
                } else {
                    messages.push((number, units));
                }
                number += units;
            }
            // Do not swap the first message, and swap each message at most once.
            let mut free = 1;
            let mut swaps = swaps;
            swaps.sort();
            for swap in swaps {
                if swap >= free && swap + 2 < messages.len() {
                    messages.swap(swap, swap + 1);
                    free = swap + 2;
                }
            }
            prop_assert_eq!(*lost(&messages).last().unwrap(), dropped);
        }
    }
}
