//! The memory that frames arrive in (the UMEM), in chunks of one frame each, and who owns which of them.
//!
//! A chunk is lent to the kernel through the fill ring, comes back with a frame through the RX ring, is held
//! while its frame is read, and is lent again. Each ring has as many entries as there are chunks, so that neither
//! is ever full, and the kernel fills chunks in the order in which they were lent: frames that follow one another
//! lie in chunks that follow one another. That is what lets a batch be **one** slice which covers held chunks
//! alone, nothing that the kernel may write to. It is checked, not relied on: a batch ends before a chunk that is
//! not the neighbour of the one before it.

#![expect(unsafe_code, reason = "memory shared with the kernel")]

use std::io;
use std::ops::Range;

use memmap2::{Advice, MmapMut, MmapRaw};

use super::ring::{FillRing, RxRing};
use super::socket::XdpSocket;

/// The memory of one socket, and both rings.
#[derive(Debug)]
pub(super) struct Umem {
    memory: MmapRaw,
    chunk_size: u64,
    rx: RxRing,
    fill: FillRing,
    /// What we hold, as bytes of the memory: whole chunks.
    held: Range<u64>,
}

/// Where a frame lies in the slice of its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) offset: usize,
    pub(super) length: u32,
}

impl Umem {
    /// Allocates `chunk_count` chunks, gives them to the socket, which must not have any yet, and lends them all.
    ///
    /// The kernel keeps the pages in memory and puts them down to the user's allowance (RLIMIT_MEMLOCK).
    pub(super) fn register(socket: &XdpSocket, chunk_size: u32, chunk_count: u32) -> io::Result<Umem> {
        let chunk_size_64 = u64::from(chunk_size);
        let memory = MmapMut::map_anon(chunk_size as usize * chunk_count as usize)?;
        // Both save time only: fewer pages to walk, and none to copy when the process starts another.
        let _ = memory.advise(Advice::HugePage);
        let _ = memory.advise(Advice::DontFork);
        let memory = MmapRaw::from(memory);
        // SAFETY: the memory is as long as said, and while the kernel may write to it, that is until the
        // socket's last reference is gone, it is read through `Umem` alone, and there only where it is held. The
        // kernel pins the pages, so that writes after an unmapping reach nobody.
        unsafe { socket.register_memory(memory.as_mut_ptr(), memory.len() as u64, chunk_size) }?;
        socket.make_rings(chunk_count)?;
        let rx = RxRing::map(socket, chunk_count)?;
        let mut fill = FillRing::map(socket, chunk_count)?;
        fill.lend((0..u64::from(chunk_count)).map(|index| index * chunk_size_64));
        Ok(Umem { memory, chunk_size: chunk_size_64, rx, fill, held: 0..0 })
    }

    /// Whether a frame waits.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.waiting() > 0
    }

    /// How many frames wait.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        self.rx.waiting()
    }

    /// Whether the kernel wants to be told that there are chunks again.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.fill.needs_wakeup()
    }

    /// Holds the next frames, `most` at most, and tells where each lies in [`held`](Self::held).
    ///
    /// # Panics
    /// If frames are held, or the kernel names memory that is not there.
    #[inline]
    pub(super) fn hold(&mut self, most: u32, mut each: impl FnMut(Place)) {
        assert!(self.held.is_empty(), "frames are given back before the next are held");
        let waiting = self.rx.waiting().min(most);
        let mut count = 0;
        while count < waiting {
            let frame = self.rx.peek(count);
            let chunk = frame.addr - frame.addr % self.chunk_size;
            if count == 0 {
                self.held = chunk..chunk;
            } else if chunk != self.held.end {
                break;
            }
            self.held.end = chunk + self.chunk_size;
            assert!(frame.addr + u64::from(frame.len) <= self.held.end, "a frame lies within its chunk");
            each(Place { offset: (frame.addr - self.held.start) as usize, length: frame.len });
            count += 1;
        }
        assert!(self.held.end <= self.memory.len() as u64, "a chunk lies within the memory");
        if count > 0 {
            self.rx.advance(count);
        }
    }

    /// The chunks that are held.
    #[inline]
    pub(super) fn held(&self) -> &[u8] {
        let (start, length) = (self.held.start as usize, (self.held.end - self.held.start) as usize);
        // SAFETY: within the memory, as `hold` checked. The kernel gave these chunks away through the RX ring and
        // does not touch them until `give_back` lends them again, for which it borrows the memory exclusively.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(start), length) }
    }

    /// Lends what is held to the kernel again.
    #[inline]
    pub(super) fn give_back(&mut self) {
        if !self.held.is_empty() {
            self.fill.lend(self.held.clone().step_by(self.chunk_size as usize));
            self.held = 0..0;
        }
    }
}
