//! Flows that wait for a place among the redirections, first come, first served.

use std::collections::BTreeMap;

use thalweg_wire::FlowKey;

use super::message::Reason;

/// The list. Flows beyond its capacity are not noted.
#[derive(Debug)]
pub(super) struct WaitingList {
    capacity: usize,
    next: u64,
    by_number: BTreeMap<u64, (FlowKey, Reason)>,
    numbers: BTreeMap<FlowKey, u64>,
}

impl WaitingList {
    pub(super) fn new(capacity: usize) -> WaitingList {
        WaitingList { capacity, next: 0, by_number: BTreeMap::new(), numbers: BTreeMap::new() }
    }

    /// Appends a flow, unless it waits already or the list is full.
    pub(super) fn push(&mut self, key: FlowKey, reason: Reason) {
        if self.numbers.len() >= self.capacity || self.numbers.contains_key(&key) {
            return;
        }
        self.numbers.insert(key, self.next);
        self.by_number.insert(self.next, (key, reason));
        self.next += 1;
    }

    /// Removes a flow, if it waits.
    pub(super) fn remove(&mut self, key: &FlowKey) {
        if let Some(number) = self.numbers.remove(key) {
            self.by_number.remove(&number);
        }
    }

    /// Takes the first flow.
    pub(super) fn pop(&mut self) -> Option<(FlowKey, Reason)> {
        let (_, (key, reason)) = self.by_number.pop_first()?;
        self.numbers.remove(&key);
        Some((key, reason))
    }
}
