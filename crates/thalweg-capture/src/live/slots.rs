//! A ring of slots shared with the kernel, one frame each (TPACKET_V2 of packet(7)).
//!
//! A slot belongs to the kernel or to us, depending on its status word. It changes hands like the blocks of
//! [`super::ring`]: acquire to take it, release to return it, in the order of the ring.

#![expect(unsafe_code, reason = "memory shared with the kernel")]

use std::io;
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::tpacket2_hdr;

use super::ring::map_shared;
use super::socket::PacketSocket;

/// The maximum bytes before a frame: the header, an address and the alignment of the IP header. At most 80, rounded
/// up.
pub(super) const OVERHEAD: u32 = 128;

/// The kernel's allocation unit; slots are powers of two, so that they are contiguous.
const BLOCK_SIZE: u32 = 64 << 10;

/// A mapped ring. The kernel keeps it alive even after the socket is closed.
#[derive(Debug)]
pub(super) struct Slots {
    base: NonNull<u8>,
    slot_size: usize,
    count: usize,
    /// The first held slot, or the next one.
    current: usize,
    held: usize,
}

// SAFETY: the mapping belongs to the `Slots` alone, and no address in it is tied to a thread.
unsafe impl Send for Slots {}

impl Slots {
    /// Allocates and maps a ring of about `size` bytes for `socket`, which must use TPACKET_V2, with space for
    /// `longest` bytes of each frame.
    pub(super) fn map(socket: &PacketSocket, size: u64, longest: u32) -> io::Result<Slots> {
        let slot_size = (longest + OVERHEAD).next_power_of_two().min(BLOCK_SIZE);
        let blocks = u32::try_from(size / u64::from(BLOCK_SIZE)).unwrap_or(u32::MAX).max(1);
        let count = blocks * (BLOCK_SIZE / slot_size);
        socket.allocate_slots(&libc::tpacket_req {
            tp_block_size: BLOCK_SIZE,
            tp_block_nr: blocks,
            tp_frame_size: slot_size,
            tp_frame_nr: count,
        })?;
        let base = map_shared(socket.raw(), blocks as usize * BLOCK_SIZE as usize)?;
        Ok(Slots { base, slot_size: slot_size as usize, count: count as usize, current: 0, held: 0 })
    }

    /// Returns the bytes of a slot.
    pub(super) fn slot_size(&self) -> usize {
        self.slot_size
    }

    /// Whether the next slot is ours.
    pub(super) fn is_ready(&self) -> bool {
        self.is_ours(self.current + self.held)
    }

    /// Returns the contiguous slots that are ours, at most `max` and none beyond the end of the ring. They stay ours
    /// until [`release`](Self::release).
    pub(super) fn hold(&mut self, max: usize) -> &mut [u8] {
        let last = self.count.min(self.current + max);
        self.held = (self.current..last).take_while(|&slot| self.is_ours(slot)).count();
        let (first, length) = (self.slot(self.current).as_ptr(), self.held * self.slot_size);
        // SAFETY: these slots are within the mapping, the kernel does not touch them while they are ours, and no
        // other code here does, since the slice borrows the ring exclusively.
        unsafe { std::slice::from_raw_parts_mut(first, length) }
    }

    /// Returns the held slots to the kernel.
    pub(super) fn release(&mut self) {
        for slot in self.current..self.current + self.held {
            self.status(slot).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
        self.current = (self.current + self.held) % self.count;
        self.held = 0;
    }

    fn is_ours(&self, slot: usize) -> bool {
        self.status(slot % self.count).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    fn status(&self, slot: usize) -> &AtomicU32 {
        let status = self.slot(slot).as_ptr().wrapping_add(offset_of!(tpacket2_hdr, tp_status));
        // SAFETY: the status word is within the slot and aligned by the kernel, which also accesses it as a whole.
        unsafe { AtomicU32::from_ptr(status.cast()) }
    }

    fn slot(&self, slot: usize) -> NonNull<u8> {
        debug_assert!(slot < self.count);
        // SAFETY: the slot is within the mapping.
        unsafe { self.base.add(slot * self.slot_size) }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // SAFETY: mapped with this length; no slice of it outlives the ring. It cannot fail for a mapping.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.count * self.slot_size) };
    }
}
