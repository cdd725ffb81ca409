//! DropTail: one queue per port, first in, first out. A full queue drops arrivals.

use thalweg_network::PortIndex;

use super::error::{SchemeError, Settings};
use crate::outcome::Reason;
use crate::packet::Packet;
use crate::queues::fifos::Fifos;
use crate::router::context::Context;
use crate::router::{Enqueue, OneQueue, Pattern, Plain, RouterPorts, Schedule};

/// Drops packets that find a full queue, whatever header fields a scheme adds to packets (type `C`).
#[derive(Clone, Copy, Debug, Default)]
pub struct DropWhenFull;

impl<C: Copy + Default> Enqueue<C, Fifos<Packet<C>>> for DropWhenFull {
    #[inline]
    fn enqueue(
        &mut self,
        packet: Packet<C>,
        port: PortIndex,
        _queue: usize,
        store: &mut Fifos<Packet<C>>,
        context: &mut Context<'_>,
    ) {
        if !store.push(port, packet) {
            context.drop(packet, port, Reason::Full);
        }
    }
}

/// Sends a port's only queue in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo;

impl<C: Copy + Default> Schedule<C, Fifos<Packet<C>>> for Fifo {
    #[inline]
    fn schedule(
        &mut self,
        port: PortIndex,
        store: &mut Fifos<Packet<C>>,
        _context: &mut Context<'_>,
    ) -> Option<Packet<C>> {
        store.pop(port)
    }
}

/// Settings of DropTail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DropTailConfig {
    /// The buffer of a port in packets of any length. Default 1,024 (Flexplane, section 5.1).
    pub buffer: u32,
}

impl Default for DropTailConfig {
    fn default() -> Self {
        DropTailConfig { buffer: 1_024 }
    }
}

impl DropTailConfig {
    /// Checks all settings.
    ///
    /// # Errors
    /// Names the first setting that is out of range.
    pub fn validate(&self) -> Result<(), SchemeError> {
        Settings("droptail").expect_buffer(self.buffer)
    }
}

/// A DropTail router. `Plain` means that it adds no header fields of its own.
pub type DropTail<R> = Pattern<R, OneQueue, DropWhenFull, Fifo, Fifos<Packet>>;

/// Builds a DropTail router.
///
/// # Panics
/// If the settings are not [valid](DropTailConfig::validate).
pub fn drop_tail<R>(route: R, ports: RouterPorts<'_>, config: &DropTailConfig) -> DropTail<R> {
    let store = Fifos::new(ports.ports(), config.buffer);
    Pattern { route, classify: OneQueue, enqueue: DropWhenFull, schedule: Fifo, store, headers: Plain }
}
