//! Maps: what programs and processes share.
//!
//! [`AnyMap`] is a map whatever it holds; [`Map`] and [`PerProcessorMap`] are one whose keys and values are known to have so
//! many bytes, which is checked once. Keys and values are plain bytes here: whoever knows more of them converts them.

#![expect(unsafe_code, reason = "system calls that take keys and values by pointer")]

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::syscall;

/// Where the kernel lists the processors that there may be, as ranges from 0.
const POSSIBLE_PROCESSORS: &str = "/sys/devices/system/cpu/possible";

/// What a map is (`enum bpf_map_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// By a key of any kind.
    Hash,
    /// By an index below the number of entries.
    Array,
    /// As [`Hash`](Self::Hash), with a value for each processor.
    PerProcessorHash,
    /// As [`Array`](Self::Array), with a value for each processor.
    PerProcessorArray,
    /// From receive queue to XDP socket.
    XdpSockets,
    /// Another, by the kernel's number.
    Other(u32),
}

/// What a map has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapShape {
    /// What it is.
    pub kind: MapKind,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// Most entries.
    pub max_entries: u32,
    /// `BPF_F_` flags of linux/bpf.h.
    pub flags: u32,
}

/// An open map.
#[derive(Debug)]
pub struct AnyMap {
    descriptor: OwnedFd,
    name: String,
    shape: MapShape,
}

/// A map with keys and values of known lengths, one value a key.
#[derive(Debug)]
pub struct Map<const KEY: usize, const VALUE: usize> {
    map: AnyMap,
}

/// A map with keys and values of known lengths, a value for each possible processor.
#[derive(Debug)]
pub struct PerProcessorMap<const KEY: usize, const VALUE: usize> {
    map: AnyMap,
    processors: usize,
}

impl MapKind {
    /// The kernel's number.
    pub const fn number(self) -> u32 {
        match self {
            MapKind::Hash => 1,
            MapKind::Array => 2,
            MapKind::PerProcessorHash => 5,
            MapKind::PerProcessorArray => 6,
            MapKind::XdpSockets => 17,
            MapKind::Other(number) => number,
        }
    }

    /// The kind of this number.
    pub const fn of_number(number: u32) -> MapKind {
        match number {
            1 => MapKind::Hash,
            2 => MapKind::Array,
            5 => MapKind::PerProcessorHash,
            6 => MapKind::PerProcessorArray,
            17 => MapKind::XdpSockets,
            other => MapKind::Other(other),
        }
    }

    const fn is_per_processor(self) -> bool {
        matches!(self, MapKind::PerProcessorHash | MapKind::PerProcessorArray)
    }
}

impl AnyMap {
    /// Makes a map, of which the kernel tells `name` (its first 15 bytes) to those who ask.
    ///
    /// # Errors
    /// If this process may not, or there is no memory.
    pub fn create(name: &str, shape: MapShape) -> io::Result<AnyMap> {
        let MapShape { kind, key_size, value_size, max_entries, flags } = shape;
        let descriptor =
            syscall::create_map(kind.number(), name, [key_size, value_size, max_entries, flags])?;
        Ok(AnyMap { descriptor, name: name.to_owned(), shape })
    }

    /// Opens the map that has this number in the kernel.
    ///
    /// # Errors
    /// If there is none, or this process may not.
    pub fn by_id(id: u32) -> io::Result<AnyMap> {
        let descriptor = syscall::map_by_id(id)?;
        let info = syscall::map_info(&descriptor)?;
        let name = info.name.split(|&byte| byte == 0).next().unwrap_or_default();
        Ok(AnyMap {
            descriptor,
            name: String::from_utf8_lossy(name).into_owned(),
            shape: MapShape {
                kind: MapKind::of_number(info.map_type),
                key_size: info.key_size,
                value_size: info.value_size,
                max_entries: info.max_entries,
                flags: info.map_flags,
            },
        })
    }

    /// Its name; of a map found by number the first 15 bytes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it has room for.
    pub fn shape(&self) -> MapShape {
        self.shape
    }

    /// Puts a descriptor into a map of descriptors: a socket into one of XDP sockets. It leaves the map when it is
    /// closed.
    ///
    /// # Errors
    /// If the kernel refuses.
    ///
    /// # Panics
    /// If keys or values have not four bytes.
    pub fn put_descriptor(&self, key: u32, descriptor: RawFd) -> io::Result<()> {
        let (key, value) = (key.to_ne_bytes(), descriptor.to_ne_bytes());
        assert_eq!((self.shape.key_size, self.shape.value_size), (4, 4), "a map of descriptors");
        assert!(!self.shape.kind.is_per_processor(), "a map of descriptors");
        // SAFETY: key and value are as long as the map's.
        unsafe { syscall::update(&self.descriptor, &key, &value) }
    }

    /// That this map has keys and values of these lengths.
    fn check(&self, key: usize, value: usize, is_per_processor: bool) -> io::Result<()> {
        let shape = self.shape;
        let lengths = (shape.key_size as usize, shape.value_size as usize);
        if lengths == (key, value) && shape.kind.is_per_processor() == is_per_processor {
            return Ok(());
        }
        let reason = format!(
            "the map {:?} has keys of {} and values of {} bytes{}, not of {key} and {value}{}",
            self.name,
            lengths.0,
            lengths.1,
            if shape.kind.is_per_processor() { " by processor" } else { "" },
            if is_per_processor { " by processor" } else { "" },
        );
        Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
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
    /// The value of a key.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn get(&self, key: &[u8; KEY]) -> io::Result<Option<[u8; VALUE]>> {
        let mut value = [0; VALUE];
        // SAFETY: key and value are as long as the map's.
        let found = unsafe { syscall::look_up(&self.map.descriptor, key, &mut value) };
        Ok(present(found)?.map(|()| value))
    }

    /// Sets the value of a key, in place of another that it may have.
    ///
    /// # Errors
    /// [`io::ErrorKind::ArgumentListTooLong`] if the map is full, and what else the kernel says.
    pub fn set(&mut self, key: &[u8; KEY], value: &[u8; VALUE]) -> io::Result<()> {
        // SAFETY: key and value are as long as the map's.
        unsafe { syscall::update(&self.map.descriptor, key, value) }
    }

    /// Removes a key; says whether it was there.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn remove(&mut self, key: &[u8; KEY]) -> io::Result<bool> {
        // SAFETY: the key is as long as the map's.
        let removed = unsafe { syscall::remove(&self.map.descriptor, key) };
        Ok(present(removed)?.is_some())
    }

    /// All keys and their values. While somebody writes, a key may be missing.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn entries(&self) -> io::Result<Vec<([u8; KEY], [u8; VALUE])>> {
        let mut entries = Vec::new();
        let mut last = None;
        while let Some(key) = self.next_key(last.as_ref())? {
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
        Ok(present(found)?.map(|()| next))
    }
}

impl<const KEY: usize, const VALUE: usize> TryFrom<AnyMap> for PerProcessorMap<KEY, VALUE> {
    type Error = io::Error;

    fn try_from(map: AnyMap) -> io::Result<PerProcessorMap<KEY, VALUE>> {
        map.check(KEY, VALUE, true)?;
        Ok(PerProcessorMap { map, processors: possible_processors()? })
    }
}

impl<const KEY: usize, const VALUE: usize> PerProcessorMap<KEY, VALUE> {
    /// Between the values of two processors.
    const STRIDE: usize = VALUE.next_multiple_of(8);

    /// The values of a key, by processor.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn get(&self, key: &[u8; KEY]) -> io::Result<Option<Vec<[u8; VALUE]>>> {
        let mut values = vec![0; self.processors * Self::STRIDE];
        // SAFETY: the key is as long as the map's, and there is room for the values of all possible processors.
        let found = unsafe { syscall::look_up(&self.map.descriptor, key, &mut values) };
        let value = |bytes: &[u8]| *bytes.first_chunk().expect("a stride is no shorter than a value");
        Ok(present(found)?.map(|()| values.chunks_exact(Self::STRIDE).map(value).collect()))
    }

    /// Sets the value of a key for all processors.
    ///
    /// # Errors
    /// As of [`Map::set`].
    pub fn set_all(&mut self, key: &[u8; KEY], value: &[u8; VALUE]) -> io::Result<()> {
        let mut values = vec![0; self.processors * Self::STRIDE];
        values.chunks_exact_mut(Self::STRIDE).for_each(|place| place[..VALUE].copy_from_slice(value));
        // SAFETY: the key is as long as the map's, and there are values for all possible processors.
        unsafe { syscall::update(&self.map.descriptor, key, &values) }
    }
}

/// `None` if there is no such key.
fn present(answer: io::Result<()>) -> io::Result<Option<()>> {
    match answer {
        Ok(()) => Ok(Some(())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn possible_processors() -> io::Result<usize> {
    let unread = || io::Error::new(io::ErrorKind::InvalidData, POSSIBLE_PROCESSORS);
    count_of_ranges(&fs::read_to_string(POSSIBLE_PROCESSORS)?).ok_or_else(unread)
}

/// How many numbers a list such as `0-3,5` has.
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
    fn the_processors_of_a_list_are_counted() {
        for (text, count) in
            [("0\n", Some(1)), ("0-3\n", Some(4)), ("0-1,4-5,7", Some(5)), ("", None), ("3-0", None)]
        {
            assert_eq!(count_of_ranges(text), count, "{text:?}");
        }
    }

    /// Says so where this process may not make maps.
    fn make(kind: MapKind, value_size: u32) -> Option<AnyMap> {
        let shape = MapShape { kind, key_size: 4, value_size, max_entries: 2, flags: 0 };
        match AnyMap::create("a_name_of_more_than_15", shape) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                crate::skip::skip("needs CAP_BPF");
                None
            }
            map => Some(map.unwrap()),
        }
    }

    #[test]
    fn a_value_is_read_as_it_was_written_until_its_key_is_removed() {
        let Some(map) = make(MapKind::Hash, 3) else { return };
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
    fn a_map_by_processor_has_a_value_for_each() {
        let Some(map) = make(MapKind::PerProcessorArray, 12) else { return };
        let mut map = PerProcessorMap::<4, 12>::try_from(map).unwrap();
        map.set_all(&[0; 4], &[5; 12]).unwrap();
        let values = map.get(&[0; 4]).unwrap().unwrap();
        assert_eq!(values, vec![[5; 12]; possible_processors().unwrap()]);
        assert_eq!(map.get(&2_u32.to_ne_bytes()).unwrap(), None, "beyond its entries");
    }

    #[test]
    fn lengths_that_are_not_the_maps_are_refused() {
        let Some(map) = make(MapKind::Array, 12) else { return };
        let error = Map::<4, 8>::try_from(map).unwrap_err();
        assert!(error.to_string().contains("values of 12 bytes, not of 4 and 8"), "{error}");
        let Some(map) = make(MapKind::Array, 12) else { return };
        assert!(PerProcessorMap::<4, 12>::try_from(map).is_err());
    }
}
