//! Logs of single packets, in chunks of a common pool: what it takes to sum a window exactly.

use bytemuck::{Pod, Zeroable};

use crate::memory::{LargeArray, MemoryError};
use thalweg_wire::Bytes;

/// Spans in a chunk.
const SPANS: usize = 32;

/// No chunk; also the chunk that no log uses.
const NONE: u32 = 0;

/// One packet, or several small ones in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Span {
    /// Times of its first and last packet, in nanoseconds since the epoch.
    pub(super) first: u64,
    pub(super) last: u64,
    /// The count of the direction's bytes after its last packet.
    pub(super) after: u64,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
struct Chunk {
    /// The next newer chunk of the same log; for a free chunk, the next free one.
    next: u32,
    reserved: [u32; 15],
    spans: [Span; SPANS],
}

/// The log of one direction of a flow: spans in the order of their times. All zero is an empty log; one with a packet always
/// keeps its newest span.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(super) struct PacketLog {
    /// The time of the first packet that was ever added.
    since: u64,
    /// The count of bytes before the oldest span.
    base: u64,
    oldest_chunk: u32,
    newest_chunk: u32,
    /// The index of the oldest span in its chunk, and the number of spans in the newest chunk.
    oldest: u32,
    newest: u32,
}

/// The pool of chunks.
#[derive(Debug)]
pub(super) struct LogPool {
    chunks: LargeArray<Chunk>,
    free: u32,
    /// Chunks from here on have never been used.
    fresh: u32,
    /// Small packets are merged into spans of at most this many bytes.
    resolution: u64,
}

impl LogPool {
    /// Creates a pool of `chunks` for windows of `volume` bytes.
    pub(super) fn new(chunks: usize, volume: u64) -> Result<LogPool, MemoryError> {
        let chunks = LargeArray::zeroed(chunks.clamp(1, u32::MAX as usize - 1) + 1)?;
        Ok(LogPool { chunks, free: NONE, fresh: 1, resolution: volume / 8192 })
    }

    /// Returns the memory when every chunk has been used.
    pub(super) fn bytes(&self) -> Bytes {
        self.chunks.bytes()
    }

    /// Adds a packet that raised the count from `before` to `after` at `time`. Returns `false`, and adds nothing, if the pool
    /// is empty.
    pub(super) fn add(&mut self, log: &mut PacketLog, (before, after): (u64, u64), time: u64) -> bool {
        if log.newest_chunk != NONE && self.merge(log, after, time) {
            return true;
        }
        if log.newest_chunk == NONE || log.newest as usize == SPANS {
            let Some(chunk) = self.take_chunk() else { return false };
            match log.newest_chunk {
                NONE => {
                    *log =
                        PacketLog { since: time, base: before, oldest_chunk: chunk, ..PacketLog::default() }
                }
                newest => self.chunks[newest as usize].next = chunk,
            }
            (log.newest_chunk, log.newest) = (chunk, 0);
        }
        self.chunks[log.newest_chunk as usize].spans[log.newest as usize] =
            Span { first: time, last: time, after };
        log.newest += 1;
        true
    }

    /// Adds a packet to the newest span, if both are small.
    fn merge(&mut self, log: &PacketLog, after: u64, time: u64) -> bool {
        let index = log.newest as usize - 1;
        let before = match index {
            _ if log.is_single() => log.base,
            0 => return false,
            _ => self.chunks[log.newest_chunk as usize].spans[index - 1].after,
        };
        let fits = after - before <= self.resolution;
        if fits {
            let span = &mut self.chunks[log.newest_chunk as usize].spans[index];
            (span.last, span.after) = (time, after);
        }
        fits
    }

    /// Removes the spans whose last packet came `age` or more before `now`. Returns the oldest one left: the caller has just
    /// added one.
    pub(super) fn expire(&mut self, log: &mut PacketLog, now: u64, age: u64) -> Span {
        loop {
            let span = self.chunks[log.oldest_chunk as usize].spans[log.oldest as usize];
            if log.is_single() || now.saturating_sub(span.last) < age {
                return span;
            }
            log.base = span.after;
            log.oldest += 1;
            if log.oldest as usize == SPANS && log.oldest_chunk != log.newest_chunk {
                let chunk = log.oldest_chunk;
                (log.oldest_chunk, log.oldest) = (self.chunks[chunk as usize].next, 0);
                self.give_chunk(chunk);
            }
        }
    }

    /// Empties a log and returns its chunks.
    pub(super) fn clear(&mut self, log: &mut PacketLog) {
        while log.oldest_chunk != NONE {
            let chunk = log.oldest_chunk;
            log.oldest_chunk = match chunk == log.newest_chunk {
                true => NONE,
                false => self.chunks[chunk as usize].next,
            };
            self.give_chunk(chunk);
        }
        *log = PacketLog::default();
    }

    fn take_chunk(&mut self) -> Option<u32> {
        let chunk = match self.free {
            NONE if (self.fresh as usize) < self.chunks.len() => {
                self.fresh += 1;
                self.fresh - 1
            }
            NONE => return None,
            free => {
                self.free = self.chunks[free as usize].next;
                free
            }
        };
        self.chunks[chunk as usize].next = NONE;
        Some(chunk)
    }

    fn give_chunk(&mut self, chunk: u32) {
        self.chunks[chunk as usize].next = self.free;
        self.free = chunk;
    }
}

impl PacketLog {
    /// Whether it has exactly one span.
    fn is_single(&self) -> bool {
        self.oldest_chunk == self.newest_chunk && self.oldest + 1 == self.newest
    }

    /// Returns the time of the first packet that was ever added.
    pub(super) fn since(&self) -> u64 {
        self.since
    }

    /// Returns the count of bytes before the oldest span.
    pub(super) fn base(&self) -> u64 {
        self.base
    }
}
