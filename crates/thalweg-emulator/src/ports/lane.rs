//! Links as delay lines. A lane holds the packets in flight to one node, by the slot of their arrival; within a slot,
//! in the order of sending.

use crate::packet::Packet;
use crate::slot::Slot;

/// Packets in flight.
#[derive(Clone, Debug)]
pub struct Lane<C> {
    /// Arrivals in slot t are in bucket t modulo the number of buckets, a power of two.
    buckets: Box<[Vec<Packet<C>>]>,
    mask: usize,
}

impl<C: Copy> Lane<C> {
    /// A lane for packets that arrive at most `horizon` slots after sending, about `width` per slot.
    pub fn new(horizon: u64, width: usize) -> Self {
        let buckets = (horizon as usize + 1).next_power_of_two();
        Lane { buckets: vec![Vec::with_capacity(width); buckets].into_boxed_slice(), mask: buckets - 1 }
    }

    /// Sends a packet that arrives in `slot`.
    #[inline(always)]
    pub fn send(&mut self, slot: Slot, packet: Packet<C>) {
        self.buckets[slot.0 as usize & self.mask].push(packet);
    }

    /// The arrivals in `slot`.
    #[inline(always)]
    pub fn arriving(&self, slot: Slot) -> &[Packet<C>] {
        &self.buckets[slot.0 as usize & self.mask]
    }

    /// Mutable access to the arrivals in `slot`. The receiver empties it.
    #[inline(always)]
    pub fn arriving_mut(&mut self, slot: Slot) -> &mut Vec<Packet<C>> {
        &mut self.buckets[slot.0 as usize & self.mask]
    }

    /// Removes packets that satisfy `lost` and have not arrived by the start of slot `now`, in order of arrival.
    pub fn lose(
        &mut self,
        now: Slot,
        mut lost: impl FnMut(&Packet<C>) -> bool,
        mut loss: impl FnMut(Packet<C>),
    ) {
        for offset in 1..self.buckets.len() {
            let bucket = &mut self.buckets[(now.0 as usize + offset) & self.mask];
            bucket.extract_if(.., |packet| lost(packet)).for_each(&mut loss);
        }
    }

    /// The number of packets in flight.
    pub fn packets(&self) -> usize {
        self.buckets.iter().map(Vec::len).sum()
    }
}
