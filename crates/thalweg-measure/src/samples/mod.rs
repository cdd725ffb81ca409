//! A ring of the last frames of a monitor port (Rasley et al., "Planck", SIGCOMM 2014, section 6.1).
//!
//! A ring of pages: one thread writes frames, any number of threads copy them. The writer never waits, allocates
//! nothing and does not know its readers. A reader that is overtaken detects it, omits the overwritten frames and
//! counts them.
//!
//! **Implementation.** All data is in atomic words. Frames follow each other, each at its own length; none crosses a
//! page boundary. Each page has the number of its first frame, and one counter holds the current page. The writer
//! publishes the counter before it starts a page. A reader copies a frame and reads the counter again: if the writer
//! has started to overwrite that page, the copy is void. That is a sequence lock (Boehm, "Can seqlocks get along with
//! programming language memory models?", MSPC 2012) whose one sequence number serves all pages.
//!
//! **Memory** is `bytes`, rounded down to whole pages, and becomes resident as it is written: per frame 16 bytes of header, and the captured bytes up to the
//! snap length. **Cost** per frame: a store for each 8 bytes kept, to memory in sequential order.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use bytemuck::allocation::try_zeroed_slice_box;
use thalweg_wire::{Batch, Bytes, Frame, LinkType, Timestamp};
use thiserror::Error;

use crate::memory::prefetch;

/// Words before a frame's bytes: its time; its lengths and link type.
const HEADER: usize = 2;

/// Words per page, if frames are short: 4 KiB.
const PAGE: usize = 512;
/// The minimum number of full-length frames per page. On average a sixteenth of the page is unused.
const FRAMES_A_PAGE: usize = 8;

/// The distance in words between the write position and the prefetch: about a dozen frames of bare headers. At ten
/// million frames a second that is 1 us, several times the memory latency.
const AHEAD: usize = 128;

/// Size of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleRingOptions {
    /// The memory. Default 64 MiB: between 350,000 and 870,000 frames, which is at least 0.35 s at a million
    /// frames/s.
    pub bytes: Bytes,
    /// The maximum bytes kept of each frame, from the link header on; rounded up to a multiple of 8. Default 176:
    /// headers take 54 bytes (TCP over IPv4 without options) to 156 (in a tunnel, over IPv6).
    pub snap_length: u32,
}

impl Default for SampleRingOptions {
    fn default() -> Self {
        SampleRingOptions { bytes: Bytes(64 << 20), snap_length: 176 }
    }
}

/// Why a ring could not be created.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SampleRingError {
    /// The snap length is out of range.
    #[error("snap length {0}: expected {min} to {max} bytes", min = SampleRing::MIN_SNAP_LENGTH,
            max = SampleRing::MAX_SNAP_LENGTH)]
    SnapLength(u32),
    /// The size is out of range.
    #[error(
        "sample ring of {} bytes: expected at least {min} for a snap length of {snap_length}, and no more than fits in memory",
        bytes.0,
        min = SampleRing::min_bytes(*snap_length).0
    )]
    Size {
        /// The requested memory.
        bytes: Bytes,
        /// The requested snap length.
        snap_length: u32,
    },
}

/// The memory that writer and readers share.
#[derive(Debug)]
struct Pages {
    words: Box<[AtomicU64]>,
    /// Words per page.
    size: usize,
    /// Words of a frame of full length.
    longest: usize,
    /// The number of the first frame in each page.
    firsts: Box<[AtomicU64]>,
    /// The page being written, counted from 0 and never reset; its index is this number modulo the number of pages.
    /// The old contents are void from here on.
    page: AtomicU64,
    /// The newest page whose first frame number is known: the same, except while a page is turned.
    begun: AtomicU64,
    /// The total number of frames written.
    written: AtomicU64,
}

/// The writing end of a ring.
#[derive(Debug)]
pub struct SampleWriter {
    pages: Arc<Pages>,
    /// Only the writer changes [`Pages::written`] and [`Pages::page`], so it need not load them.
    written: u64,
    page: u64,
    /// The index of the next word, and the end of its page.
    next: usize,
    end: usize,
}

/// The reading end of a ring; clones share the ring.
#[derive(Clone, Debug)]
pub struct SampleRing {
    pages: Arc<Pages>,
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
    /// The minimum snap length: Ethernet and the largest part of TCP over IPv4.
    pub const MIN_SNAP_LENGTH: u32 = 64;
    /// The maximum snap length.
    pub const MAX_SNAP_LENGTH: u32 = 65_528;

    /// Returns the minimum memory of a ring with this snap length.
    pub const fn min_bytes(snap_length: u32) -> Bytes {
        Bytes(2 * page_of(words_of(snap_length)) as u64 * 8)
    }

    /// Creates an empty ring, and its writer.
    ///
    /// # Errors
    /// If an option is out of range, or memory is insufficient.
    pub fn new(options: SampleRingOptions) -> Result<(SampleWriter, SampleRing), SampleRingError> {
        let SampleRingOptions { bytes, snap_length } = options;
        if !(Self::MIN_SNAP_LENGTH..=Self::MAX_SNAP_LENGTH).contains(&snap_length) {
            return Err(SampleRingError::SnapLength(snap_length));
        }
        let longest = words_of(snap_length);
        let size = page_of(longest);
        let too_many_or_few = || SampleRingError::Size { bytes, snap_length };
        let count = usize::try_from(bytes.0 / (size as u64 * 8)).map_err(|_| too_many_or_few())?;
        if count < 2 {
            return Err(too_many_or_few());
        }
        // The system provides zeroed pages when they are first written.
        let zeroed = |words: usize| try_zeroed_slice_box(words).map_err(|()| too_many_or_few());
        let (words, firsts) = (zeroed(count.checked_mul(size).ok_or_else(too_many_or_few)?)?, zeroed(count)?);
        let [page, begun, written] = [const { AtomicU64::new(0) }; 3];
        let pages = Arc::new(Pages { words, size, longest, firsts, page, begun, written });
        let writer = SampleWriter { pages: Arc::clone(&pages), written: 0, page: 0, next: 0, end: size };
        Ok((writer, SampleRing { pages }))
    }

    /// Returns the minimum number of frames in a full ring: if all have the snap length.
    pub fn capacity(&self) -> u64 {
        let Pages { size, longest, .. } = *self.pages;
        (self.pages.count() - 1) * (size / longest) as u64
    }

    /// Returns the number of frames written so far, including overwritten ones.
    pub fn written(&self) -> u64 {
        self.pages.written.load(Ordering::Relaxed)
    }

    /// Returns the memory of the pages.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.pages.words.len() as u64 * 8)
    }

    /// Returns the snap length.
    pub fn snap_length(&self) -> u32 {
        ((self.pages.longest - HEADER) * 8) as u32
    }

    /// Copies the last `max` frames. Allocates as much memory as they have, and takes about 20 ns per frame.
    pub fn copy(&self, max: u64) -> Samples {
        let end = self.written();
        self.copy_between(end.saturating_sub(max), end)
    }

    /// Copies the frames after the first `seen` that were ever written, as far as they are still in the ring. Also
    /// returns the number of frames written by then, for the next call.
    pub fn copy_after(&self, seen: u64) -> (Samples, u64) {
        let end = self.written();
        (self.copy_between(seen.min(end), end), end)
    }

    fn copy_between(&self, from: u64, mut end: u64) -> Samples {
        let pages = &*self.pages;
        let held = pages.holding(from);
        // From the newest page to the oldest, as each page ends where the next begins; then copied in order.
        let mut parts = Vec::with_capacity(held.len());
        for (page, first) in held {
            parts.push((page, first, from.max(first)..end));
            end = end.min(first);
        }
        let mut samples = Samples::default();
        for (page, first, requested) in parts.into_iter().rev() {
            pages.copy(page, first, requested, &mut samples);
        }
        samples
    }
}

/// Words of a frame of this length.
const fn words_of(snap_length: u32) -> usize {
    HEADER + (snap_length as usize).div_ceil(8)
}

/// Words per page for frames of at most this many words.
const fn page_of(longest: usize) -> usize {
    let enough = (FRAMES_A_PAGE * longest).next_power_of_two();
    if enough > PAGE { enough } else { PAGE }
}

impl Pages {
    fn count(&self) -> u64 {
        self.firsts.len() as u64
    }

    /// Whether the writer had not started to overwrite a page when the preceding loads were done.
    fn is_intact(&self, page: u64) -> bool {
        // The loads above are done before the counter is read.
        fence(Ordering::Acquire);
        self.page.load(Ordering::Relaxed) < page + self.count()
    }

    /// Returns the pages with frames from this number on that are still valid, the newest first, and the number of
    /// the first frame in each.
    fn holding(&self, from: u64) -> Vec<(u64, u64)> {
        let newest = self.begun.load(Ordering::Acquire);
        let mut held = Vec::new();
        for page in (0..=newest).rev() {
            let first = self.firsts[(page % self.count()) as usize].load(Ordering::Relaxed);
            if !self.is_intact(page) {
                break;
            }
            held.push((page, first));
            if first <= from {
                break;
            }
        }
        held
    }

    /// Copies the wanted frames of a page, and counts those that are overwritten meanwhile.
    fn copy(&self, page: u64, first: u64, requested: Range<u64>, samples: &mut Samples) {
        let begin = (page % self.count()) as usize * self.size;
        let words = &self.words[begin..begin + self.size];
        let mut at = 0;
        for number in first..requested.end {
            let offset = samples.bytes.len();
            let (copied, next) = copy(words, at, number >= requested.start, &mut samples.bytes);
            if !self.is_intact(page) {
                samples.bytes.truncate(offset);
                samples.overwritten += requested.end - number.max(requested.start);
                return;
            }
            if number >= requested.start {
                samples.frames.push(Copied { offset, ..copied });
            }
            at = next;
        }
    }
}

/// Copies the frame at a word, if it is wanted, and returns the position of the next one. The copy may be a mixture
/// of two frames.
fn copy(words: &[AtomicU64], at: usize, is_requested: bool, bytes: &mut Vec<u8>) -> (Copied, usize) {
    let word = |at: usize| words.get(at).map_or(0, |word| word.load(Ordering::Relaxed));
    let (time, about) = (word(at), word(at + 1));
    let captured_length = (about >> 48) as u16;
    let copied = Copied {
        time: Timestamp(time),
        offset: bytes.len(),
        captured_length,
        link_type: (about >> 32) as u16,
        original_length: about as u32,
    };
    let next = at + HEADER + usize::from(captured_length).div_ceil(8);
    if is_requested {
        for at in at + HEADER..next {
            bytes.extend_from_slice(&word(at).to_le_bytes());
        }
        bytes.truncate(copied.offset + usize::from(captured_length));
    }
    (copied, next)
}

impl SampleWriter {
    /// Writes one frame over the oldest.
    #[inline]
    pub fn write(&mut self, frame: &Frame<'_>) {
        let room = (self.pages.longest - HEADER) * 8;
        let kept = &frame.bytes[..frame.bytes.len().min(room)];
        let length = HEADER + kept.len().div_ceil(8);
        if self.next + length > self.end {
            self.turn_page();
        }
        let pages = &*self.pages;
        let (words, rest) = kept.as_chunks::<8>();
        let about = (kept.len() as u64) << 48
            | u64::from(frame.link_type.number()) << 32
            | u64::from(frame.original_length);
        // The ring is larger than any cache, and stores to uncached memory would stall everything.
        for line in (self.next + AHEAD..self.next + AHEAD + length).step_by(8) {
            pages.words.get(line).into_iter().for_each(prefetch);
        }
        let slot = &pages.words[self.next..self.next + length];
        slot[0].store(frame.time.0, Ordering::Relaxed);
        slot[1].store(about, Ordering::Relaxed);
        for (word, bytes) in slot[HEADER..].iter().zip(words) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        if !rest.is_empty() {
            slot[length - 1].store(last_word(kept, rest), Ordering::Relaxed);
        }
        self.next += length;
        self.written += 1;
        pages.written.store(self.written, Ordering::Release);
    }

    /// Advances to the next page, the oldest.
    #[cold]
    fn turn_page(&mut self) {
        let pages = &*self.pages;
        self.page += 1;
        pages.page.store(self.page, Ordering::Relaxed);
        // A reader that sees one of the following stores also sees the new counter.
        fence(Ordering::Release);
        let position = (self.page % pages.count()) as usize;
        pages.firsts[position].store(self.written, Ordering::Relaxed);
        pages.begun.store(self.page, Ordering::Release);
        (self.next, self.end) = (position * pages.size, (position + 1) * pages.size);
    }

    /// Writes all frames of a batch.
    #[inline]
    pub fn write_batch(&mut self, batch: &Batch<'_>) {
        batch.iter().for_each(|frame| self.write(&frame));
    }
}

/// Returns the bytes that do not fill a word, padded with zeros. If there is a word before, they are loaded together
/// with the preceding bytes and shifted: a copy of variable length would take longer than all the rest.
#[inline(always)]
fn last_word(kept: &[u8], rest: &[u8]) -> u64 {
    match kept.last_chunk::<8>() {
        Some(bytes) => u64::from_le_bytes(*bytes) >> (8 * (8 - rest.len())),
        None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

impl Samples {
    /// Returns the number of frames.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there are no frames.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns the frames, oldest first.
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
