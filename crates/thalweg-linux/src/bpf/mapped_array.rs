//! An array map in memory that programs and this process share (BPF_F_MMAPABLE, Linux 5.5): reads need no system call.

#![expect(unsafe_code, reason = "memory shared with the kernel")]

use std::io;
use std::os::fd::AsRawFd as _;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use super::map::{AnyMap, MapKind, MapSpec};

/// BPF_F_MMAPABLE of linux/bpf.h.
const FLAG_MAPPABLE: u32 = 1 << 10;

/// An array whose values are `WORDS` words of 32 bits, for reading. Programs write it meanwhile: a value may have words of
/// two writes.
#[derive(Debug)]
pub struct MappedArray<const WORDS: usize> {
    words: NonNull<AtomicU32>,
    entries: usize,
    _map: AnyMap,
}

// SAFETY: the memory belongs to this value, and its words are atomic.
unsafe impl<const WORDS: usize> Send for MappedArray<WORDS> {}

impl<const WORDS: usize> MappedArray<WORDS> {
    /// The length of all values, which the kernel aligns to eight bytes each.
    fn length(entries: usize) -> usize {
        const { assert!(WORDS.is_multiple_of(2), "so that the kernel adds no padding") };
        entries * WORDS * size_of::<u32>()
    }

    /// The number of entries.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Reads a value.
    ///
    /// # Panics
    /// If the array has fewer entries.
    #[inline]
    pub fn get(&self, index: usize) -> [u32; WORDS] {
        assert!(index < self.entries);
        // SAFETY: the words of an entry are within the mapping, aligned, and accessed as atomics only.
        std::array::from_fn(|word| unsafe {
            self.words.add(index * WORDS + word).as_ref().load(Ordering::Relaxed)
        })
    }
}

impl<const WORDS: usize> TryFrom<AnyMap> for MappedArray<WORDS> {
    type Error = io::Error;

    fn try_from(map: AnyMap) -> io::Result<MappedArray<WORDS>> {
        let MapSpec { kind, value_size, max_entries, flags, .. } = map.spec();
        let is_expected = kind == MapKind::Array
            && value_size as usize == WORDS * size_of::<u32>()
            && flags & FLAG_MAPPABLE != 0;
        if !is_expected {
            let message = format!("map {:?} is not a mappable array of {WORDS} words", map.name());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let (entries, protection) = (max_entries as usize, libc::PROT_READ);
        let length = Self::length(entries);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let memory =
            unsafe { libc::mmap(ptr::null_mut(), length, protection, libc::MAP_SHARED, map.as_raw_fd(), 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let words = NonNull::new(memory.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(MappedArray { words, entries, _map: map })
    }
}

impl<const WORDS: usize> Drop for MappedArray<WORDS> {
    fn drop(&mut self) {
        // SAFETY: the mapping that was made for this value, which nobody uses any longer.
        unsafe { libc::munmap(self.words.as_ptr().cast(), Self::length(self.entries)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::Map;

    #[test]
    fn a_value_that_was_written_is_read_without_a_system_call() {
        let spec =
            MapSpec { kind: MapKind::Array, key_size: 4, value_size: 8, max_entries: 1_000, flags: 1 << 10 };
        let map = match AnyMap::create("mapped", spec) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return crate::skip::skip("needs CAP_BPF");
            }
            map => map.unwrap(),
        };
        assert!(MappedArray::<4>::try_from(AnyMap::create("mapped", spec).unwrap()).is_err());
        let mut writer = Map::<4, 8>::try_from(AnyMap::by_id(map.id().unwrap()).unwrap()).unwrap();
        let array = MappedArray::<2>::try_from(map).unwrap();
        assert_eq!(array.get(999), [0, 0]);
        writer.set(&999_u32.to_ne_bytes(), &(7_u64 << 32 | 5).to_ne_bytes()).unwrap();
        assert_eq!((array.get(999), array.get(998)), ([5, 7], [0, 0]));
    }
}
