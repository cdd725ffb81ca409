//! The events of each second: records to export, and flows whose next entry starts.

use std::collections::VecDeque;

use thalweg_wire::flow_export::Record;

use crate::random::Random;

/// A planted flow at an observation point, scheduled for its next entry.
#[derive(Clone, Debug)]
pub(super) struct ScheduledFlow {
    /// Number of the planted flow.
    pub flow: u32,
    /// Observation point on its path.
    pub point: u8,
    /// The first packet of the entry.
    pub first: u64,
    pub random: Random,
}

/// The events of one second.
#[derive(Debug, Default)]
pub(super) struct Second {
    pub records: Vec<Record>,
    pub flows: Vec<ScheduledFlow>,
}

/// Seconds from the current one up to the last with an event.
#[derive(Debug, Default)]
pub(super) struct Calendar {
    now: u64,
    seconds: VecDeque<Second>,
    /// Past seconds, kept to reuse their memory.
    past: Vec<Second>,
}

impl Calendar {
    /// Returns the events of a second, which must not be past.
    #[inline]
    pub(super) fn at(&mut self, second: u64) -> &mut Second {
        debug_assert!(second >= self.now, "{second} is past: now is {}", self.now);
        let ahead = second.saturating_sub(self.now) as usize;
        while self.seconds.len() <= ahead {
            self.seconds.push_back(self.past.pop().unwrap_or_default());
        }
        &mut self.seconds[ahead]
    }

    /// Returns the current second.
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Advances to the next second, and swaps the records of the past one with the empty `records`.
    pub(super) fn next(&mut self, records: &mut Vec<Record>) {
        self.now += 1;
        if let Some(mut second) = self.seconds.pop_front() {
            std::mem::swap(records, &mut second.records);
            second.records.clear();
            self.past.push(second);
        }
    }

    /// Whether no events are left.
    pub(super) fn is_empty(&self) -> bool {
        self.seconds.iter().all(|second| second.records.is_empty() && second.flows.is_empty())
    }
}
