//! Memory for packed rows, in numbered chunks, on huge pages if available.
//!
//! Rows go to a thousand partitions in turn. With 4 KiB pages, nearly each row would miss the TLB, and the kernel would have
//! to provide the fresh memory page by page.

use std::io;

use memmap2::{Advice, MmapMut};

use super::packed::MAX_ROW_BYTES;

/// Chunk size in bytes: the unit of allocation for partitions.
pub(super) const CHUNK: usize = 16 << 10;
/// Chunks per mapping: 32 MiB. The kernel only provides pages that are written.
const CHUNKS: usize = 2048;

/// A list of chunks.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    maps: Vec<MmapMut>,
    /// Number of allocated chunks, from the first.
    allocated: usize,
}

impl Chunks {
    /// Allocates a chunk and returns its number.
    pub(super) fn allocate(&mut self) -> io::Result<u32> {
        if self.allocated == self.maps.len() * CHUNKS {
            let map = MmapMut::map_anon(CHUNKS * CHUNK)?;
            // Without huge pages, the kernel uses normal ones.
            let _ = map.advise(Advice::HugePage);
            self.maps.push(map);
        }
        self.allocated += 1;
        Ok(self.allocated as u32 - 1)
    }

    /// Frees all chunks; keeps the memory for reuse.
    pub(super) fn clear(&mut self) {
        self.allocated = 0;
    }

    /// Returns the bytes of a chunk.
    pub(super) fn chunk(&self, chunk: u32) -> &[u8; CHUNK] {
        let start = start(chunk);
        self.maps[chunk as usize / CHUNKS][start..start + CHUNK]
            .try_into()
            .expect("has the length of a chunk")
    }

    /// Returns space for a row at an offset of a chunk.
    #[inline]
    pub(super) fn room(&mut self, chunk: u32, at: usize) -> &mut [u8; MAX_ROW_BYTES] {
        let start = start(chunk) + at;
        (&mut self.maps[chunk as usize / CHUNKS][start..start + MAX_ROW_BYTES])
            .try_into()
            .expect("has the length of a row")
    }
}

/// Returns the offset of a chunk in its mapping.
#[inline]
fn start(chunk: u32) -> usize {
    chunk as usize % CHUNKS * CHUNK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_several_mappings_do_not_overlap() {
        let mut chunks = Chunks::default();
        for number in 0..2 * CHUNKS as u32 + 1 {
            assert_eq!(chunks.allocate().unwrap(), number);
            for at in [0, CHUNK - MAX_ROW_BYTES] {
                chunks.room(number, at)[..4].copy_from_slice(&number.to_le_bytes());
            }
        }
        for number in 0..2 * CHUNKS as u32 + 1 {
            for at in [0, CHUNK - MAX_ROW_BYTES] {
                assert_eq!(chunks.chunk(number)[at..at + 4], number.to_le_bytes());
            }
        }
        chunks.clear();
        assert_eq!(chunks.allocate().unwrap(), 0);
    }
}
