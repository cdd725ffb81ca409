//! Strict priority: several queues a port, and whatever waits in the first is sent first.
//!
//! DSCP `d` goes to queue `min(d, queues - 1)`, and the first queue that is not empty is served (Flexplane, figure
//! 5): code point 0 is the most urgent. This turns around RFC 2474, section 4.2.2.1, where of two class selectors the
//! higher number is to fare no worse: an experiment that uses class selectors counts them from the other end.

use thalweg_network::PortIndex;

use super::error::{SchemeError, Settings};
use crate::outcome::Reason;
use crate::packet::Packet;
use crate::queues::bank::{MAX_QUEUES, QueueBank};
use crate::router::context::Context;
use crate::router::{Classify, Enqueue, Pattern, Plain, Schedule, Shape};

/// Chooses a queue by DSCP: the code point's own, or the last.
#[derive(Clone, Copy, Debug)]
pub struct ByDscp {
    /// Queues at a port.
    pub queues: u8,
}

impl<C> Classify<C> for ByDscp {
    #[inline]
    fn classify(&mut self, packet: &Packet<C>, _port: PortIndex) -> usize {
        usize::from(packet.dscp().min(self.queues - 1))
    }
}

/// Drops what finds its queue, one of several, full.
#[derive(Clone, Copy, Debug, Default)]
pub struct TailDropEach;

impl<C: Copy + Default> Enqueue<C, QueueBank<Packet<C>>> for TailDropEach {
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

/// Sends from the first queue that is not empty.
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
    /// Queues at a port. 64: one for each DSCP (Flexplane, section 4).
    pub queues: u8,
    /// Packets that each queue has room for. 1,024, as DropTail has (Flexplane, section 5.1).
    pub buffer: u32,
}

impl Default for PriorityConfig {
    fn default() -> Self {
        PriorityConfig { queues: MAX_QUEUES as u8, buffer: 1_024 }
    }
}

impl PriorityConfig {
    /// Looks at every setting.
    ///
    /// # Errors
    /// Names the first that is out of range.
    pub fn validate(&self) -> Result<(), SchemeError> {
        let settings = Settings("priority");
        let holds = (1..=MAX_QUEUES).contains(&usize::from(self.queues));
        settings.expect("queues", self.queues, holds, "1 to 64")?;
        settings.expect_buffer(self.buffer)
    }
}

/// A router with strict priorities.
pub type Priority<R> = Pattern<R, ByDscp, TailDropEach, FirstQueue, QueueBank<Packet>>;

/// Builds a router with strict priorities.
///
/// # Panics
/// If the settings are not [valid](PriorityConfig::validate).
pub fn priority<R>(route: R, shape: Shape<'_>, config: &PriorityConfig) -> Priority<R> {
    let store = QueueBank::new(shape.ports(), usize::from(config.queues), config.buffer);
    let classify = ByDscp { queues: config.queues };
    Pattern { route, classify, enqueue: TailDropEach, schedule: FirstQueue, store, headers: Plain }
}

#[cfg(test)]
mod tests;
