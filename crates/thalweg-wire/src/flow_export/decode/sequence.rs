//! Losses by sequence numbers.
//!
//! What a number counts is the format's affair; here it is a unit. Messages that are overtaken on the way fill the
//! gap that they left, so that reordering is no loss. A number that fits nowhere is either a duplicate or the first
//! after a restart; which it was, the next message says: it goes on from the one or from the other.

/// How many gaps are remembered for messages that come late.
const GAPS: usize = 8;

/// A gap above this that leads to a number below this is suspected to be a restart: exporters begin with 0.
const NEAR_ZERO: u32 = 1 << 20;

/// What has come of a sequence.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sequence {
    /// The number of the next message.
    expected: Option<u32>,
    /// The number of the next message, if the last one was the first after a restart.
    suspected: Option<u32>,
    /// First numbers and lengths of the last gaps, the youngest first.
    gaps: [(u32, u32); GAPS],
}

/// What a message's number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It is the next, or the first of all.
    Next,
    /// So many units are missing before it.
    After(u32),
    /// It fills so many units that were taken for lost.
    Late(u32),
    /// It fits nowhere.
    OutOfSequence,
    /// The exporter began anew with the message before.
    Restarted,
}

impl Sequence {
    /// Takes note of a message of `units` that begins with `number`; `None` if it cannot be told how many it has.
    pub(super) fn observe(&mut self, number: u32, units: Option<u32>) -> Arrival {
        let next = units.map(|units| number.wrapping_add(units));
        let arrival = self.place(number, units.unwrap_or(0));
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

    /// The exporter has begun anew.
    pub(super) fn restart(&mut self) {
        *self = Sequence::default();
    }

    fn place(&mut self, number: u32, units: u32) -> Arrival {
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
        let begins_anew = gap > NEAR_ZERO && number < NEAR_ZERO;
        if gap >= 1 << 31 || begins_anew {
            return Arrival::OutOfSequence;
        }
        self.gaps.copy_within(..GAPS - 1, 1);
        self.gaps[0] = (expected, gap);
        Arrival::After(gap)
    }

    /// Whether `units` from `number` on were missing; then they no longer are.
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
            // Both halves are kept, at the cost of the oldest gap.
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

    /// Losses after each of some messages, (number, units).
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
    fn gaps_are_losses_across_the_wrap_and_late_messages_fill_them() {
        assert_eq!(lost(&[(10, 5), (15, 5), (30, 5)]), [0, 0, 10]);
        assert_eq!(lost(&[(u32::MAX - 4, 5), (0, 5), (7, 1)]), [0, 0, 2]);
        assert_eq!(lost(&[(10, 5), (20, 5), (15, 5), (25, 5)]), [0, 5, 0, 0]);
        // Three are missing, the middle one comes, then the others.
        assert_eq!(lost(&[(0, 1), (4, 1), (2, 1), (1, 1), (3, 1), (5, 1)]), [0, 3, 2, 1, 0, 0]);
    }

    #[test]
    fn a_duplicate_and_a_restart_are_told_apart_by_the_next_message_and_neither_is_a_loss() {
        let mut sequence = Sequence::default();
        let mut observe = |number| sequence.observe(number, Some(1));
        observe(500);
        assert_eq!(observe(500), Arrival::OutOfSequence, "duplicate");
        assert_eq!(observe(501), Arrival::Next);
        assert_eq!(observe(0), Arrival::OutOfSequence);
        assert_eq!(observe(1), Arrival::Restarted);
        assert_eq!(observe(2), Arrival::Next);
        // From far up a restart looks like a gap.
        let mut sequence = Sequence::default();
        let mut observe = |number| sequence.observe(number, Some(1));
        observe(4_000_000_000);
        assert_eq!(observe(0), Arrival::OutOfSequence);
        assert_eq!(observe(1), Arrival::Restarted);
        // And a gap as long as that is one where the numbers are high.
        assert_eq!(observe(1_000_000_000), Arrival::After(999_999_998));
    }

    #[test]
    fn what_follows_a_message_of_unknown_size_is_taken_as_it_comes() {
        let mut sequence = Sequence::default();
        sequence.observe(0, Some(3));
        assert_eq!(sequence.observe(3, None), Arrival::Next);
        assert_eq!(sequence.observe(100, Some(3)), Arrival::Next);
        assert_eq!(sequence.observe(104, Some(3)), Arrival::After(1));
    }

    proptest! {
        #[test]
        fn messages_that_swap_with_a_neighbour_are_no_loss_and_dropped_ones_are(
            units in prop::collection::vec((1u32..50, prop::bool::weighted(0.1)), 2..100),
            swaps in prop::collection::vec(0usize..98, 0..10),
            first in any::<u32>(),
        ) {
            // From `NEAR_ZERO` on, so that no gap leads there.
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
            // Neither the first, from which all is counted, nor a message twice.
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
