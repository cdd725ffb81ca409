//! Timers that move far more often than they expire.
//!
//! An acknowledgement moves its flow's retransmission timer, nearly always later. So a flow has at most one valid
//! entry, at or before its deadline, and moving a deadline later changes nothing here. An entry that fires too early is
//! set again for the deadline. An entry that was replaced by an earlier one, or whose flow has ended, is ignored.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use thalweg_wire::Timestamp;

/// The end of a flow that a timer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    /// The sender: retransmission.
    Sender = 0,
    /// The receiver: a delayed acknowledgement.
    Receiver = 1,
}

/// A timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) at: Timestamp,
    pub(super) flow: u32,
    pub(super) end: End,
}

/// Timers by time, then by flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<Entry>>,
}

/// Entries per active flow before invalid ones are removed: two valid ones, and as many others.
const ENTRIES_PER_FLOW: usize = 4;
/// Fewer entries than this are never removed.
const FEW_ENTRIES: usize = 1024;

impl Timers {
    /// Sets a timer.
    pub(super) fn set(&mut self, entry: Entry) {
        self.heap.push(Reverse(entry));
    }

    /// The next timer that is due at `now`.
    #[inline]
    pub(super) fn pop_due(&mut self, now: Timestamp) -> Option<Entry> {
        let Reverse(first) = self.heap.peek()?;
        if first.at > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    /// Removes invalid entries if there may be many: O(1) amortised per started flow.
    pub(super) fn sweep(&mut self, flows: usize, counts: impl Fn(&Entry) -> bool) {
        if self.heap.len() > FEW_ENTRIES + ENTRIES_PER_FLOW * flows {
            self.heap.retain(|Reverse(entry)| counts(entry));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at: u64, flow: u32) -> Entry {
        Entry { at: Timestamp(at), flow, end: End::Sender }
    }

    #[test]
    fn timers_fire_in_order_of_time_and_flow() {
        let mut timers = Timers::default();
        [entry(7, 0), entry(5, 2), entry(5, 1), entry(9, 3)].into_iter().for_each(|entry| timers.set(entry));
        assert_eq!(timers.pop_due(Timestamp(4)), None);
        let due: Vec<Entry> = std::iter::from_fn(|| timers.pop_due(Timestamp(7))).collect();
        assert_eq!(due, [entry(5, 1), entry(5, 2), entry(7, 0)]);
    }

    #[test]
    fn entries_of_ended_flows_are_removed() {
        let mut timers = Timers::default();
        (0..1029).for_each(|flow| timers.set(entry(1, flow)));
        timers.sweep(2, |_| false);
        assert_eq!(timers.heap.len(), 1029);
        timers.sweep(1, |entry| entry.flow < 3);
        assert_eq!(timers.heap.len(), 3);
    }
}
