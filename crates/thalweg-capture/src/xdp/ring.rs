//! The two rings that an XDP socket shares with the kernel (`Documentation/networking/af_xdp.rst`): the fill ring,
//! through which we lend chunks of memory, and the RX ring, through which they return with frames.
//!
//! A ring has a power of two of entries, a producer's and a consumer's index that only grow (modulo 2^32), and one
//! writer for each index. The writer advances its index with a release store after it has processed the entries
//! before it; the reader reads it with an acquire load.

#![expect(unsafe_code, reason = "memory shared with the kernel")]

use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use super::socket::XdpSocket;

/// The common part of both rings: mapped memory, and its layout.
#[derive(Debug)]
struct Ring<T> {
    memory: MmapRaw,
    offsets: libc::xdp_ring_offset,
    entry_count: u32,
    entry: PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    /// Maps the ring at `page_offset` of the socket, which must have `entry_count` entries of type `T`.
    fn map(
        socket: &XdpSocket,
        page_offset: u64,
        offsets: libc::xdp_ring_offset,
        entry_count: u32,
    ) -> io::Result<Ring<T>> {
        assert!(entry_count.is_power_of_two());
        let length = offsets.desc as usize + entry_count as usize * size_of::<T>();
        let memory = MmapOptions::new().offset(page_offset).len(length).map_raw(socket.raw())?;
        Ok(Ring { memory, offsets, entry_count, entry: PhantomData })
    }

    /// Returns the word at `offset`, which the kernel provided.
    #[inline]
    fn word(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: the kernel put an aligned word there, before the entries and so within the mapping, and accesses it
        // as a whole.
        unsafe { AtomicU32::from_ptr(self.memory.as_mut_ptr().add(offset as usize).cast()) }
    }

    #[inline]
    fn entry(&self, index: u32) -> *mut T {
        let slot = (index & (self.entry_count - 1)) as usize;
        // SAFETY: the slot is less than the number of entries, all of which are within the mapping.
        unsafe { self.memory.as_mut_ptr().add(self.offsets.desc as usize).cast::<T>().add(slot) }
    }
}

/// The ring in which frames arrive.
#[derive(Debug)]
pub(super) struct RxRing {
    ring: Ring<libc::xdp_desc>,
    /// The next entry to read: our copy of the consumer's index.
    next: u32,
}

impl RxRing {
    pub(super) fn map(socket: &XdpSocket, entry_count: u32) -> io::Result<RxRing> {
        let offsets = socket.ring_offsets()?.rx;
        let ring = Ring::map(socket, libc::XDP_PGOFF_RX_RING as u64, offsets, entry_count)?;
        Ok(RxRing { ring, next: 0 })
    }

    /// Returns the number of available entries.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        self.ring.word(self.ring.offsets.producer).load(Ordering::Acquire).wrapping_sub(self.next)
    }

    /// Returns an available entry, `ahead` of the next: a frame, or a part of one.
    #[inline]
    pub(super) fn peek(&self, ahead: u32) -> libc::xdp_desc {
        debug_assert!(ahead < self.waiting());
        // SAFETY: the entry is aligned and within the mapping; any bytes are a valid descriptor, and the kernel
        // completed it before it advanced its index beyond it.
        unsafe { self.ring.entry(self.next.wrapping_add(ahead)).read() }
    }

    /// Consumes the next `count` entries.
    #[inline]
    pub(super) fn advance(&mut self, count: u32) {
        self.next = self.next.wrapping_add(count);
        self.ring.word(self.ring.offsets.consumer).store(self.next, Ordering::Release);
    }
}

/// The ring in which chunks are lent to the kernel.
#[derive(Debug)]
pub(super) struct FillRing {
    ring: Ring<u64>,
    /// The next entry to write: our copy of the producer's index.
    next: u32,
}

impl FillRing {
    pub(super) fn map(socket: &XdpSocket, entry_count: u32) -> io::Result<FillRing> {
        let offsets = socket.ring_offsets()?.fr;
        let ring = Ring::map(socket, libc::XDP_UMEM_PGOFF_FILL_RING, offsets, entry_count)?;
        Ok(FillRing { ring, next: 0 })
    }

    /// Lends chunks, given by the offset of their first byte. It is never full: the ring has as many entries as there
    /// are chunks.
    #[inline]
    pub(super) fn lend(&mut self, chunks: impl Iterator<Item = u64>) {
        for chunk in chunks {
            // SAFETY: the entry is aligned and within the mapping, and the kernel reads it only after our index has
            // advanced beyond it.
            unsafe { self.ring.entry(self.next).write(chunk) };
            self.next = self.next.wrapping_add(1);
        }
        self.ring.word(self.ring.offsets.producer).store(self.next, Ordering::Release);
    }

    /// Whether the kernel needs a wake-up because chunks are available again.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.word(self.ring.offsets.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}
