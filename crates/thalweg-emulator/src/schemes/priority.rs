//! Strict priority: several queues per port. The first non-empty queue is served.
//!
//! DSCP `d` goes to queue `min(d, queues - 1)` (Flexplane, figure 5), so code point 0 is the most urgent. This reverses
//! RFC 2474, section 4.2.2.1, where the higher class selector must not fare worse. Experiments with class selectors
//! count them from the other end.

use thalweg_network::PortIndex;

use super::error::{SchemeError, Settings};
use crate::outcome::Reason;
use crate::packet::Packet;
use crate::queues::bank::{MAX_QUEUES, QueueBank};
use crate::router::context::Context;
use crate::router::{Classify, Enqueue, Pattern, Plain, RouterPorts, Schedule};

/// Chooses a queue by DSCP: the code point's own queue, or the last.
#[derive(Clone, Copy, Debug)]
pub struct ByDscp {
    /// Queues per port.
    pub queues: u8,
}

impl<C> Classify<C> for ByDscp {
    #[inline]
    fn classify(&mut self, packet: &Packet<C>, _port: PortIndex) -> usize {
        usize::from(packet.dscp().min(self.queues - 1))
    }
}

/// Drops packets that find their queue full.
#[derive(Clone, Copy, Debug, Default)]
pub struct DropWhenQueueFull;

impl<C: Copy + Default> Enqueue<C, QueueBank<Packet<C>>> for DropWhenQueueFull {
    #[inline]
    fn enqueue(
        &mut self,
        packet: Packet<C>,
        port: PortIndex,
        queue: usize,
        store: &mut QueueBank<Packet<C>>,
        context: &mut Context<'_>,
    ) {
        if !store.push(port, queue, packet) {
            context.drop(packet, port, Reason::Full);
        }
    }
}

/// Sends from the first non-empty queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstQueue;

impl<C: Copy + Default> Schedule<C, QueueBank<Packet<C>>> for FirstQueue {
    #[inline]
    fn schedule(
        &mut self,
        port: PortIndex,
        store: &mut QueueBank<Packet<C>>,
        _context: &mut Context<'_>,
    ) -> Option<Packet<C>> {
        let occupied = store.occupied(port);
        if occupied == 0 { None } else { store.pop(port, occupied.trailing_zeros() as usize) }
    }
}

/// Settings of strict priority.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PriorityConfig {
    /// Queues per port. 64: one per DSCP (Flexplane, section 4).
    pub queues: u8,
    /// The capacity of each queue in packets. 1,024, like DropTail (Flexplane, section 5.1).
    pub buffer: u32,
}

impl Default for PriorityConfig {
    fn default() -> Self {
        PriorityConfig { queues: MAX_QUEUES as u8, buffer: 1_024 }
    }
}

impl PriorityConfig {
    /// Checks all settings.
    ///
    /// # Errors
    /// Names the first setting that is out of range.
    pub fn validate(&self) -> Result<(), SchemeError> {
        let settings = Settings("priority");
        let holds = (1..=MAX_QUEUES).contains(&usize::from(self.queues));
        settings.expect("queues", self.queues, holds, "1 to 64")?;
        settings.expect_buffer(self.buffer)
    }
}

/// A router with strict priorities.
pub type Priority<R> = Pattern<R, ByDscp, DropWhenQueueFull, FirstQueue, QueueBank<Packet>>;

/// Builds a router with strict priorities.
///
/// # Panics
/// If the settings are not [valid](PriorityConfig::validate).
pub fn priority<R>(route: R, ports: RouterPorts<'_>, config: &PriorityConfig) -> Priority<R> {
    let store = QueueBank::new(ports.ports(), usize::from(config.queues), config.buffer);
    let classify = ByDscp { queues: config.queues };
    Pattern { route, classify, enqueue: DropWhenQueueFull, schedule: FirstQueue, store, headers: Plain }
}

#[cfg(test)]
mod tests;
