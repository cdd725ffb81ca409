//! eBPF maps, which programs and processes share.
//!
//! [`AnyMap`] is a map with keys and values of any length. [`Map`] and [`PerCpuMap`] have keys and values of constant
//! length, which is checked once. Keys and values are bytes; callers convert them.

#![expect(unsafe_code, reason = "system calls that take keys and values by pointer")]

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use super::syscall;

/// The kernel's list of possible CPUs, as ranges from 0.
const POSSIBLE_CPUS: &str = "/sys/devices/system/cpu/possible";

/// Entries per batch.
const BATCH: usize = 4_096;

/// The kernel's own error for operations that a kind of map lacks.
const ENOTSUPP: i32 = 524;

/// The type of a map (`enum bpf_map_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// A hash table.
    Hash,
    /// An array.
    Array,
    /// A hash table with one value per CPU.
    PerCpuHash,
    /// An array with one value per CPU.
    PerCpuArray,
    /// A map from receive queues to XDP sockets.
    XdpSockets,
    /// Another type, by the kernel's number.
    Other(u32),
}

/// The type and sizes of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapSpec {
    /// The type.
    pub kind: MapKind,
    /// The length of a key in bytes.
    pub key_size: u32,
    /// The length of a value in bytes.
    pub value_size: u32,
    /// The maximum number of entries.
    pub max_entries: u32,
    /// `BPF_F_` flags of linux/bpf.h.
    pub flags: u32,
}

/// An open map.
#[derive(Debug)]
pub struct AnyMap {
    descriptor: OwnedFd,
    name: String,
    spec: MapSpec,
}

/// A map with keys and values of constant length, with one value per key.
#[derive(Debug)]
pub struct Map<const KEY: usize, const VALUE: usize> {
    map: AnyMap,
}

/// A map with keys and values of constant length, with one value per key and possible CPU.
#[derive(Debug)]
pub struct PerCpuMap<const KEY: usize, const VALUE: usize> {
    map: AnyMap,
    cpus: usize,
}

impl MapKind {
    /// The number in the kernel.
    pub const fn number(self) -> u32 {
        match self {
            MapKind::Hash => 1,
            MapKind::Array => 2,
            MapKind::PerCpuHash => 5,
            MapKind::PerCpuArray => 6,
            MapKind::XdpSockets => 17,
            MapKind::Other(number) => number,
        }
    }

    /// Returns the type with this number in the kernel.
    pub const fn from_number(number: u32) -> MapKind {
        match number {
            1 => MapKind::Hash,
            2 => MapKind::Array,
            5 => MapKind::PerCpuHash,
            6 => MapKind::PerCpuArray,
            17 => MapKind::XdpSockets,
            other => MapKind::Other(other),
        }
    }

    const fn is_per_cpu(self) -> bool {
        matches!(self, MapKind::PerCpuHash | MapKind::PerCpuArray)
    }
}

impl AnyMap {
    /// Creates a map. The kernel keeps the first 15 bytes of `name`.
    ///
    /// # Errors
    /// If this process lacks the privilege, or memory is short.
    pub fn create(name: &str, spec: MapSpec) -> io::Result<AnyMap> {
        let MapSpec { kind, key_size, value_size, max_entries, flags } = spec;
        let descriptor =
            syscall::create_map(kind.number(), name, [key_size, value_size, max_entries, flags])?;
        Ok(AnyMap { descriptor, name: name.to_owned(), spec })
    }

    /// Opens a map by its kernel id.
    ///
    /// # Errors
    /// If the map does not exist, or this process lacks the privilege.
    pub fn by_id(id: u32) -> io::Result<AnyMap> {
        AnyMap::of_descriptor(syscall::map_by_id(id)?)
    }

    pub(super) fn of_descriptor(descriptor: OwnedFd) -> io::Result<AnyMap> {
        let info = syscall::map_info(&descriptor)?;
        let name = info.name.split(|&byte| byte == 0).next().unwrap_or_default();
        Ok(AnyMap {
            descriptor,
            name: String::from_utf8_lossy(name).into_owned(),
            spec: MapSpec {
                kind: MapKind::from_number(info.map_type),
                key_size: info.key_size,
                value_size: info.value_size,
                max_entries: info.max_entries,
                flags: info.map_flags,
            },
        })
    }

    /// Opens the same map once more.
    ///
    /// # Errors
    /// If this process has too many descriptors.
    pub fn try_clone(&self) -> io::Result<AnyMap> {
        Ok(AnyMap { descriptor: self.descriptor.try_clone()?, name: self.name.clone(), spec: self.spec })
    }

    /// The name; only the first 15 bytes of a map opened by id.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's id.
    ///
    /// # Errors
    /// If the kernel returns an error.
    pub fn id(&self) -> io::Result<u32> {
        Ok(syscall::map_info(&self.descriptor)?.id)
    }

    /// The type and sizes.
    pub fn spec(&self) -> MapSpec {
        self.spec
    }

    /// Inserts a descriptor into a map of descriptors, such as an XDP socket. Closing the descriptor removes it.
    ///
    /// # Errors
    /// If the kernel returns an error.
    ///
    /// # Panics
    /// If keys or values are not four bytes long.
    pub fn put_descriptor(&self, key: u32, descriptor: RawFd) -> io::Result<()> {
        let (key, value) = (key.to_ne_bytes(), descriptor.to_ne_bytes());
        assert_eq!((self.spec.key_size, self.spec.value_size), (4, 4), "a map of descriptors");
        assert!(!self.spec.kind.is_per_cpu(), "a map of descriptors");
        // SAFETY: key and value are as long as the map's.
        unsafe { syscall::update(&self.descriptor, &key, &value) }
    }

    /// Writes the first value of an array.
    ///
    /// # Errors
    /// If the value has another length than the map's, or the kernel returns an error.
    pub fn set_first(&self, value: &[u8]) -> io::Result<()> {
        self.check(4, value.len(), false)?;
        // SAFETY: key and value are as long as the map's.
        unsafe { syscall::update(&self.descriptor, &[0; 4], value) }
    }

    /// Reads the first value of an array.
    ///
    /// # Errors
    /// If `value` has another length than the map's values, or the kernel returns an error.
    pub fn first(&self, value: &mut [u8]) -> io::Result<()> {
        self.check(4, value.len(), false)?;
        // SAFETY: key and value are as long as the map's.
        unsafe { syscall::look_up(&self.descriptor, &[0; 4], value) }
    }

    /// Makes the map constant for processes, so that the verifier may use its contents if it is constant for programs too.
    ///
    /// # Errors
    /// If the kernel returns an error.
    pub fn freeze(&self) -> io::Result<()> {
        syscall::freeze_map(&self.descriptor)
    }

    /// Checks the lengths of keys and values.
    fn check(&self, key: usize, value: usize, is_per_cpu: bool) -> io::Result<()> {
        let spec = self.spec;
        let lengths = (spec.key_size as usize, spec.value_size as usize);
        if lengths == (key, value) && spec.kind.is_per_cpu() == is_per_cpu {
            return Ok(());
        }
        let reason = format!(
            "map {:?} has keys of {} and values of {} bytes{}, expected {key} and {value}{}",
            self.name,
            lengths.0,
            lengths.1,
            if spec.kind.is_per_cpu() { " per CPU" } else { "" },
            if is_per_cpu { " per CPU" } else { "" },
        );
        Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
    }
}

impl AsFd for AnyMap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl AsRawFd for AnyMap {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

impl<const KEY: usize, const VALUE: usize> TryFrom<AnyMap> for Map<KEY, VALUE> {
    type Error = io::Error;

    fn try_from(map: AnyMap) -> io::Result<Map<KEY, VALUE>> {
        map.check(KEY, VALUE, false)?;
        Ok(Map { map })
    }
}

impl<const KEY: usize, const VALUE: usize> Map<KEY, VALUE> {
    /// Returns the value of a key.
    ///
    /// # Errors
    /// If the kernel returns an error.
    pub fn get(&self, key: &[u8; KEY]) -> io::Result<Option<[u8; VALUE]>> {
        let mut value = [0; VALUE];
        // SAFETY: key and value are as long as the map's.
        let found = unsafe { syscall::look_up(&self.map.descriptor, key, &mut value) };
        Ok(found_or_none(found)?.map(|()| value))
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// [`io::ErrorKind::ArgumentListTooLong`] if the map is full, or another error of the kernel.
    pub fn set(&mut self, key: &[u8; KEY], value: &[u8; VALUE]) -> io::Result<()> {
        // SAFETY: key and value are as long as the map's.
        unsafe { syscall::update(&self.map.descriptor, key, value) }
    }

    /// Sets the values of many keys. A system call writes thousands, from Linux 5.6 on.
    ///
    /// # Errors
    /// As [`set`](Self::set). Earlier keys are set then.
    ///
    /// # Panics
    /// If there are not as many keys as values.
    pub fn set_many(&mut self, keys: &[[u8; KEY]], values: &[[u8; VALUE]]) -> io::Result<()> {
        assert_eq!(keys.len(), values.len(), "one value per key");
        for (keys, values) in keys.chunks(BATCH).zip(values.chunks(BATCH)) {
            // SAFETY: both have as many elements, whose lengths are the map's.
            let set = unsafe {
                let (keys_bytes, values_bytes) = (keys.as_flattened(), values.as_flattened());
                syscall::update_batch(&self.map.descriptor, keys_bytes, values_bytes, keys.len())
            };
            match set {
                // The kernel, or this kind of map, has no batches.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | ENOTSUPP)) => {
                    keys.iter().zip(values).try_for_each(|(key, value)| self.set(key, value))?;
                }
                set => set?,
            }
        }
        Ok(())
    }

    /// Removes a key. Returns whether it was present.
    ///
    /// # Errors
    /// If the kernel returns an error.
    pub fn remove(&mut self, key: &[u8; KEY]) -> io::Result<bool> {
        // SAFETY: the key is as long as the map's.
        let removed = unsafe { syscall::remove(&self.map.descriptor, key) };
        Ok(found_or_none(removed)?.is_some())
    }

    /// Returns all keys and values. May miss keys while a program or process writes. A system call reads thousands, from Linux
    /// 5.6 on.
    ///
    /// # Errors
    /// If the kernel returns an error.
    pub fn entries(&self) -> io::Result<Vec<([u8; KEY], [u8; VALUE])>> {
        match self.entries_in_batches() {
            // The kernel, or this kind of map, has no batches.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | ENOTSUPP)) => {
                self.entries_by_key()
            }
            entries => entries,
        }
    }

    fn entries_in_batches(&self) -> io::Result<Vec<([u8; KEY], [u8; VALUE])>> {
        // More than a bucket of a hash table has, which must fit.
        let mut count = BATCH.min(self.map.spec.max_entries.max(1) as usize);
        if self.map.spec.kind != MapKind::Hash && KEY > 8 {
            return self.entries_by_key();
        }
        let (mut keys, mut values) = (vec![0; count * KEY], vec![0; count * VALUE]);
        let (mut entries, mut cursor) = (Vec::new(), None);
        loop {
            let before = cursor;
            // SAFETY: both buffers have room for `count` keys and values, whose lengths were checked.
            let read = unsafe {
                syscall::look_up_batch(&self.map.descriptor, &mut cursor, (&mut keys, &mut values), count)
            };
            let (read, has_more) = match read {
                Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => {
                    (count, cursor) = (2 * count, before);
                    keys.resize(count * KEY, 0);
                    values.resize(count * VALUE, 0);
                    continue;
                }
                read => read?,
            };
            let read_keys = keys.as_chunks::<KEY>().0.iter().take(read);
            entries.extend(read_keys.copied().zip(values.as_chunks::<VALUE>().0.iter().copied()));
            if !has_more {
                return Ok(entries);
            }
        }
    }

    fn entries_by_key(&self) -> io::Result<Vec<([u8; KEY], [u8; VALUE])>> {
        self.entries_after(None, usize::MAX)
    }

    /// Returns at most `count` keys and values, in the order of the kernel, after the key `last`. From the first one on, if
    /// that is `None` or no longer present in a hash table. Two system calls read one.
    ///
    /// # Errors
    /// If the kernel returns an error.
    pub fn entries_after(
        &self,
        last: Option<&[u8; KEY]>,
        count: usize,
    ) -> io::Result<Vec<([u8; KEY], [u8; VALUE])>> {
        let mut entries = Vec::new();
        let mut last = last.copied();
        while entries.len() < count
            && let Some(key) = self.next_key(last.as_ref())?
        {
            if let Some(value) = self.get(&key)? {
                entries.push((key, value));
            }
            last = Some(key);
        }
        Ok(entries)
    }

    fn next_key(&self, key: Option<&[u8; KEY]>) -> io::Result<Option<[u8; KEY]>> {
        let mut next = [0; KEY];
        let key = key.map(<[u8; KEY]>::as_slice);
        // SAFETY: both keys are as long as the map's.
        let found = unsafe { syscall::next_key(&self.map.descriptor, key, &mut next) };
        Ok(found_or_none(found)?.map(|()| next))
    }
}

impl<const KEY: usize, const VALUE: usize> TryFrom<AnyMap> for PerCpuMap<KEY, VALUE> {
    type Error = io::Error;

    fn try_from(map: AnyMap) -> io::Result<PerCpuMap<KEY, VALUE>> {
        map.check(KEY, VALUE, true)?;
        Ok(PerCpuMap { map, cpus: possible_cpus()? })
    }
}

impl<const KEY: usize, const VALUE: usize> PerCpuMap<KEY, VALUE> {
    /// The distance between the values of two CPUs.
    const STRIDE: usize = VALUE.next_multiple_of(8);

    /// Returns the values of a key by CPU.
    ///
    /// # Errors
    /// If the kernel returns an error.
    pub fn get(&self, key: &[u8; KEY]) -> io::Result<Option<Vec<[u8; VALUE]>>> {
        let mut values = vec![0; self.cpus * Self::STRIDE];
        // SAFETY: the key is as long as the map's, and the buffer holds the values of all possible CPUs.
        let found = unsafe { syscall::look_up(&self.map.descriptor, key, &mut values) };
        let value = |bytes: &[u8]| *bytes.first_chunk().expect("a stride is at least as long as a value");
        Ok(found_or_none(found)?.map(|()| values.chunks_exact(Self::STRIDE).map(value).collect()))
    }

    /// Sets the value of a key for all CPUs.
    ///
    /// # Errors
    /// As [`Map::set`].
    pub fn set_all(&mut self, key: &[u8; KEY], value: &[u8; VALUE]) -> io::Result<()> {
        let mut values = vec![0; self.cpus * Self::STRIDE];
        values.chunks_exact_mut(Self::STRIDE).for_each(|place| place[..VALUE].copy_from_slice(value));
        // SAFETY: the key is as long as the map's, and the buffer holds the values of all possible CPUs.
        unsafe { syscall::update(&self.map.descriptor, key, &values) }
    }
}

/// Converts the error of a missing key to `None`.
fn found_or_none(result: io::Result<()>) -> io::Result<Option<()>> {
    match result {
        Ok(()) => Ok(Some(())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the number of possible CPUs of this machine: per-CPU maps have a value for each.
///
/// # Errors
/// If the kernel's list cannot be read.
pub fn possible_cpus() -> io::Result<usize> {
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, POSSIBLE_CPUS);
    count_of_ranges(&fs::read_to_string(POSSIBLE_CPUS)?).ok_or_else(malformed)
}

/// Counts the numbers in a list such as `0-3,5`.
fn count_of_ranges(text: &str) -> Option<usize> {
    let count = |range: &str| -> Option<usize> {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        Some(last.checked_sub(first)? + 1)
    };
    text.trim().split(',').map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_of_a_list_are_counted() {
        for (text, count) in
            [("0\n", Some(1)), ("0-3\n", Some(4)), ("0-1,4-5,7", Some(5)), ("", None), ("3-0", None)]
        {
            assert_eq!(count_of_ranges(text), count, "{text:?}");
        }
    }

    /// Creates a map, or skips the test without the privilege.
    fn create_or_skip(kind: MapKind, value_size: u32) -> Option<AnyMap> {
        let spec = MapSpec { kind, key_size: 4, value_size, max_entries: 2, flags: 0 };
        match AnyMap::create("a_name_of_more_than_15", spec) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                crate::skip::skip("needs CAP_BPF");
                None
            }
            map => Some(map.unwrap()),
        }
    }

    #[test]
    fn values_are_kept_until_their_key_is_removed() {
        let Some(map) = create_or_skip(MapKind::Hash, 3) else { return };
        let mut map = Map::<4, 3>::try_from(map).unwrap();
        assert_eq!(map.get(&[1; 4]).unwrap(), None);
        map.set(&[1; 4], &[7, 8, 9]).unwrap();
        map.set(&[2; 4], &[0; 3]).unwrap();
        assert_eq!(map.get(&[1; 4]).unwrap(), Some([7, 8, 9]));
        let full = map.set(&[3; 4], &[0; 3]).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::ArgumentListTooLong);
        let mut entries = map.entries().unwrap();
        entries.sort_unstable();
        assert_eq!(entries, [([1; 4], [7, 8, 9]), ([2; 4], [0; 3])]);
        assert!(map.remove(&[1; 4]).unwrap() && !map.remove(&[1; 4]).unwrap());
        assert_eq!(map.entries().unwrap().len(), 1);
    }

    #[test]
    fn a_large_map_is_written_in_batches_and_read_in_batches_and_by_key() {
        let spec =
            MapSpec { kind: MapKind::Hash, key_size: 16, value_size: 5, max_entries: 20_000, flags: 0 };
        let map = match AnyMap::create("large", spec) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return crate::skip::skip("needs CAP_BPF");
            }
            map => map.unwrap(),
        };
        let mut map = Map::<16, 5>::try_from(map).unwrap();
        assert_eq!(map.entries_in_batches().unwrap(), []);
        let entry = |n: u128| (n.to_ne_bytes(), *n.to_ne_bytes().first_chunk::<5>().unwrap());
        let mut expected: Vec<_> = (0..20_000).map(entry).collect();
        let (half, rest) = expected.split_at(10_000);
        half.iter().for_each(|(key, value)| map.set(key, value).unwrap());
        let (keys, values): (Vec<_>, Vec<_>) = rest.iter().copied().unzip();
        map.set_many(&keys, &values).unwrap();
        let full = map.set_many(&[(20_000_u128).to_ne_bytes()], &[[0; 5]]).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::ArgumentListTooLong);
        expected.sort_unstable();
        for mut entries in [map.entries_in_batches().unwrap(), map.entries_by_key().unwrap()] {
            entries.sort_unstable();
            assert!(entries == expected, "{} of {}", entries.len(), expected.len());
        }
    }

    #[test]
    fn a_per_cpu_map_has_one_value_per_cpu() {
        let Some(map) = create_or_skip(MapKind::PerCpuArray, 12) else { return };
        let mut map = PerCpuMap::<4, 12>::try_from(map).unwrap();
        map.set_all(&[0; 4], &[5; 12]).unwrap();
        let values = map.get(&[0; 4]).unwrap().unwrap();
        assert_eq!(values, vec![[5; 12]; possible_cpus().unwrap()]);
        assert_eq!(map.get(&2_u32.to_ne_bytes()).unwrap(), None, "beyond its entries");
    }

    #[test]
    fn wrong_lengths_are_rejected() {
        let Some(map) = create_or_skip(MapKind::Array, 12) else { return };
        let error = Map::<4, 8>::try_from(map).unwrap_err();
        assert!(error.to_string().contains("values of 12 bytes, expected 4 and 8"), "{error}");
        let Some(map) = create_or_skip(MapKind::Array, 12) else { return };
        assert!(PerCpuMap::<4, 12>::try_from(map).is_err());
    }
}
