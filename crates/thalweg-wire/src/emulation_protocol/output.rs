//! Writing of numbers into the caller's buffer.

use super::{EncodeError, HEADER_LENGTH, Header, checksum};

/// The longest entry of a datagram with the head of its block.
pub(super) const MAX_ENTRY: usize = 64;

/// Bytes on their way into a datagram: a block head and an entry, at most.
pub(super) struct Entry {
    bytes: [u8; MAX_ENTRY],
    length: usize,
}

impl Entry {
    pub(super) fn new() -> Entry {
        Entry { bytes: [0; MAX_ENTRY], length: 0 }
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.bytes(&[byte]);
    }

    pub(super) fn number(&mut self, number: u64) {
        let mut left = number;
        while left > 0x7f {
            self.byte(left as u8 | 0x80);
            left >>= 7;
        }
        self.byte(left as u8);
    }

    /// Writes `to - from`. The difference of two indices fits: it is computed modulo 2^64, as the reader does.
    pub(super) fn difference(&mut self, from: u64, to: u64) {
        let difference = to.wrapping_sub(from) as i64;
        self.number((difference << 1 ^ difference >> 63) as u64);
    }
}

/// A datagram in the caller's buffer.
pub(super) struct Output<'a> {
    buffer: &'a mut [u8],
    length: usize,
}

impl<'a> Output<'a> {
    pub(super) fn new(buffer: &'a mut [u8], header: &Header) -> Result<Output<'a>, EncodeError> {
        let left = buffer.len();
        let Some(start) = buffer.first_chunk_mut::<HEADER_LENGTH>() else {
            return Err(EncodeError::Full { needed: HEADER_LENGTH, left });
        };
        *start = header.encode();
        Ok(Output { buffer, length: HEADER_LENGTH })
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Appends an entry as a whole, or nothing.
    pub(super) fn append(&mut self, entry: &Entry) -> Result<(), EncodeError> {
        let left = self.buffer.len() - self.length;
        if entry.length > left {
            return Err(EncodeError::Full { needed: entry.length, left });
        }
        self.buffer[self.length..self.length + entry.length].copy_from_slice(&entry.bytes[..entry.length]);
        self.length += entry.length;
        Ok(())
    }

    /// A byte that was written before.
    pub(super) fn byte_mut(&mut self, at: usize) -> &mut u8 {
        &mut self.buffer[at]
    }

    /// Writes the checksum, and returns the length of the datagram.
    pub(super) fn finish(self) -> usize {
        let datagram = &mut self.buffer[..self.length];
        let sum = checksum(datagram);
        datagram[HEADER_LENGTH - 4..HEADER_LENGTH].copy_from_slice(&sum.to_be_bytes());
        self.length
    }
}
