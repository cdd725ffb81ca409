//! Pages to zstd frames (RFC 8878).
//!
//! What is packed to the last bit already, such as numbers of addresses, does not get shorter: it is stored, in a frame of
//! raw blocks. Any decoder of zstd reads it, as fast as it copies.

use std::io;

use bytes::Bytes;
use parquet::basic::ZstdLevel;

/// What a frame begins with (section 3.1.1).
const MAGIC: u32 = 0xFD2F_B528;

/// The frame is one segment, and tells its length in four bytes (section 3.1.1.1.1).
const DESCRIPTOR: u8 = 2 << 6 | 1 << 5;

/// No block has more bytes (section 3.1.1.2.4).
const LONGEST_BLOCK: usize = 128 << 10;

/// A compressor and its memory.
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

/// A frame that has the page as it is.
pub(crate) fn store(page: &[u8]) -> Bytes {
    let mut frame = Vec::with_capacity(16 + page.len() + 3 * page.len().div_ceil(LONGEST_BLOCK));
    frame.extend_from_slice(&MAGIC.to_le_bytes());
    frame.push(DESCRIPTOR);
    frame.extend_from_slice(&(page.len() as u32).to_le_bytes());
    let (blocks, last) = page.split_at(page.len().saturating_sub(1) / LONGEST_BLOCK * LONGEST_BLOCK);
    for block in blocks.chunks(LONGEST_BLOCK) {
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
    fn zstd_reads_what_is_stored_at_all_lengths_about_a_block() {
        for length in [0, 1, LONGEST_BLOCK - 1, LONGEST_BLOCK, LONGEST_BLOCK + 1, 3 * LONGEST_BLOCK] {
            let page: Vec<u8> = (0..length).map(|n| (n * n) as u8).collect();
            let frame = store(&page);
            assert_eq!(zstd::bulk::decompress(&frame, length).unwrap(), page);
            assert!(frame.len() <= length + 12 + 3 * (length / LONGEST_BLOCK), "{}", frame.len());
        }
    }
}
