//! The flows that are fastest now: rates between two looks at the table.

use super::flow_table::FlowTable;
use super::record::FlowRecord;
use thalweg_wire::{BitRate, Bytes, Nanos, Timestamp};

/// A flow in progress with its rate since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRate {
    /// The flow so far.
    pub flow: FlowRecord,
    /// From the initiator.
    pub forward: BitRate,
    /// To the initiator.
    pub reverse: BitRate,
}

impl FlowRate {
    /// Both directions together.
    pub fn total(&self) -> BitRate {
        BitRate(self.forward.0.saturating_add(self.reverse.0))
    }
}

/// What the last look saw of each slot, 16 bytes a slot.
#[derive(Debug, Default)]
pub struct Rates {
    bytes: Vec<[u64; 2]>,
    looked: Timestamp,
}

impl Rates {
    /// Looks at all flows; `visit` gets each with its rate since the last look, at `now`.
    ///
    /// A flow that began since is taken from its beginning, but over no less than the time since the last look,
    /// so that a single packet does not read as an infinite rate.
    pub fn look(&mut self, table: &FlowTable, now: Timestamp, mut visit: impl FnMut(FlowRate)) {
        let span = now - self.looked;
        let slots = table.slots() as usize;
        self.bytes.resize(slots.max(self.bytes.len()), [0; 2]);
        for (slot, flow) in table.flows() {
            let (bytes, begun) = table.progress(slot);
            let seen = &mut self.bytes[slot as usize];
            let before =
                if begun > self.looked || seen[0] > bytes[0] || seen[1] > bytes[1] { [0; 2] } else { *seen };
            *seen = bytes;
            let rate = |way: usize| BitRate::of(Bytes(bytes[way] - before[way]), span);
            let (forward, reverse) =
                if span == Nanos::ZERO { Default::default() } else { (rate(0), rate(1)) };
            visit(FlowRate { flow, forward, reverse });
        }
        self.looked = now;
    }
}
