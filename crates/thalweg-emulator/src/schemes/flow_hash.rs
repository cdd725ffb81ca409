//! Assigns flows to queues.

use thalweg_network::PortIndex;

use crate::packet::Packet;
use crate::router::Classify;

/// Chooses a queue by source, destination and flow. Packets of a flow share a queue, and flows are spread evenly. Two
/// of `n` flows share a queue with probability `1 / queues`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowHash {
    queues: u32,
}

impl FlowHash {
    /// Queues 0 to `queues - 1`.
    pub fn over(queues: u32) -> Self {
        FlowHash { queues }
    }

    /// The queue of a flow, identified by [`Packet::who`].
    #[inline]
    pub fn queue(self, who: u64) -> usize {
        // Two rounds of multiply and fold, as in the finaliser of MurmurHash3 (Appleby 2011), with other factors: the
        // ECMP hash must not determine the queue.
        let mixed = (who ^ who >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xA076_1D64_78BD_642F);
        (((mixed >> 32) * u64::from(self.queues)) >> 32) as usize
    }
}

impl<C> Classify<C> for FlowHash {
    #[inline]
    fn classify(&mut self, packet: &Packet<C>, _port: PortIndex) -> usize {
        self.queue(packet.who())
    }
}
