//! Per-flow state outside the flow table.
//!
//! The table finds the slot of a packet's flow. An observer keeps its own arrays by slot, so all measurements of a
//! flow share one lookup.

use thalweg_wire::{Direction, FlowKey, Packet};

use super::flow_table::Output;

/// Receives every packet, and the end of every flow, with the flow's slot in the table.
pub trait Observer {
    /// Prefetches the memory for a packet that will most likely be of this slot.
    #[inline(always)]
    fn prefetch(&self, slot: u32, direction: Direction) {
        let _ = (slot, direction);
    }

    /// Handles a packet that was counted in this slot. Packets arrive in order.
    fn packet(&mut self, slot: u32, direction: Direction, packet: &Packet);

    /// Handles the end of the flow in this slot; the slot's next packet belongs to another flow. `key` returns its
    /// keys.
    fn end(&mut self, slot: u32, key: impl Fn(Direction) -> FlowKey);

    /// Handles the record of the flow in this slot, or of a part of it, which is the last of `output`. `initiator` is the
    /// direction of the record's `forward`. The end of a flow comes before its record.
    #[inline(always)]
    fn record(&mut self, slot: u32, initiator: Direction, output: &mut Output) {
        let _ = (slot, initiator, output);
    }
}

/// Does nothing.
impl Observer for () {
    #[inline(always)]
    fn packet(&mut self, _: u32, _: Direction, _: &Packet) {}

    #[inline(always)]
    fn end(&mut self, _: u32, _: impl Fn(Direction) -> FlowKey) {}
}
