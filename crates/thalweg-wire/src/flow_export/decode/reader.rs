//! Reading numbers in network byte order, with the offset in the message for whoever has to say what is wrong.

use super::error::Fault;

/// The bytes of a message, or of a structure within it, that are still to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    left: &'a [u8],
    /// Offset of `left` in the message.
    offset: usize,
    /// What is being read, for faults.
    structure: &'static str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(structure: &'static str, bytes: &'a [u8]) -> Reader<'a> {
        Reader { left: bytes, offset: 0, structure }
    }

    /// Bytes that lie at `offset` of a message.
    pub(super) fn at(structure: &'static str, bytes: &'a [u8], offset: usize) -> Reader<'a> {
        Reader { left: bytes, offset, structure }
    }

    /// Says what is read from here on.
    pub(super) fn enter(&mut self, structure: &'static str) {
        self.structure = structure;
    }

    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// What is left.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.left
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let Some((taken, left)) = self.left.split_at_checked(length) else {
            let Reader { left, offset, structure } = *self;
            return Err(Fault::Truncated { structure, offset, needed: length, found: left.len() });
        };
        self.left = left;
        self.offset += length;
        Ok(taken)
    }

    /// The next `length` bytes as a structure of their own.
    pub(super) fn part(&mut self, structure: &'static str, length: usize) -> Result<Reader<'a>, Fault> {
        let offset = self.offset;
        Ok(Reader { left: self.take(length)?, offset, structure })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        Ok(*self.take(N)?.first_chunk().expect("N bytes were taken"))
    }

    pub(super) fn u8(&mut self) -> Result<u8, Fault> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Fault> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_be_bytes)
    }

    /// Whether only zeros are left, as exporters fill up a set or a message.
    pub(super) fn is_padding(&self) -> bool {
        self.left.iter().all(|&byte| byte == 0)
    }
}
