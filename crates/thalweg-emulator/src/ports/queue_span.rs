//! The queue of a port over a time: its mean and its maximum, from one look in each slot, after the routers have sent.
//!
//! A shard looks at the queues of watched ports only, and costs nothing without any. A look costs as much as
//! [`Router::backlog`](crate::router::Router::backlog): for most schemes one step per waiting packet.

use thalweg_network::PortIndex;

use crate::queues::backlog::Backlog;

/// Looks at a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueSpan {
    /// Looks, one per slot.
    pub looks: u64,
    /// Sum of the packets found.
    pub packets: u64,
    /// The most packets found.
    pub max_packets: u32,
    /// Sum of the bytes found, framing included.
    pub bytes: u64,
    /// The most bytes found.
    pub max_bytes: u64,
}

impl QueueSpan {
    /// Adds a look.
    #[inline]
    pub fn add(&mut self, queue: Backlog) {
        self.looks += 1;
        self.packets += u64::from(queue.packets);
        self.max_packets = self.max_packets.max(queue.packets);
        self.bytes += queue.bytes;
        self.max_bytes = self.max_bytes.max(queue.bytes);
    }

    /// Mean packets; 0 without looks.
    pub fn mean_packets(&self) -> f64 {
        self.packets as f64 / self.looks.max(1) as f64
    }

    /// Mean bytes; 0 without looks.
    pub fn mean_bytes(&self) -> f64 {
        self.bytes as f64 / self.looks.max(1) as f64
    }
}

/// A port whose queue a shard looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchedQueue {
    /// The position of the router in its shard.
    pub(crate) router: usize,
    pub(crate) port: PortIndex,
    pub(crate) span: QueueSpan,
}
