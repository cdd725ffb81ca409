//! Input in memory: a plain file, mapped.
#![expect(unsafe_code, reason = "memory maps and advice on them")]

use std::fs::File;
use std::io;

use memmap2::{Advice, Mmap, UncheckedAdvice};
use thalweg_wire::Progress;

/// Pages are mapped ahead, and released behind, in steps of this size. One system call then replaces the page faults
/// of 50,000 short records, and resident memory stays at about two steps for any file length.
const STEP: usize = 4 << 20;

/// The next step begins when less than this is mapped ahead: several times the longest batch of common frames.
const LOW_WATER: usize = 1 << 20;

/// Bytes to prefetch before a batch is parsed: a batch of short records. The position of a record follows from the
/// length of the previous one, so without prefetching the cache misses would be sequential; in parallel they halve
/// the time per record.
const PREFETCH: usize = 32 << 10;

#[cfg(target_arch = "x86_64")]
const CACHE_LINE: usize = 64;

/// A file in memory, read from front to back.
#[derive(Debug)]
pub(super) struct Mapped {
    map: Mmap,
    position: usize,
    /// The end of the prefetched bytes.
    prefetched: usize,
    /// The end of the pages mapped ahead; always a multiple of [`STEP`] until the end of the file.
    populated: usize,
    /// The end of the released pages; always a multiple of [`STEP`].
    released: usize,
    /// Kernels before 5.14 cannot populate; then pages are loaded by faults.
    can_populate: bool,
}

impl Mapped {
    /// Maps a regular file that is not empty.
    pub(super) fn new(file: &File) -> io::Result<Mapped> {
        // SAFETY: the map is private to this value, only ever read, and lent as `&[u8]`. The bytes can still change
        // if another process writes to the file; no tool that maps files can exclude that. Memory safety never relies
        // on two reads of a byte being equal, since every length is checked against the map after it was loaded.
        // Truncation is the module's documented SIGBUS.
        let map = unsafe { Mmap::map(file)? };
        // Only advice: without it reading works too, with less read-ahead.
        let _ = map.advise(Advice::Sequential);
        let mut mapped =
            Mapped { map, position: 0, prefetched: 0, populated: 0, released: 0, can_populate: true };
        mapped.step();
        Ok(mapped)
    }

    pub(super) fn window(&self) -> &[u8] {
        &self.map[self.position..]
    }

    pub(super) fn offset(&self) -> u64 {
        self.position as u64
    }

    pub(super) fn consume(&mut self, length: usize) {
        self.position += length;
        debug_assert!(self.position <= self.map.len(), "consumed more than the window");
        if self.position + LOW_WATER > self.populated && self.populated < self.map.len() {
            self.step();
        }
        self.prefetch();
    }

    /// Prefetches the next bytes.
    fn prefetch(&mut self) {
        let end = self.map.len().min(self.position + PREFETCH);
        let start = self.prefetched.max(self.position);
        #[cfg(target_arch = "x86_64")]
        for line in self.map[start.min(end)..end].chunks(CACHE_LINE) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a hint, which cannot fault, on an address inside the map.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
        }
        self.prefetched = end.max(start);
    }

    /// Maps the next step's pages and releases the whole steps behind.
    fn step(&mut self) {
        let here = self.position / STEP * STEP;
        let ahead = self.populated.max(here);
        let length = STEP.min(self.map.len() - ahead);
        self.can_populate =
            self.can_populate && self.map.advise_range(Advice::PopulateRead, ahead, length).is_ok();
        self.populated = ahead + length;
        if here > self.released {
            // SAFETY: the map is shared and file-backed and was never written to, so dropping its pages loses
            // nothing: when touched again, they are read from the file. No borrow of them exists: batches borrow the
            // source, and `consume` needs it mutably.
            let advised = unsafe {
                self.map.unchecked_advise_range(
                    UncheckedAdvice::DontNeed,
                    self.released,
                    here - self.released,
                )
            };
            // Only advice: without it, resident memory includes what the page cache has of the file anyway.
            let _ = advised;
            self.released = here;
        }
    }

    /// Returns the progress after `lent` bytes of the window were delivered.
    pub(super) fn progress(&self, lent: usize) -> Progress {
        Progress { done: (self.position + lent) as u64, total: self.map.len() as u64 }
    }
}
