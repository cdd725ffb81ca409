//! The memory in which frames arrive (the UMEM), in chunks, and the ownership of the chunks.
//!
//! A chunk is lent to the kernel through the fill ring, returns with a frame through the RX ring, is held while its
//! frame is read, and is lent again. Each ring has as many entries as there are chunks, so neither is ever full, and
//! the kernel fills chunks in the order in which they were lent: consecutive frames are in consecutive chunks. So a
//! batch is **one** slice which covers only held chunks, none of which the kernel may write to. This is checked, not
//! assumed: a batch ends before a frame that is not adjacent to the previous one.
//!
//! **A frame longer than a chunk** is continued in further chunks, each with an entry of its own in the RX ring. Only
//! the first one is read; the others count for the length, and are lent again with it.

#![expect(unsafe_code, reason = "memory shared with the kernel")]

use std::io;
use std::ops::Range;

use memmap2::{Advice, MmapMut, MmapRaw};

use super::MAX_BATCH;
use super::redirect::TIMESTAMP_LENGTH;
use super::ring::{FillRing, RxRing};
use super::socket::XdpSocket;

/// The memory of one socket, and both rings.
#[derive(Debug)]
pub(super) struct Umem {
    memory: MmapRaw,
    chunk_size: u64,
    rx: RxRing,
    fill: FillRing,
    /// The offsets of the held chunks, in the order in which they were filled.
    held_chunks: Vec<u64>,
    /// The byte range of the slice: from the first held chunk on, as many as are adjacent.
    held: Range<u64>,
}

/// A frame in the slice of its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeldFrame {
    /// The position of its first byte.
    pub(super) offset: usize,
    /// The bytes of it in the slice: those in its first chunk.
    pub(super) available: u32,
    /// The length of the whole frame.
    pub(super) length: u32,
    /// The time of arrival in TAI, in nanoseconds; `None` if the driver has no space for it.
    pub(super) arrival: Option<u64>,
}

/// The entries of the RX ring that one frame takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entries {
    first: u32,
    count: u32,
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
        let held_chunks = Vec::with_capacity(chunk_count.min(MAX_BATCH) as usize);
        Ok(Umem { memory, chunk_size: chunk_size_64, rx, fill, held_chunks, held: 0..0 })
    }

    /// Whether a frame is available. The kernel completes all entries of a frame at once.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.rx.waiting() > 0
    }

    /// Whether the kernel needs a wake-up because chunks are available again.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.fill.needs_wakeup()
    }

    /// Holds the next frames, at most `max`, and calls `each` with each.
    ///
    /// # Panics
    /// If frames are held, or the kernel returns a position outside the memory.
    #[inline]
    pub(super) fn hold(&mut self, max: u32, mut each: impl FnMut(HeldFrame)) {
        assert!(self.held_chunks.is_empty(), "frames must be given back before the next are held");
        let waiting = self.rx.waiting();
        let (mut taken, mut frame_count) = (0, 0);
        while frame_count < max {
            let Some(entries) = self.frame_at(taken, waiting) else { break };
            let chunk = self.chunk_of(self.rx.peek(taken).addr);
            if frame_count == 0 {
                self.held = chunk..chunk;
            } else if chunk != self.held.end {
                break;
            }
            each(self.hold_frame(entries));
            taken += entries.count;
            frame_count += 1;
        }
        if taken > 0 {
            self.rx.advance(taken);
        }
    }

    /// Returns the entries of the frame that begins at the entry `first`, if all of them are available.
    #[inline]
    fn frame_at(&self, first: u32, waiting: u32) -> Option<Entries> {
        let is_last = |&entry: &u32| self.rx.peek(entry).options & libc::XDP_PKT_CONTD == 0;
        let last = (first..waiting).find(is_last)?;
        Some(Entries { first, count: last - first + 1 })
    }

    /// Holds the chunks of a frame.
    #[inline]
    fn hold_frame(&mut self, Entries { first, count }: Entries) -> HeldFrame {
        let start = self.rx.peek(first);
        let mut length = 0;
        for entry in first..first + count {
            let part = self.rx.peek(entry);
            let chunk = self.chunk_of(part.addr);
            let chunk_end = chunk + self.chunk_size;
            assert!(part.addr + u64::from(part.len) <= chunk_end, "a part of a frame lies within its chunk");
            assert!(chunk_end <= self.memory.len() as u64, "a chunk lies within the memory");
            length += part.len;
            self.held_chunks.push(chunk);
            if chunk == self.held.end {
                self.held.end = chunk_end;
            }
        }
        HeldFrame {
            offset: (start.addr - self.held.start) as usize,
            available: start.len,
            length,
            arrival: self.take_arrival(start.addr),
        }
    }

    /// Reads the time before the held frame at `address`, and clears it, so that it is not taken for that of a later
    /// frame.
    #[inline]
    fn take_arrival(&mut self, address: u64) -> Option<u64> {
        if address % self.chunk_size < TIMESTAMP_LENGTH {
            return None;
        }
        // SAFETY: before the frame and in its chunk, which is held: the kernel does not touch it.
        let time = unsafe {
            let stamp = self.memory.as_mut_ptr().add((address - TIMESTAMP_LENGTH) as usize).cast::<u64>();
            let time = stamp.read_unaligned();
            stamp.write_unaligned(0);
            time
        };
        (time != 0).then_some(time)
    }

    /// Returns the chunk of an address.
    #[inline]
    fn chunk_of(&self, address: u64) -> u64 {
        address - address % self.chunk_size
    }

    /// Returns the slice with the held frames.
    #[inline]
    pub(super) fn held(&self) -> &[u8] {
        let (start, length) = (self.held.start as usize, (self.held.end - self.held.start) as usize);
        // SAFETY: within the memory, as `hold_frame` checked. The kernel returned these chunks through the RX ring and does
        // not touch them until `give_back` lends them again, for which it borrows the memory exclusively.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(start), length) }
    }

    /// Lends the held chunks to the kernel again.
    #[inline]
    pub(super) fn give_back(&mut self) {
        if !self.held_chunks.is_empty() {
            self.fill.lend(self.held_chunks.drain(..));
            self.held = 0..0;
        }
    }
}
