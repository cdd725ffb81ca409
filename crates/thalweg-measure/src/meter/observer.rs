//! Who keeps more of a flow than the flow table does.
//!
//! The table finds the slot of a packet's flow; an observer has arrays of its own by that slot, so that whatever is
//! measured of flows costs one look-up.

use thalweg_wire::{Direction, FlowKey, Packet};

/// Told of every packet, and of the end of every flow, by the slot that the flow has in the table.
pub trait Observer {
    /// A packet of this slot is about to come, most likely: a chance to fetch what it will touch.
    #[inline(always)]
    fn prefetch(&self, slot: u32, direction: Direction) {
        let _ = (slot, direction);
    }

    /// A packet, counted in this slot. Packets come in their order.
    fn packet(&mut self, slot: u32, direction: Direction, packet: &Packet);

    /// The flow of this slot has ended; what comes in the slot next is another flow. `key` gives its keys.
    fn end(&mut self, slot: u32, key: impl Fn(Direction) -> FlowKey);
}

/// Nobody.
impl Observer for () {
    #[inline(always)]
    fn packet(&mut self, _: u32, _: Direction, _: &Packet) {}

    #[inline(always)]
    fn end(&mut self, _: u32, _: impl Fn(Direction) -> FlowKey) {}
}
