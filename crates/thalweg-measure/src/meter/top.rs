//! Current rates of all flows, from two consecutive queries of the table.

use super::flow_table::FlowTable;
use super::record::FlowRecord;
use thalweg_wire::{BitRate, Bytes, Nanos, Timestamp};

/// A live flow with its rate since the last query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRate {
    /// The flow so far.
    pub flow: FlowRecord,
    /// The rate from the initiator.
    pub forward: BitRate,
    /// The rate to the initiator.
    pub reverse: BitRate,
}

impl FlowRate {
    /// Returns the rate of both directions together.
    pub fn total(&self) -> BitRate {
        BitRate(self.forward.0.saturating_add(self.reverse.0))
    }
}

/// The bytes of each slot at the last query, 16 bytes per slot.
#[derive(Debug, Default)]
pub struct Rates {
    bytes: Vec<[u64; 2]>,
    last_query: Timestamp,
}

impl Rates {
    /// Visits all flows; `visit` gets each with its rate from the last query to `now`.
    ///
    /// For a flow that began since, the rate covers all of its bytes, but over no less than the time since the last
    /// query, so that a single packet does not give an infinite rate.
    pub fn look(&mut self, table: &FlowTable, now: Timestamp, mut visit: impl FnMut(FlowRate)) {
        let span = now - self.last_query;
        let slots = table.slots() as usize;
        self.bytes.resize(slots.max(self.bytes.len()), [0; 2]);
        for (slot, flow) in table.flows() {
            let (bytes, begun) = table.progress(slot);
            let seen = &mut self.bytes[slot as usize];
            let before = if begun > self.last_query || seen[0] > bytes[0] || seen[1] > bytes[1] {
                [0; 2]
            } else {
                *seen
            };
            *seen = bytes;
            let rate = |side: usize| BitRate::of(Bytes(bytes[side] - before[side]), span);
            let (forward, reverse) =
                if span == Nanos::ZERO { Default::default() } else { (rate(0), rate(1)) };
            visit(FlowRate { flow, forward, reverse });
        }
        self.last_query = now;
    }
}
