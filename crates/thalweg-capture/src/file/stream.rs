//! Input that is read: a pipe, or a file that must be decompressed.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_wire::Progress;

use super::compression::{Compression, Decompressor};
use super::error::FileError;

/// The size of the buffer until a record does not fit: several batches, within the second-level cache.
const BUFFER: usize = 256 << 10;

/// The result of trying to read more bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fill {
    More,
    /// Nothing arrived for a while, but more may follow.
    NotYet,
    End,
}

/// A buffer over a reader: filled at its end, consumed at its start. The rest of a record moves to the front before
/// more is read; that is less than one record per fill.
pub(super) struct Stream {
    reader: Decompressor,
    buffer: Vec<u8>,
    /// The part of the buffer in use.
    start: usize,
    end: usize,
    /// The offset of `start` in the decompressed stream.
    offset: u64,
    /// Bytes taken from the reader before decompression.
    compressed: Arc<AtomicU64>,
    /// The length of the file on disk, if it is one.
    compressed_total: Option<u64>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stream { start, end, offset, .. } = self;
        write!(f, "Stream {{ start: {start}, end: {end}, offset: {offset} }}")
    }
}

impl Stream {
    /// `compressed_total` is the length of the file, if the stream is one.
    pub(super) fn new(reader: impl Read + Send + 'static, compressed_total: Option<u64>) -> Stream {
        let compressed = Arc::new(AtomicU64::new(0));
        let counted = Counted { reader, count: Arc::clone(&compressed) };
        let reader = Decompressor::new(counted);
        Stream { reader, buffer: vec![0; BUFFER], start: 0, end: 0, offset: 0, compressed, compressed_total }
    }

    pub(super) fn compression(&self) -> Option<Compression> {
        self.reader.compression()
    }

    pub(super) fn window(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn consume(&mut self, length: usize) {
        self.start += length;
        self.offset += length as u64;
        debug_assert!(self.start <= self.end, "consumed more than the window");
    }

    /// Reads once. The buffer doubles if a record fills it. The decoder rejects records beyond its limit before it
    /// requests their bytes, which limits the buffer to twice that.
    pub(super) fn fill(&mut self, file: &str) -> Result<Fill, FileError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(Fill::End),
                Ok(length) => {
                    self.end += length;
                    return Ok(Fill::More);
                }
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => return Ok(Fill::NotYet),
                Err(cause) => return Err(self.error(file.to_owned(), cause)),
            }
        }
    }

    fn error(&self, file: String, cause: io::Error) -> FileError {
        let compressed_offset = self.compressed.load(Ordering::Relaxed);
        let offset = self.offset + (self.end - self.start) as u64;
        // System errors have a number; those of decompressors do not.
        match self.compression() {
            Some(compression) if cause.kind() == io::ErrorKind::UnexpectedEof => {
                FileError::TruncatedCompression { file, compression, compressed_offset, offset }
            }
            Some(compression) if cause.raw_os_error().is_none() => {
                FileError::Decompress { file, compression, compressed_offset, offset, cause }
            }
            _ => FileError::Read { file, compressed_offset, cause },
        }
    }

    pub(super) fn progress(&self) -> Option<Progress> {
        let total = self.compressed_total?;
        Some(Progress { done: self.compressed.load(Ordering::Relaxed).min(total), total })
    }

    #[cfg(test)]
    pub(super) fn buffer_length(&self) -> usize {
        self.buffer.len()
    }
}

/// Counts the bytes read. The unpacker takes ownership of the reader, so the count is shared.
struct Counted<R> {
    reader: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(out)?;
        self.count.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}
