//! Links as delay lines. A lane holds the packets that are on their way to one node, by the slot in which they
//! arrive; within a slot, in the order in which they were sent.

use crate::packet::Packet;
use crate::slot::Slot;

/// Packets on their way.
#[derive(Clone, Debug)]
pub struct Lane<C> {
    /// What arrives in slot t is in bucket t modulo their number, a power of two.
    buckets: Box<[Vec<Packet<C>>]>,
    mask: usize,
}

impl<C: Copy> Lane<C> {
    /// A lane for packets that arrive at most `horizon` slots after they are sent, about `width` in each slot.
    pub fn new(horizon: u64, width: usize) -> Self {
        let buckets = (horizon as usize + 1).next_power_of_two();
        Lane { buckets: vec![Vec::with_capacity(width); buckets].into_boxed_slice(), mask: buckets - 1 }
    }

    /// Sends a packet that arrives in `slot`.
    #[inline(always)]
    pub fn send(&mut self, slot: Slot, packet: Packet<C>) {
        self.buckets[slot.0 as usize & self.mask].push(packet);
    }

    /// What arrives in `slot`.
    #[inline(always)]
    pub fn arriving(&self, slot: Slot) -> &[Packet<C>] {
        &self.buckets[slot.0 as usize & self.mask]
    }

    /// What arrives in `slot`, to be emptied by who takes it.
    #[inline(always)]
    pub fn arriving_mut(&mut self, slot: Slot) -> &mut Vec<Packet<C>> {
        &mut self.buckets[slot.0 as usize & self.mask]
    }

    /// Takes out whatever satisfies `lost` and has not arrived by the beginning of slot `now`, in order of arrival.
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

    /// Packets on their way.
    pub fn packets(&self) -> usize {
        self.buckets.iter().map(Vec::len).sum()
    }
}
