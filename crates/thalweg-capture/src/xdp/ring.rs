//! The two rings that an XDP socket shares with the kernel (`Documentation/networking/af_xdp.rst`): the fill ring,
//! in which we lend chunks of memory, and the RX ring, in which they come back with frames.
//!
//! A ring has a power of two of entries, a producer's and a consumer's index that only ever grow (modulo 2^32), and
//! one writer for each index. Whoever advances an index does so with a release store after it is done with the
//! entries before it; whoever reads it does so with an acquire load.

#![expect(unsafe_code, reason = "memory shared with the kernel")]

use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use super::socket::XdpSocket;

/// What both rings are: mapped memory, and where what lies in it.
#[derive(Debug)]
struct Ring<T> {
    memory: MmapRaw,
    places: libc::xdp_ring_offset,
    entry_count: u32,
    entry: PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    /// Maps the ring at `page_offset` of the socket, which must have `entry_count` entries of type `T`.
    fn map(
        socket: &XdpSocket,
        page_offset: u64,
        places: libc::xdp_ring_offset,
        entry_count: u32,
    ) -> io::Result<Ring<T>> {
        assert!(entry_count.is_power_of_two());
        let length = places.desc as usize + entry_count as usize * size_of::<T>();
        let memory = MmapOptions::new().offset(page_offset).len(length).map_raw(socket.raw())?;
        Ok(Ring { memory, places, entry_count, entry: PhantomData })
    }

    /// The word at `place`, one of those that the kernel told.
    #[inline]
    fn word(&self, place: u64) -> &AtomicU32 {
        // SAFETY: the kernel put an aligned word there, before the entries and so within the mapping, and
        // accesses it as a whole.
        unsafe { AtomicU32::from_ptr(self.memory.as_mut_ptr().add(place as usize).cast()) }
    }

    #[inline]
    fn entry(&self, index: u32) -> *mut T {
        let slot = (index & (self.entry_count - 1)) as usize;
        // SAFETY: the slot is less than the number of entries, all of which lie within the mapping.
        unsafe { self.memory.as_mut_ptr().add(self.places.desc as usize).cast::<T>().add(slot) }
    }
}

/// The ring in which frames arrive.
#[derive(Debug)]
pub(super) struct RxRing {
    ring: Ring<libc::xdp_desc>,
    /// The next entry to read; the consumer's index, of which the kernel sees a copy.
    next: u32,
}

impl RxRing {
    pub(super) fn map(socket: &XdpSocket, entry_count: u32) -> io::Result<RxRing> {
        let places = socket.ring_places()?.rx;
        let ring = Ring::map(socket, libc::XDP_PGOFF_RX_RING as u64, places, entry_count)?;
        Ok(RxRing { ring, next: 0 })
    }

    /// How many frames wait.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        self.ring.word(self.ring.places.producer).load(Ordering::Acquire).wrapping_sub(self.next)
    }

    /// The frame that is `ahead` of the next; it must be one of those that wait.
    #[inline]
    pub(super) fn peek(&self, ahead: u32) -> libc::xdp_desc {
        debug_assert!(ahead < self.waiting());
        // SAFETY: the entry is aligned and within the mapping; any bytes are a descriptor, and the kernel has
        // finished it before it advanced its index beyond it.
        unsafe { self.ring.entry(self.next.wrapping_add(ahead)).read() }
    }

    /// Goes on behind the next `count` frames.
    #[inline]
    pub(super) fn advance(&mut self, count: u32) {
        self.next = self.next.wrapping_add(count);
        self.ring.word(self.ring.places.consumer).store(self.next, Ordering::Release);
    }
}

/// The ring in which chunks are lent to the kernel.
#[derive(Debug)]
pub(super) struct FillRing {
    ring: Ring<u64>,
    /// The next entry to write; the producer's index, of which the kernel sees a copy.
    next: u32,
}

impl FillRing {
    pub(super) fn map(socket: &XdpSocket, entry_count: u32) -> io::Result<FillRing> {
        let places = socket.ring_places()?.fr;
        let ring = Ring::map(socket, libc::XDP_UMEM_PGOFF_FILL_RING, places, entry_count)?;
        Ok(FillRing { ring, next: 0 })
    }

    /// Lends chunks by the offset of their first byte. There is always room for those that the kernel has not:
    /// the ring has as many entries as there are chunks.
    #[inline]
    pub(super) fn lend(&mut self, chunks: impl Iterator<Item = u64>) {
        for chunk in chunks {
            // SAFETY: the entry is aligned and within the mapping, and the kernel reads it only after our index
            // has gone beyond it.
            unsafe { self.ring.entry(self.next).write(chunk) };
            self.next = self.next.wrapping_add(1);
        }
        self.ring.word(self.ring.places.producer).store(self.next, Ordering::Release);
    }

    /// Whether the kernel wants to be told that there are chunks again.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.word(self.ring.places.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}
