//! An array map of large values in memory that programs and this process share (BPF_F_MMAPABLE, Linux 5.5): reads and writes
//! need no system call.

#![expect(unsafe_code, reason = "memory shared with the kernel")]

use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::map::{AnyMap, MapKind, MapSpec};

/// BPF_F_MMAPABLE of linux/bpf.h.
const FLAG_MAPPABLE: u32 = 1 << 10;

/// The bytes of a word.
const WORD: usize = size_of::<u64>();

/// The values of an array. Programs may write them meanwhile: several words may be of different writes.
#[derive(Debug)]
pub struct MappedRegion {
    words: NonNull<AtomicU64>,
    /// Words per value; the kernel aligns values to words.
    stride: usize,
    entries: usize,
    map: AnyMap,
}

// SAFETY: the memory belongs to this value, and its words are atomic.
unsafe impl Send for MappedRegion {}
// SAFETY: as above; every access is atomic.
unsafe impl Sync for MappedRegion {}

impl MappedRegion {
    /// The number of values.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// The length of a value in bytes.
    pub fn value_bytes(&self) -> usize {
        self.stride * WORD
    }

    /// The map.
    pub fn map(&self) -> &AnyMap {
        &self.map
    }

    fn word(&self, entry: usize, word: usize) -> &AtomicU64 {
        assert!(entry < self.entries && word < self.stride, "word {word} of value {entry}");
        // SAFETY: the word is within the mapping, aligned, and accessed as an atomic only.
        unsafe { self.words.add(entry * self.stride + word).as_ref() }
    }

    /// Reads the word at `offset` bytes of a value. Programs' writes before that word was written are visible then.
    ///
    /// # Panics
    /// If the offset is not a multiple of eight, or beyond the value.
    #[inline]
    pub fn load(&self, entry: usize, offset: usize) -> u64 {
        assert!(offset.is_multiple_of(WORD));
        self.word(entry, offset / WORD).load(Ordering::Acquire)
    }

    /// Writes the word at `offset` bytes of a value.
    ///
    /// # Panics
    /// As [`load`](Self::load).
    pub fn store(&self, entry: usize, offset: usize, word: u64) {
        assert!(offset.is_multiple_of(WORD));
        self.word(entry, offset / WORD).store(word, Ordering::Release);
    }

    /// Reads the 32-bit word at `offset` bytes of a value.
    ///
    /// # Panics
    /// If the offset is not a multiple of four, or beyond the value.
    #[inline]
    pub fn load_u32(&self, entry: usize, offset: usize) -> u32 {
        self.half(entry, offset).load(Ordering::Relaxed)
    }

    /// Writes the 32-bit word at `offset` bytes of a value.
    ///
    /// # Panics
    /// As [`load_u32`](Self::load_u32).
    pub fn store_u32(&self, entry: usize, offset: usize, word: u32) {
        self.half(entry, offset).store(word, Ordering::Release);
    }

    fn half(&self, entry: usize, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(size_of::<u32>()));
        let word = ptr::from_ref(self.word(entry, offset / WORD)).cast::<AtomicU32>();
        // SAFETY: half a word of the mapping, aligned; the mapping lives as long as `self`.
        unsafe { &*word.add(offset % WORD / size_of::<u32>()) }
    }

    /// Reads words from `offset` bytes of a value on.
    ///
    /// # Panics
    /// If the offset is not a multiple of eight, or the words end beyond the value.
    pub fn read(&self, entry: usize, offset: usize, words: &mut [u64]) {
        for (word, to) in (offset / WORD..).zip(words) {
            *to = self.word(entry, word).load(Ordering::Relaxed);
        }
    }

    /// Writes bytes to the beginning of a value; the last word is filled with zeros.
    ///
    /// # Panics
    /// If they are longer than the value.
    pub fn write(&self, entry: usize, bytes: &[u8]) {
        for (number, bytes) in bytes.chunks(WORD).enumerate() {
            let mut word = [0; WORD];
            word[..bytes.len()].copy_from_slice(bytes);
            self.word(entry, number).store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
    }
}

impl TryFrom<AnyMap> for MappedRegion {
    type Error = io::Error;

    fn try_from(map: AnyMap) -> io::Result<MappedRegion> {
        let MapSpec { kind, value_size, max_entries, flags, .. } = map.spec();
        if kind != MapKind::Array || flags & FLAG_MAPPABLE == 0 {
            let message = format!("map {:?} is not a mappable array", map.name());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let (entries, stride) = (max_entries as usize, (value_size as usize).div_ceil(WORD));
        let (length, protection) = (entries * stride * WORD, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let memory =
            unsafe { libc::mmap(ptr::null_mut(), length, protection, libc::MAP_SHARED, map.as_raw_fd(), 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let words = NonNull::new(memory.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(MappedRegion { words, stride, entries, map })
    }
}

impl Drop for MappedRegion {
    fn drop(&mut self) {
        let length = self.entries * self.stride * WORD;
        // SAFETY: the mapping that was made for this value, which nobody uses any longer.
        unsafe { libc::munmap(self.words.as_ptr().cast(), length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_bytes_are_read_back_in_words() {
        let spec = MapSpec {
            kind: MapKind::Array,
            key_size: 4,
            value_size: 20,
            max_entries: 3,
            flags: FLAG_MAPPABLE,
        };
        let map = match AnyMap::create("region", spec) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return crate::skip::skip("needs CAP_BPF");
            }
            map => map.unwrap(),
        };
        let region = MappedRegion::try_from(map).unwrap();
        assert_eq!((region.entries(), region.value_bytes()), (3, 24));
        region.write(2, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let mut words = [0; 2];
        region.read(2, 0, &mut words);
        assert_eq!(words.map(u64::to_le), [0x0807_0605_0403_0201, 9]);
        region.store_u32(2, 12, 5);
        assert_eq!((region.load_u32(2, 12), region.load(1, 8)), (5, 0));
    }
}
