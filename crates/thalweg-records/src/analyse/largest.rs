//! Keeps the largest flowsets.

use std::cmp::{Ordering, Reverse};

use super::flowset::Flowset;

/// What flowsets are ordered by, largest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowsetOrder {
    /// Bytes.
    Bytes,
    /// Duration.
    Duration,
    /// Mean rate. Flowsets without a duration come last.
    Rate,
    /// Number of flows.
    Flows,
}

impl FlowsetOrder {
    /// Compares, the largest first; ties by start and addresses.
    fn compare(self, one: &Flowset, other: &Flowset) -> Ordering {
        let tie = |set: &Flowset| (set.flow_start_us, set.source_address, set.destination_address);
        let amount = |set: &Flowset| match self {
            FlowsetOrder::Bytes => set.octets,
            FlowsetOrder::Duration => set.duration_us(),
            FlowsetOrder::Flows => set.flows,
            FlowsetOrder::Rate => 0,
        };
        let by_rate = match self {
            FlowsetOrder::Rate => {
                let rate = |set: &Flowset| set.rate_bps().unwrap_or(-1.0);
                rate(other).total_cmp(&rate(one))
            }
            _ => Ordering::Equal,
        };
        by_rate
            .then_with(|| Reverse(amount(one)).cmp(&Reverse(amount(other))))
            .then_with(|| tie(one).cmp(&tie(other)))
    }
}

/// The largest flowsets: at most twice as many as wanted are held. Empty by default, and then none are kept.
#[derive(Debug, Default)]
pub(super) struct Largest {
    wanted: Option<(FlowsetOrder, usize)>,
    sets: Vec<Flowset>,
}

impl Largest {
    /// Creates an empty list of at most so many flowsets.
    pub(super) fn new(wanted: Option<(FlowsetOrder, usize)>) -> Largest {
        Largest { wanted, sets: Vec::new() }
    }

    /// Adds a flowset.
    #[inline]
    pub(super) fn push(&mut self, set: &Flowset) {
        let Some((_, limit)) = self.wanted else { return };
        self.sets.push(*set);
        if self.sets.len() >= (2 * limit).max(64) {
            self.truncate();
        }
    }

    /// Moves all flowsets of another list to this one.
    pub(super) fn append(&mut self, other: &mut Largest) {
        self.sets.append(&mut other.sets);
        self.truncate();
    }

    /// Returns the largest, in order.
    pub(super) fn into_sorted(mut self) -> Vec<Flowset> {
        let Some((order, limit)) = self.wanted else { return Vec::new() };
        self.sets.sort_unstable_by(|one, other| order.compare(one, other));
        self.sets.truncate(limit);
        self.sets
    }

    fn truncate(&mut self) {
        let Some((order, limit)) = self.wanted else { return };
        if self.sets.len() > limit {
            self.sets.select_nth_unstable_by(limit, |one, other| order.compare(one, other));
            self.sets.truncate(limit);
        }
    }
}
