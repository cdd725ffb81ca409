//! Current rates of all flows, from two consecutive queries of the table.

use super::flow_table::FlowTable;
use super::record::FlowRecord;
use thalweg_wire::{BitRate, Bytes, Nanos, Timestamp};

/// A live flow with its rates since the last query. Index 0 of a pair is from the initiator, index 1 to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRate {
    /// The flow so far.
    pub flow: FlowRecord,
    /// Bits per second.
    pub bit_rate: [BitRate; 2],
    /// Packets per second, rounded down.
    pub packet_rate: [u64; 2],
}

impl FlowRate {
    /// Returns the rate of both directions together.
    pub fn total(&self) -> BitRate {
        BitRate(self.bit_rate[0].0.saturating_add(self.bit_rate[1].0))
    }
}

/// The traffic of a slot at a query.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Bytes per direction since the flow began.
    pub(super) bytes: [u64; 2],
    /// Packets, modulo 2^32.
    pub(super) packets: [u32; 2],
}

/// The traffic of each slot at the last query, 24 bytes per slot.
#[derive(Debug, Default)]
pub struct Rates {
    seen: Vec<Progress>,
    last_query: Timestamp,
}

impl Rates {
    /// Visits all flows; `visit` gets each with its rates from the last query to `now`.
    ///
    /// For a flow that began since, the rates cover all of its traffic, but over no less than the time since the last
    /// query, so that a single packet does not give an infinite rate.
    pub fn look(&mut self, table: &FlowTable, now: Timestamp, mut visit: impl FnMut(FlowRate)) {
        let span = now - self.last_query;
        let slots = table.slots() as usize;
        self.seen.resize(slots.max(self.seen.len()), Progress::default());
        for (slot, flow) in table.flows() {
            let (progress, begun) = table.progress(slot);
            let seen = &mut self.seen[slot as usize];
            let is_another =
                begun > self.last_query || (0..2).any(|side| seen.bytes[side] > progress.bytes[side]);
            let before = if is_another { Progress::default() } else { *seen };
            *seen = progress;
            let bytes = |side: usize| Bytes(progress.bytes[side] - before.bytes[side]);
            let packets = |side: usize| progress.packets[side].wrapping_sub(before.packets[side]);
            let (bit_rate, packet_rate) = match span {
                Nanos::ZERO => Default::default(),
                _ => (
                    [0, 1].map(|side| BitRate::of(bytes(side), span)),
                    [0, 1].map(|side| per_second(packets(side), span)),
                ),
            };
            visit(FlowRate { flow, bit_rate, packet_rate });
        }
        self.last_query = now;
    }
}

/// Returns packets per second, rounded down. `span` is above zero.
fn per_second(packets: u32, span: Nanos) -> u64 {
    (u128::from(packets) * 1_000_000_000 / u128::from(span.0)).try_into().unwrap_or(u64::MAX)
}
