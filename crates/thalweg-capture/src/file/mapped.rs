//! Input that lies in memory: a plain file, mapped.
#![expect(unsafe_code, reason = "memory maps and advice on them")]

use std::fs::File;
use std::io;

use memmap2::{Advice, Mmap, UncheckedAdvice};
use thalweg_wire::Progress;

/// Pages are mapped ahead, and given back behind, in steps of this size. One system call then replaces the page
/// faults of 50,000 short records, and resident memory stays at about two steps however long the file.
const STEP: usize = 4 << 20;

/// A step is taken as soon as less than this lies ahead: several times the longest batch of common frames.
const LOW_WATER: usize = 1 << 20;

/// Bytes asked into the cache before a batch is looked for: a batch of short records. Records are found one from
/// the length of the other, so without this each one that is not in the cache yet is waited for in turn; asked
/// for together they arrive together, which halves the time a record takes.
const PREFETCH: usize = 32 << 10;

#[cfg(target_arch = "x86_64")]
const CACHE_LINE: usize = 64;

/// A file in memory, read from front to back.
#[derive(Debug)]
pub(super) struct Mapped {
    map: Mmap,
    position: usize,
    /// End of what was asked into the cache.
    prefetched: usize,
    /// End of what was mapped ahead; always a multiple of [`STEP`] until the end of the file.
    populated: usize,
    /// End of what was given back; always a multiple of [`STEP`].
    released: usize,
    /// Kernels before 5.14 do not know how to populate: then pages arrive by faults.
    can_populate: bool,
}

impl Mapped {
    /// Maps a regular file that is not empty.
    pub(super) fn new(file: &File) -> io::Result<Mapped> {
        // SAFETY: the map is private to this value, only ever read, and handed out as `&[u8]`. The bytes can
        // still change under us if another process writes to the file: no tool that maps files can exclude
        // that. Nothing here relies on two reads of a byte being equal for memory safety, since every length is
        // checked against the map after it was loaded; truncation is the module's documented SIGBUS.
        let map = unsafe { Mmap::map(file)? };
        // Only advice: without it the file is read all the same, with less read-ahead.
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
        debug_assert!(self.position <= self.map.len(), "consumed what was never there");
        if self.position + LOW_WATER > self.populated && self.populated < self.map.len() {
            self.step();
        }
        self.prefetch();
    }

    /// Asks for the bytes that come next.
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

    /// Maps the next step's pages and gives back the whole steps behind.
    fn step(&mut self) {
        let here = self.position / STEP * STEP;
        let ahead = self.populated.max(here);
        let length = STEP.min(self.map.len() - ahead);
        self.can_populate =
            self.can_populate && self.map.advise_range(Advice::PopulateRead, ahead, length).is_ok();
        self.populated = ahead + length;
        if here > self.released {
            // SAFETY: the map is shared and file-backed and was never written to, so dropping its pages loses
            // nothing: touched again, they come back from the file. Nobody holds a borrow of them: batches
            // borrow the source, and `consume` needs it mutably.
            let advised = unsafe {
                self.map.unchecked_advise_range(
                    UncheckedAdvice::DontNeed,
                    self.released,
                    here - self.released,
                )
            };
            // Only advice: without it resident memory grows by what the file has in the page cache anyway.
            let _ = advised;
            self.released = here;
        }
    }

    /// `lent` bytes of the window have been handed on.
    pub(super) fn progress(&self, lent: usize) -> Progress {
        Progress { done: (self.position + lent) as u64, total: self.map.len() as u64 }
    }
}
