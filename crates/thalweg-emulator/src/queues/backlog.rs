//! Queued packets and their number.

use crate::packet::Packet;

/// The queue length of a port or queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Bytes, framing included.
    pub bytes: u64,
}

/// An item of a queue: something with a length.
pub trait Queued: Copy + Default {
    /// Bytes on a link.
    fn length(&self) -> u64;
}

impl<C: Copy + Default> Queued for Packet<C> {
    #[inline]
    fn length(&self) -> u64 {
        u64::from(Packet::length(self))
    }
}
