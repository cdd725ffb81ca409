//! The memory in which frames arrive (the UMEM), in chunks of one frame each, and the ownership of the chunks.
//!
//! A chunk is lent to the kernel through the fill ring, returns with a frame through the RX ring, is held while its
//! frame is read, and is lent again. Each ring has as many entries as there are chunks, so neither is ever full, and
//! the kernel fills chunks in the order in which they were lent: consecutive frames are in consecutive chunks. So a
//! batch is **one** slice which covers only held chunks, none of which the kernel may write to. This is checked, not
//! assumed: a batch ends before a chunk that is not adjacent to the previous one.

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
    /// The byte range of the held chunks.
    held: Range<u64>,
}

/// The position of a frame in the slice of its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FramePosition {
    pub(super) offset: usize,
    pub(super) length: u32,
}

impl Umem {
    /// Allocates `chunk_count` chunks, registers them with the socket, which must not have any yet, and lends them
    /// all.
    ///
    /// The kernel locks the pages in memory and counts them against the user's limit (RLIMIT_MEMLOCK).
    pub(super) fn register(socket: &XdpSocket, chunk_size: u32, chunk_count: u32) -> io::Result<Umem> {
        let chunk_size_64 = u64::from(chunk_size);
        let memory = MmapMut::map_anon(chunk_size as usize * chunk_count as usize)?;
        // Both only save time: fewer pages to walk, and none to copy when the process starts another.
        let _ = memory.advise(Advice::HugePage);
        let _ = memory.advise(Advice::DontFork);
        let memory = MmapRaw::from(memory);
        // SAFETY: the memory has the given length, and while the kernel may write to it, that is until the socket's
        // last reference is gone, it is read through `Umem` alone, and there only where it is held. The kernel pins
        // the pages, so that writes after an unmapping hit no other memory.
        unsafe { socket.register_memory(memory.as_mut_ptr(), memory.len() as u64, chunk_size) }?;
        socket.make_rings(chunk_count)?;
        let rx = RxRing::map(socket, chunk_count)?;
        let mut fill = FillRing::map(socket, chunk_count)?;
        fill.lend((0..u64::from(chunk_count)).map(|index| index * chunk_size_64));
        Ok(Umem { memory, chunk_size: chunk_size_64, rx, fill, held: 0..0 })
    }

    /// Whether a frame is available.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.waiting() > 0
    }

    /// Returns the number of available frames.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        self.rx.waiting()
    }

    /// Whether the kernel needs a wake-up because chunks are available again.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.fill.needs_wakeup()
    }

    /// Holds the next frames, at most `max`, and calls `each` with the position of each in [`held`](Self::held).
    ///
    /// # Panics
    /// If frames are held, or the kernel returns a position outside the memory.
    #[inline]
    pub(super) fn hold(&mut self, max: u32, mut each: impl FnMut(FramePosition)) {
        assert!(self.held.is_empty(), "frames must be given back before the next are held");
        let waiting = self.rx.waiting().min(max);
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
            each(FramePosition { offset: (frame.addr - self.held.start) as usize, length: frame.len });
            count += 1;
        }
        assert!(self.held.end <= self.memory.len() as u64, "a chunk lies within the memory");
        if count > 0 {
            self.rx.advance(count);
        }
    }

    /// Returns the held chunks.
    #[inline]
    pub(super) fn held(&self) -> &[u8] {
        let (start, length) = (self.held.start as usize, (self.held.end - self.held.start) as usize);
        // SAFETY: within the memory, as `hold` checked. The kernel returned these chunks through the RX ring and does
        // not touch them until `give_back` lends them again, for which it borrows the memory exclusively.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(start), length) }
    }

    /// Lends the held chunks to the kernel again.
    #[inline]
    pub(super) fn give_back(&mut self) {
        if !self.held.is_empty() {
            self.fill.lend(self.held.clone().step_by(self.chunk_size as usize));
            self.held = 0..0;
        }
    }
}
