//! Compresses pages as zstd frames (RFC 8878).
//!
//! Incompressible data, such as bit-packed numbers of addresses, is stored in a frame of raw blocks. Every zstd decoder
//! reads it, at the speed of a copy.

use std::io;

use bytes::Bytes;
use parquet::basic::ZstdLevel;

/// Magic number of a frame (section 3.1.1).
const MAGIC: u32 = 0xFD2F_B528;

/// A single segment, with its length in four bytes (section 3.1.1.1.1).
const DESCRIPTOR: u8 = 2 << 6 | 1 << 5;

/// Maximum size of a block (section 3.1.1.2.4).
const MAX_BLOCK: usize = 128 << 10;

/// A compressor and its buffer.
pub(crate) struct Zstd {
    compressor: zstd::bulk::Compressor<'static>,
    level: ZstdLevel,
    frame: Vec<u8>,
}

impl Zstd {
    /// # Errors
    /// If zstd has no such level.
    pub(crate) fn new(level: i32) -> io::Result<Zstd> {
        let compressor = zstd::bulk::Compressor::new(level)?;
        let level = ZstdLevel::try_new(level).map_err(io::Error::other)?;
        Ok(Zstd { compressor, level, frame: Vec::new() })
    }

    pub(crate) fn level(&self) -> ZstdLevel {
        self.level
    }

    /// # Errors
    /// What zstd says.
    pub(crate) fn compress(&mut self, page: &[u8]) -> io::Result<Bytes> {
        self.frame.clear();
        self.frame.reserve(zstd::zstd_safe::compress_bound(page.len()));
        self.compressor.compress_to_buffer(page, &mut self.frame)?;
        Ok(Bytes::copy_from_slice(&self.frame))
    }
}

/// Returns a frame that stores the page uncompressed.
pub(crate) fn store(page: &[u8]) -> Bytes {
    let mut frame = Vec::with_capacity(16 + page.len() + 3 * page.len().div_ceil(MAX_BLOCK));
    frame.extend_from_slice(&MAGIC.to_le_bytes());
    frame.push(DESCRIPTOR);
    frame.extend_from_slice(&(page.len() as u32).to_le_bytes());
    let (blocks, last) = page.split_at(page.len().saturating_sub(1) / MAX_BLOCK * MAX_BLOCK);
    for block in blocks.chunks(MAX_BLOCK) {
        raw_block(block, false, &mut frame);
    }
    raw_block(last, true, &mut frame);
    frame.into()
}

fn raw_block(block: &[u8], is_last: bool, frame: &mut Vec<u8>) {
    let header = (block.len() as u32) << 3 | u32::from(is_last);
    frame.extend_from_slice(&header.to_le_bytes()[..3]);
    frame.extend_from_slice(block);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zstd_decodes_stored_frames_of_all_lengths() {
        for length in [0, 1, MAX_BLOCK - 1, MAX_BLOCK, MAX_BLOCK + 1, 3 * MAX_BLOCK] {
            let page: Vec<u8> = (0..length).map(|n| (n * n) as u8).collect();
            let frame = store(&page);
            assert_eq!(zstd::bulk::decompress(&frame, length).unwrap(), page);
            assert!(frame.len() <= length + 12 + 3 * (length / MAX_BLOCK), "{}", frame.len());
        }
    }
}
