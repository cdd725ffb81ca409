//! What is to happen in which second: records to be exported, observation points at which a flow goes on.

use std::collections::VecDeque;

use thalweg_wire::flow_export::Record;

use crate::random::Random;

/// A planted flow at an observation point, in wait for its next entry.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    /// Its number among planted flows.
    pub flow: u32,
    /// The observation point on its path.
    pub point: u8,
    /// The packet that begins the entry.
    pub first: u64,
    pub random: Random,
}

/// One second.
#[derive(Debug, Default)]
pub(super) struct Second {
    pub records: Vec<Record>,
    pub waiting: Vec<Waiting>,
}

/// Seconds from the present one on, as far as something is known of them.
#[derive(Debug, Default)]
pub(super) struct Calendar {
    now: u64,
    seconds: VecDeque<Second>,
    /// Seconds that are over; their memory is used again.
    over: Vec<Second>,
}

impl Calendar {
    /// A second not before the present one.
    #[inline]
    pub(super) fn at(&mut self, second: u64) -> &mut Second {
        debug_assert!(second >= self.now, "{second} is over, it is {}", self.now);
        let ahead = second.saturating_sub(self.now) as usize;
        while self.seconds.len() <= ahead {
            self.seconds.push_back(self.over.pop().unwrap_or_default());
        }
        &mut self.seconds[ahead]
    }

    /// The present second.
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Goes on to the next second; the records of the one that is over are exchanged for the empty `records`.
    pub(super) fn next(&mut self, records: &mut Vec<Record>) {
        self.now += 1;
        if let Some(mut second) = self.seconds.pop_front() {
            std::mem::swap(records, &mut second.records);
            second.records.clear();
            self.over.push(second);
        }
    }

    /// Whether nothing more is known.
    pub(super) fn is_empty(&self) -> bool {
        self.seconds.iter().all(|second| second.records.is_empty() && second.waiting.is_empty())
    }
}
