//! Batches and requests that a switch has not answered yet.

use std::collections::VecDeque;

use thalweg_wire::openflow::Xid;
use thalweg_wire::{Nanos, Timestamp};

/// Messages with consecutive xids, of which the last one is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry<W> {
    pub(crate) last: Xid,
    /// Number of messages before the last.
    pub(crate) before: u32,
    pub(crate) sent: Timestamp,
    pub(crate) deadline: Timestamp,
    /// The waiter; `None` once notified of an error.
    pub(crate) waiter: Option<W>,
}

impl<W> Entry<W> {
    /// Returns the index of the message with this xid, from 0. Xids wrap around.
    fn position(&self, xid: Xid) -> Option<u32> {
        let behind = self.last.0.wrapping_sub(xid.0);
        self.before.checked_sub(behind)
    }

    /// Returns the time from sending to `now`.
    pub(crate) fn took(&self, now: Timestamp) -> Nanos {
        now - self.sent
    }
}

/// Entries in the order sent, which is the order of answers (section 6.2), so that searches are short. At most
/// `capacity`.
#[derive(Debug)]
pub(crate) struct Unanswered<W> {
    entries: VecDeque<Entry<W>>,
    capacity: usize,
}

/// The capacity is reached.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl<W> Unanswered<W> {
    pub(crate) fn new(capacity: usize) -> Unanswered<W> {
        Unanswered { entries: VecDeque::new(), capacity }
    }

    pub(crate) fn add(&mut self, entry: Entry<W>) -> Result<(), Full> {
        if self.entries.len() >= self.capacity {
            return Err(Full);
        }
        self.entries.push_back(entry);
        Ok(())
    }

    /// Returns the entry that this xid answers, if pending.
    pub(crate) fn answered(&mut self, xid: Xid) -> Option<&mut Entry<W>> {
        self.entries.iter_mut().find(|entry| entry.last == xid)
    }

    /// Removes and returns that entry.
    pub(crate) fn take(&mut self, xid: Xid) -> Option<Entry<W>> {
        let at = self.entries.iter().position(|entry| entry.last == xid)?;
        self.entries.remove(at)
    }

    /// Returns the entry with a message of this xid, and the index of the message. The entry stays: its answer is
    /// still to come.
    pub(crate) fn with_message(&mut self, xid: Xid) -> Option<(&mut Entry<W>, u32)> {
        self.entries.iter_mut().find_map(|entry| entry.position(xid).map(|position| (entry, position)))
    }

    /// Removes and returns the entries past their deadline.
    pub(crate) fn take_expired(&mut self, now: Timestamp) -> Vec<Entry<W>> {
        self.take_if(|entry| entry.deadline <= now)
    }

    /// Removes and returns all entries.
    pub(crate) fn take_all(&mut self) -> Vec<Entry<W>> {
        self.take_if(|_| true)
    }

    fn take_if(&mut self, condition: impl Fn(&Entry<W>) -> bool) -> Vec<Entry<W>> {
        let mut taken = Vec::new();
        for _ in 0..self.entries.len() {
            let entry = self.entries.pop_front().expect("counted");
            if condition(&entry) { taken.push(entry) } else { self.entries.push_back(entry) }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(last: u32, before: u32, deadline: u64) -> Entry<char> {
        let (sent, deadline) = (Timestamp(10), Timestamp(deadline));
        Entry { last: Xid(last), before, sent, deadline, waiter: Some('w') }
    }

    #[test]
    fn an_answer_removes_only_the_entry_of_its_xid() {
        let mut unanswered = Unanswered::new(4);
        unanswered.add(entry(3, 2, 100)).unwrap();
        unanswered.add(entry(7, 3, 100)).unwrap();
        assert_eq!(unanswered.take(Xid(6)), None, "only the last message is answered");
        assert_eq!(unanswered.take(Xid(7)), Some(entry(7, 3, 100)));
        assert_eq!(unanswered.take(Xid(7)), None);
    }

    #[test]
    fn an_error_belongs_to_the_entry_with_its_xid() {
        let mut unanswered = Unanswered::new(4);
        unanswered.add(entry(3, 2, 100)).unwrap();
        unanswered.add(entry(7, 3, 100)).unwrap();
        let mut found = |xid| unanswered.with_message(Xid(xid)).map(|(entry, at)| (entry.last.0, at));
        assert_eq!(
            [found(1), found(3), found(4), found(7)],
            [Some((3, 0)), Some((3, 2)), Some((7, 0)), Some((7, 3))]
        );
        assert_eq!([found(0), found(8)], [None, None]);
    }

    #[test]
    fn xids_wrap_around() {
        let mut unanswered = Unanswered::new(1);
        unanswered.add(entry(1, 3, 100)).unwrap();
        let mut found = |xid| unanswered.with_message(Xid(xid)).map(|(_, at)| at);
        assert_eq!([found(u32::MAX - 1), found(u32::MAX), found(1)], [Some(0), Some(1), Some(3)]);
        assert_eq!([found(u32::MAX - 2), found(2)], [None, None]);
    }

    #[test]
    fn expired_entries_are_removed_and_the_rest_keep_their_order() {
        let mut unanswered = Unanswered::new(4);
        for (xid, deadline) in [(1, 50), (2, 20), (3, 60), (4, 20)] {
            unanswered.add(entry(xid, 0, deadline)).unwrap();
        }
        assert_eq!(unanswered.add(entry(5, 0, 1)), Err(Full));
        let late: Vec<_> = unanswered.take_expired(Timestamp(20)).iter().map(|entry| entry.last.0).collect();
        assert_eq!(late, [2, 4]);
        assert_eq!(unanswered.take_expired(Timestamp(20)), []);
        let rest: Vec<_> = unanswered.take_all().iter().map(|entry| entry.last.0).collect();
        assert_eq!(rest, [1, 3]);
    }
}
