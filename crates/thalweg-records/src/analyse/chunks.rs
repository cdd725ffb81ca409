//! Memory for packed rows, in chunks that are numbered, from huge pages where the system has them.
//!
//! Rows go to a thousand parts in turn, each to a place of its own. With pages of 4 KiB nearly each row would be to a
//! page that the processor has to look up; and all memory is fresh, so that the system would have to hand it out a page
//! at a time.

use std::io;

use memmap2::{Advice, MmapMut};

use super::packed::MOST;

/// Bytes of a chunk, the unit in which parts take memory.
pub(super) const CHUNK: usize = 16 << 10;
/// Chunks of a map, the unit in which the system is asked for memory: 32 MiB. It only gives what is written to.
const CHUNKS: usize = 2048;

/// Chunks of bytes.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    maps: Vec<MmapMut>,
    /// Chunks taken, from the first.
    taken: usize,
}

impl Chunks {
    /// The number of a chunk that nobody has.
    pub(super) fn take(&mut self) -> io::Result<u32> {
        if self.taken == self.maps.len() * CHUNKS {
            let map = MmapMut::map_anon(CHUNKS * CHUNK)?;
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

    /// All bytes of a chunk.
    pub(super) fn chunk(&self, chunk: u32) -> &[u8; CHUNK] {
        let start = start(chunk);
        self.maps[chunk as usize / CHUNKS][start..start + CHUNK].try_into().expect("as long as a chunk")
    }

    /// Room for a row in a chunk.
    #[inline]
    pub(super) fn room(&mut self, chunk: u32, at: usize) -> &mut [u8; MOST] {
        let start = start(chunk) + at;
        (&mut self.maps[chunk as usize / CHUNKS][start..start + MOST]).try_into().expect("as long as a row")
    }
}

/// Where a chunk begins in its map.
#[inline]
fn start(chunk: u32) -> usize {
    chunk as usize % CHUNKS * CHUNK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_chunk_has_bytes_of_its_own_over_all_maps() {
        let mut chunks = Chunks::default();
        for number in 0..2 * CHUNKS as u32 + 1 {
            assert_eq!(chunks.take().unwrap(), number);
            for at in [0, CHUNK - MOST] {
                chunks.room(number, at)[..4].copy_from_slice(&number.to_le_bytes());
            }
        }
        for number in 0..2 * CHUNKS as u32 + 1 {
            for at in [0, CHUNK - MOST] {
                assert_eq!(chunks.chunk(number)[at..at + 4], number.to_le_bytes());
            }
        }
        chunks.clear();
        assert_eq!(chunks.take().unwrap(), 0);
    }
}
