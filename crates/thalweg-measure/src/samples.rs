//! The last frames of a monitor port, kept for whoever wants to look at them (Rasley et al., "Planck", SIGCOMM 2014,
//! section 6.1).
//!
//! A ring of slots of one length: one thread writes, any number copy. The writer waits for nobody, allocates nothing and
//! does not know whether it is read; a reader that is overtaken knows it, leaves those frames out and counts them.
//!
//! **How.** Everything is in atomic words. One counter says how many frames were written in all, and so which frame each
//! slot holds. The writer publishes the counter before it begins with the next slot; a reader copies a slot and looks at
//! the counter again: if by then the writer may have begun to write that slot anew, the copy is void. That is a sequence
//! lock (Boehm, "Can seqlocks get along with programming language memory models?", MSPC 2012) whose one sequence number
//! serves all slots.
//!
//! **Memory** is `bytes`, rounded down to whole slots: 16 bytes of header and the snap length each. **Cost** a frame: a
//! store for each 8 bytes kept, to memory that comes round again in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use thalweg_wire::{Batch, Bytes, Frame, LinkType, Timestamp};
use thiserror::Error;

use crate::memory::prefetch;

/// Slots between the one that is written and the one that is asked for: at ten million frames a second 0.8 us, several
/// times what memory takes.
const AHEAD: usize = 8;

/// Words before a frame's bytes: its time; its lengths and link type.
const HEADER: usize = 2;

/// Size of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleRingOptions {
    /// Memory. Default 64 MiB: about 350,000 frames, which is 0.35 s at a million frames/s.
    pub bytes: Bytes,
    /// Bytes kept of each frame, from the link header on; rounded up to a multiple of 8. Default 176, so that a slot is
    /// three cache lines: headers take 54 bytes (TCP over IPv4 without options) to 156 (in a tunnel, over IPv6).
    pub snap_length: u32,
}

impl Default for SampleRingOptions {
    fn default() -> Self {
        SampleRingOptions { bytes: Bytes(64 << 20), snap_length: 176 }
    }
}

/// Why there can be no such ring.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SampleRingError {
    /// Headers would not fit, or lengths not be told.
    #[error("a sample has {least} to {most} bytes, not {0}", least = SampleRing::LEAST_SNAP_LENGTH,
            most = SampleRing::MOST_SNAP_LENGTH)]
    SnapLength(u32),
    /// It would hold less than two frames, or more than a process can have.
    #[error(
        "a ring of {bytes} bytes for samples of {snap_length} bytes: it must hold two at least, and fit in memory"
    )]
    Size {
        /// What was asked for.
        bytes: Bytes,
        /// Bytes kept of each frame.
        snap_length: u32,
    },
}

/// What writer and readers share.
#[derive(Debug)]
struct Slots {
    words: Box<[AtomicU64]>,
    /// Words of a slot.
    stride: usize,
    capacity: u64,
    /// Frames written in all; the next goes to the slot of this number modulo the capacity.
    written: AtomicU64,
}

/// The end of a ring that frames are written to.
#[derive(Debug)]
pub struct SampleWriter {
    slots: Arc<Slots>,
    /// Only the writer changes [`Slots::written`], so it need not load it.
    written: u64,
    /// The slot that is next.
    next: usize,
}

/// The end of a ring that frames are copied from; clones are of the same ring.
#[derive(Clone, Debug)]
pub struct SampleRing {
    slots: Arc<Slots>,
}

/// Frames copied from a ring, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    bytes: Vec<u8>,
    frames: Vec<Copied>,
    /// Frames that were in the ring when copying began, and were overwritten before they were copied.
    pub overwritten: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Copied {
    time: Timestamp,
    offset: usize,
    captured_length: u16,
    link_type: u16,
    original_length: u32,
}

impl SampleRing {
    /// Least bytes of a frame to keep: Ethernet and the largest part of TCP over IPv4.
    pub const LEAST_SNAP_LENGTH: u32 = 64;
    /// Most bytes of a frame to keep.
    pub const MOST_SNAP_LENGTH: u32 = 65_528;

    /// Memory that a ring for samples of this length needs at least.
    pub const fn least_bytes(snap_length: u32) -> Bytes {
        Bytes(2 * stride_of(snap_length) as u64 * 8)
    }

    /// An empty ring, and its writer.
    ///
    /// # Errors
    /// If there can be no such ring.
    pub fn new(options: SampleRingOptions) -> Result<(SampleWriter, SampleRing), SampleRingError> {
        let SampleRingOptions { bytes, snap_length } = options;
        if !(Self::LEAST_SNAP_LENGTH..=Self::MOST_SNAP_LENGTH).contains(&snap_length) {
            return Err(SampleRingError::SnapLength(snap_length));
        }
        let stride = stride_of(snap_length);
        let capacity = bytes.0 / (stride as u64 * 8);
        let mut words = Vec::new();
        let fits = usize::try_from(capacity)
            .ok()
            .filter(|&capacity| capacity >= 2)
            .and_then(|capacity| words.try_reserve_exact(capacity.checked_mul(stride)?).ok());
        if fits.is_none() {
            return Err(SampleRingError::Size { bytes, snap_length });
        }
        words.resize_with(capacity as usize * stride, AtomicU64::default);
        let slots = Arc::new(Slots { words: words.into(), stride, capacity, written: AtomicU64::new(0) });
        let writer = SampleWriter { slots: Arc::clone(&slots), written: 0, next: 0 };
        Ok((writer, SampleRing { slots }))
    }

    /// Frames that can be copied when it is full: all but the one that is next to go.
    pub fn capacity(&self) -> u64 {
        self.slots.capacity - 1
    }

    /// Frames written so far, those overwritten since included.
    pub fn written(&self) -> u64 {
        self.slots.written.load(Ordering::Relaxed)
    }

    /// Memory of its slots.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.slots.words.len() as u64 * 8)
    }

    /// Bytes kept of each frame.
    pub fn snap_length(&self) -> u32 {
        ((self.slots.stride - HEADER) * 8) as u32
    }

    /// Copies the last `most` frames. Takes as much memory as they do, and about 20 ns a frame.
    pub fn copy(&self, most: u64) -> Samples {
        let slots = &*self.slots;
        let end = slots.written.load(Ordering::Acquire);
        let first = end.saturating_sub(most.min(self.capacity()));
        let mut samples = Samples::default();
        for number in first..end {
            let at = samples.bytes.len();
            let copied = slots.copy(number, &mut samples.bytes);
            // The loads above are done before the counter is looked at.
            fence(Ordering::Acquire);
            // Number `written` may be under way, in the slot that was number `written - capacity`'s.
            if slots.written.load(Ordering::Relaxed) >= number + slots.capacity {
                samples.bytes.truncate(at);
                samples.overwritten += 1;
            } else {
                samples.frames.push(copied);
            }
        }
        samples
    }
}

/// Words of a slot.
const fn stride_of(snap_length: u32) -> usize {
    HEADER + (snap_length as usize).div_ceil(8)
}

impl Slots {
    /// Copies what is in a slot, which may be a mixture of two frames.
    fn copy(&self, number: u64, bytes: &mut Vec<u8>) -> Copied {
        let begin = (number % self.capacity) as usize * self.stride;
        let slot = &self.words[begin..begin + self.stride];
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let (time, about) = (load(&slot[0]), load(&slot[1]));
        let copied = Copied {
            time: Timestamp(time),
            offset: bytes.len(),
            captured_length: (about >> 48) as u16,
            link_type: (about >> 32) as u16,
            original_length: about as u32,
        };
        let room = slot.len() - HEADER;
        let words = usize::from(copied.captured_length).div_ceil(8).min(room);
        for word in &slot[HEADER..HEADER + words] {
            bytes.extend_from_slice(&load(word).to_le_bytes());
        }
        bytes.truncate(copied.offset + usize::from(copied.captured_length));
        copied
    }
}

impl SampleWriter {
    /// Writes one frame over the oldest.
    #[inline]
    pub fn write(&mut self, frame: &Frame<'_>) {
        let slots = &*self.slots;
        let slot = &slots.words[self.next..self.next + slots.stride];
        let kept = &frame.bytes[..frame.bytes.len().min((slots.stride - HEADER) * 8)];
        let (words, rest) = kept.as_chunks::<8>();
        let about = (kept.len() as u64) << 48
            | u64::from(frame.link_type.number()) << 32
            | u64::from(frame.original_length);
        self.fetch_ahead(HEADER + words.len());
        // Whoever sees one of the stores below sees the counter as it was published before.
        fence(Ordering::Release);
        slot[0].store(frame.time.0, Ordering::Relaxed);
        slot[1].store(about, Ordering::Relaxed);
        for (word, bytes) in slot[HEADER..].iter().zip(words) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            slot[HEADER + words.len()].store(u64::from_le_bytes(last), Ordering::Relaxed);
        }
        self.written += 1;
        slots.written.store(self.written, Ordering::Release);
        self.next += slots.stride;
        if self.next == slots.words.len() {
            self.next = 0;
        }
    }

    /// Asks for the cache lines of a slot some frames ahead, as many as this frame takes: the ring is larger than any cache,
    /// and stores to memory that is not at hand hold everything up.
    #[inline(always)]
    fn fetch_ahead(&self, words: usize) {
        let from = self.next + AHEAD * self.slots.stride;
        for line in (from..from + words).step_by(8) {
            if let Some(word) = self.slots.words.get(line) {
                prefetch(word);
            }
        }
    }

    /// Writes all frames of a batch.
    #[inline]
    pub fn write_batch(&mut self, batch: &Batch<'_>) {
        batch.iter().for_each(|frame| self.write(&frame));
    }
}

impl Samples {
    /// How many frames there are.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The frames, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Frame<'_>> {
        self.frames.iter().map(|copied| Frame {
            time: copied.time,
            bytes: &self.bytes[copied.offset..][..usize::from(copied.captured_length)],
            original_length: copied.original_length,
            link_type: LinkType::from_number(copied.link_type),
        })
    }
}

#[cfg(test)]
mod tests;
