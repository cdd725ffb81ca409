//! What can wait, and how much of it does.

use crate::packet::Packet;

/// What waits at a port or in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Bytes, framing included.
    pub bytes: u64,
}

/// What a queue can hold: something of a length.
pub trait Queued: Copy + Default {
    /// Bytes that it occupies on a link.
    fn length(&self) -> u64;
}

impl<C: Copy + Default> Queued for Packet<C> {
    #[inline]
    fn length(&self) -> u64 {
        u64::from(Packet::length(self))
    }
}
