//! Large arrays of plain values: zeroed, of fixed length, on huge pages where the system has them.
//!
//! Accesses to a table with a million entries are random, so most of their time is memory latency; huge pages remove
//! the page-table walk from it. Pages become resident when they are first touched; [`LargeArray::bytes`] is the upper
//! limit, reached when every entry has been used.
//!
//! The first [`SMALL_PAGES`] bytes have small pages: a collector has a dozen arrays, and with few flows it would occupy a
//! huge page in each. They are few enough for the processor's address cache.

use std::ops::{Deref, DerefMut};

use bytemuck::{AnyBitPattern, NoUninit};
use memmap2::{MmapMut, MmapOptions};
use thiserror::Error;

use thalweg_wire::Bytes;

/// The first bytes of an array, which have small pages: the size of a huge page on x86-64.
const SMALL_PAGES: usize = 2 << 20;

/// A table did not fit into the machine's memory.
#[derive(Debug, Error)]
#[error("cannot allocate a table of {bytes}: {cause}")]
pub struct MemoryError {
    /// The size of the table.
    pub bytes: Bytes,
    /// The system error.
    pub cause: std::io::Error,
}

/// `len` values of `T`, initially all zero bytes.
#[derive(Debug)]
pub(crate) struct LargeArray<T> {
    map: MmapMut,
    len: usize,
    element: std::marker::PhantomData<T>,
}

impl<T: AnyBitPattern + NoUninit> LargeArray<T> {
    /// Maps an array of zeros.
    ///
    /// # Errors
    /// If the system has no address space left for it.
    pub(crate) fn zeroed(len: usize) -> Result<Self, MemoryError> {
        let size = len.saturating_mul(size_of::<T>());
        let map = MmapOptions::new()
            .len(size.max(1))
            .map_anon()
            .map_err(|cause| MemoryError { bytes: Bytes(size as u64), cause })?;
        // Mappings begin at a page, so every type of this crate is aligned; the casts below rely on it.
        assert!(map.as_ptr().cast::<T>().is_aligned() && isize::try_from(size).is_ok());
        // A system without huge pages rejects the advice, which does no harm.
        #[cfg(target_os = "linux")]
        {
            let small = size.clamp(1, SMALL_PAGES);
            let _ = map.advise_range(memmap2::Advice::NoHugePage, 0, small);
            if size > small {
                let _ = map.advise_range(memmap2::Advice::HugePage, small, size - small);
            }
        }
        Ok(LargeArray { map, len, element: std::marker::PhantomData })
    }

    /// Returns the memory when every element has been touched.
    pub(crate) fn bytes(&self) -> Bytes {
        Bytes((self.len * size_of::<T>()) as u64)
    }
}

impl<T: AnyBitPattern + NoUninit> Deref for LargeArray<T> {
    type Target = [T];

    #[inline(always)]
    #[expect(unsafe_code, reason = "a checked cast costs a division at each of the ten accesses per packet")]
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping has `len` times the size of `T` bytes, all initialised, at an address that `zeroed` has
        // checked to be aligned; every bit pattern is a `T`; and it lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.len) }
    }
}

impl<T: AnyBitPattern + NoUninit> DerefMut for LargeArray<T> {
    #[inline(always)]
    #[expect(unsafe_code, reason = "as for Deref")]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`; and a `T` has no uninitialised bytes, so the mapping stays initialised.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().cast(), self.len) }
    }
}

/// Prefetches the cache line of `value`.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "the intrinsic takes a raw pointer")]
    // SAFETY: a prefetch has no observable effect and never faults; the pointer is valid anyway.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
