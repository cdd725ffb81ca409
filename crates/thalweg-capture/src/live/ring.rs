//! The memory shared with the kernel, one block at a time.
//!
//! A block belongs to the kernel or to us, depending on its status word. Only its owner reads and writes the rest of
//! it, and passes it on by writing the status last. An acquire load of the word therefore sees everything that the
//! kernel wrote, and a release store ensures that the kernel sees our writes completed. Blocks come in ring order.

#![expect(unsafe_code, reason = "memory shared with the kernel")]

use std::io;
use std::mem::offset_of;
use std::os::fd::RawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use super::socket::PacketSocket;

/// The geometry of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    /// Bytes per block; a power of two and at least a page.
    pub(super) block_size: u32,
    /// The number of blocks; at least two, less than 4 GiB together.
    pub(super) block_count: u32,
    /// The maximum time that the kernel keeps a block open.
    pub(super) block_timeout_ms: u32,
}

/// The offset of a block's status word.
const STATUS: usize =
    offset_of!(libc::tpacket_block_desc, hdr) + offset_of!(libc::tpacket_hdr_v1, block_status);

/// Only checked by the kernel for consistency: TPACKET_V3 frames have variable length.
const NOMINAL_FRAME_SIZE: u32 = 2048;

/// A mapped ring. The kernel keeps it alive even after the socket is closed.
#[derive(Debug)]
pub(super) struct Ring {
    base: NonNull<u8>,
    block_size: usize,
    block_count: usize,
    /// The next block, or the one that is held.
    current: usize,
    is_held: bool,
}

// SAFETY: the mapping belongs to the `Ring` alone, and no address in it is tied to a thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Allocates and maps a ring for `socket`, which must use TPACKET_V3.
    pub(super) fn map(socket: &PacketSocket, geometry: Geometry) -> io::Result<Ring> {
        let Geometry { block_size, block_count, block_timeout_ms } = geometry;
        socket.allocate_ring(&libc::tpacket_req3 {
            tp_block_size: block_size,
            tp_block_nr: block_count,
            tp_frame_size: NOMINAL_FRAME_SIZE,
            tp_frame_nr: block_size / NOMINAL_FRAME_SIZE * block_count,
            tp_retire_blk_tov: block_timeout_ms,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        })?;
        let (block_size, block_count) = (block_size as usize, block_count as usize);
        let base = map_shared(socket.raw(), block_size * block_count)?;
        Ok(Ring { base, block_size, block_count, current: 0, is_held: false })
    }

    /// Whether the next block is ours.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Whether another block after the held one is ours.
    #[inline]
    pub(super) fn has_more(&self) -> bool {
        let next = (self.current + usize::from(self.is_held)) % self.block_count;
        self.status_of(next).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Returns the next block, if it is ours. It stays ours until [`release`](Self::release).
    #[inline]
    pub(super) fn hold(&mut self) -> Option<&mut [u8]> {
        self.is_held = self.is_ready();
        // SAFETY: the block is within the mapping; the kernel does not touch it while it is ours; and no other code
        // here does, since the slice borrows the ring exclusively.
        self.is_held
            .then(|| unsafe { std::slice::from_raw_parts_mut(self.block().as_ptr(), self.block_size) })
    }

    /// Returns the held block, if any, to the kernel, and advances to the next.
    #[inline]
    pub(super) fn release(&mut self) {
        if self.is_held {
            self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.current = (self.current + 1) % self.block_count;
            self.is_held = false;
        }
    }

    fn status(&self) -> &AtomicU32 {
        self.status_of(self.current)
    }

    fn status_of(&self, block: usize) -> &AtomicU32 {
        // SAFETY: the status word is within the block and aligned by the kernel, which also accesses it as a whole.
        unsafe { AtomicU32::from_ptr(self.block_at(block).as_ptr().add(STATUS).cast()) }
    }

    fn block(&self) -> NonNull<u8> {
        self.block_at(self.current)
    }

    fn block_at(&self, block: usize) -> NonNull<u8> {
        debug_assert!(block < self.block_count);
        // SAFETY: the block is one of the ring's.
        unsafe { self.base.add(block * self.block_size) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped with this length; no slice of it outlives the ring. It cannot fail for a mapping.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.block_size * self.block_count) };
    }
}

pub(super) fn map_shared(descriptor: RawFd, length: usize) -> io::Result<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the kernel chooses the address, so no memory of ours is replaced.
    let base = unsafe { libc::mmap(ptr::null_mut(), length, access, libc::MAP_SHARED, descriptor, 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(NonNull::new(base.cast()).expect("a mapping does not begin at address zero"))
}
