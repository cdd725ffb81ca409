//! Memory for rows, in chunks that are numbered, from huge pages where the system has them.
//!
//! Rows go to a thousand parts in turn, each to a place of its own. With pages of 4 KiB nearly each row would be to a
//! page that the processor has to look up; and all memory is fresh, so that the system would have to hand it out a page
//! at a time.

use std::io;
use std::marker::PhantomData;

use memmap2::{Advice, MmapMut};

use super::row::Row;

/// Rows of a chunk, the unit in which parts take memory: 32 KiB.
pub(super) const CHUNK: usize = 512;
/// Chunks of a map, the unit in which the system is asked for memory: 32 MiB. It only gives what is written to.
const CHUNKS: usize = 1024;

/// Chunks of rows.
#[derive(Debug)]
pub(super) struct Chunks<R> {
    maps: Vec<MmapMut>,
    /// Chunks taken, from the first.
    taken: usize,
    rows: PhantomData<R>,
}

impl<R: Row> Chunks<R> {
    const MAP: usize = CHUNKS * CHUNK * size_of::<R>();

    /// None yet.
    pub(super) fn new() -> Chunks<R> {
        Chunks { maps: Vec::new(), taken: 0, rows: PhantomData }
    }

    /// The number of a chunk that nobody has.
    pub(super) fn take(&mut self) -> io::Result<u32> {
        if self.taken == self.maps.len() * CHUNKS {
            let map = MmapMut::map_anon(Self::MAP)?;
            // A system without huge pages gives others.
            let _ = map.advise(Advice::HugePage);
            self.maps.push(map);
        }
        self.taken += 1;
        Ok(self.taken as u32 - 1)
    }

    /// Takes all chunks back; their memory is for those that come.
    pub(super) fn clear(&mut self) {
        self.taken = 0;
    }

    /// The first rows of a chunk.
    pub(super) fn rows(&self, chunk: u32, count: usize) -> &[R] {
        let start = Self::start(chunk);
        bytemuck::cast_slice(&self.maps[chunk as usize / CHUNKS][start..start + count * size_of::<R>()])
    }

    /// A row of a chunk.
    #[inline]
    pub(super) fn row(&mut self, chunk: u32, row: usize) -> &mut R {
        let start = Self::start(chunk) + row * size_of::<R>();
        bytemuck::from_bytes_mut(&mut self.maps[chunk as usize / CHUNKS][start..start + size_of::<R>()])
    }

    /// Where a chunk begins in its map.
    #[inline]
    fn start(chunk: u32) -> usize {
        chunk as usize % CHUNKS * CHUNK * size_of::<R>()
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;

    use super::super::row::{Told, Wide};
    use super::*;
    use thalweg_wire::flow_export::Address;

    #[test]
    fn each_chunk_has_rows_of_its_own_over_all_maps() {
        let mut chunks = Chunks::<Wide>::new();
        let row = |chunk: u32, place: u32| {
            let told = Told { point: chunk, sampling_interval: place, ..Told::zeroed() };
            Wide::new(Address::NONE, Address::NONE, told)
        };
        let places = [0, CHUNK as u32 - 1];
        for number in 0..2 * CHUNKS as u32 + 1 {
            assert_eq!(chunks.take().unwrap(), number);
            places.iter().for_each(|&place| *chunks.row(number, place as usize) = row(number, place));
        }
        for number in 0..2 * CHUNKS as u32 + 1 {
            for place in places {
                let told = chunks.rows(number, CHUNK)[place as usize].told();
                assert_eq!((told.point, told.sampling_interval), (number, place));
            }
        }
        chunks.clear();
        assert_eq!(chunks.take().unwrap(), 0);
    }
}
