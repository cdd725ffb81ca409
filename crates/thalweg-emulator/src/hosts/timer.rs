//! Timers that are moved far more often than they expire.
//!
//! An acknowledgement moves its flow's retransmission timer, nearly always to later. So a flow has at most one entry
//! that counts, at or before its deadline: moving a deadline to later touches nothing here. An entry that comes
//! up too early is set again at the deadline; one whose flow has been set anew to earlier, or is gone, is passed over.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use thalweg_wire::Timestamp;

/// Whose timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    /// The sender's: retransmission.
    Sender = 0,
    /// The receiver's: an acknowledgement that waits.
    Receiver = 1,
}

/// A timer that comes up.
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

/// Entries a living flow may have before those of dead ones are swept out: two that count, and as many that do not.
const ENTRIES_PER_FLOW: usize = 4;
/// As few entries are never swept.
const FEW_ENTRIES: usize = 1024;

impl Timers {
    /// Sets a timer.
    pub(super) fn set(&mut self, entry: Entry) {
        self.heap.push(Reverse(entry));
    }

    /// The next timer that is due by `now`.
    #[inline]
    pub(super) fn pop_due(&mut self, now: Timestamp) -> Option<Entry> {
        let Reverse(first) = self.heap.peek()?;
        if first.at > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    /// Sweeps out entries that no longer count, if there may be many: O(1) amortised over the flows that begin.
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
    fn timers_come_up_in_order_of_time_and_flow() {
        let mut timers = Timers::default();
        [entry(7, 0), entry(5, 2), entry(5, 1), entry(9, 3)].into_iter().for_each(|entry| timers.set(entry));
        assert_eq!(timers.pop_due(Timestamp(4)), None);
        let due: Vec<Entry> = std::iter::from_fn(|| timers.pop_due(Timestamp(7))).collect();
        assert_eq!(due, [entry(5, 1), entry(5, 2), entry(7, 0)]);
    }

    #[test]
    fn entries_of_dead_flows_are_swept_out_when_there_are_many() {
        let mut timers = Timers::default();
        (0..1029).for_each(|flow| timers.set(entry(1, flow)));
        timers.sweep(2, |_| false);
        assert_eq!(timers.heap.len(), 1029);
        timers.sweep(1, |entry| entry.flow < 3);
        assert_eq!(timers.heap.len(), 3);
    }
}
