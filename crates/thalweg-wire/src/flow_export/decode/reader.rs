//! A reader of numbers in network byte order that tracks the offset in the message for errors.

use super::error::DecodeErrorKind;

/// The unread bytes of a message or of a structure in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    left: &'a [u8],
    /// The offset of `left` in the message.
    offset: usize,
    /// The current structure, for errors.
    structure: &'static str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(structure: &'static str, bytes: &'a [u8]) -> Reader<'a> {
        Reader { left: bytes, offset: 0, structure }
    }

    /// Creates a reader of bytes at `offset` of a message.
    pub(super) fn at(structure: &'static str, bytes: &'a [u8], offset: usize) -> Reader<'a> {
        Reader { left: bytes, offset, structure }
    }

    /// Names the structure that is read next.
    pub(super) fn enter(&mut self, structure: &'static str) {
        self.structure = structure;
    }

    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// The unread bytes.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.left
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeErrorKind> {
        let Some((taken, left)) = self.left.split_at_checked(length) else {
            let Reader { left, offset, structure } = *self;
            return Err(DecodeErrorKind::Truncated { structure, offset, needed: length, found: left.len() });
        };
        self.left = left;
        self.offset += length;
        Ok(taken)
    }

    /// Splits off the next `length` bytes as a separate structure.
    pub(super) fn part(
        &mut self,
        structure: &'static str,
        length: usize,
    ) -> Result<Reader<'a>, DecodeErrorKind> {
        let offset = self.offset;
        Ok(Reader { left: self.take(length)?, offset, structure })
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeErrorKind> {
        Ok(*self.take(N)?.first_chunk().expect("N bytes were taken"))
    }

    pub(super) fn u8(&mut self) -> Result<u8, DecodeErrorKind> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, DecodeErrorKind> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, DecodeErrorKind> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, DecodeErrorKind> {
        self.array().map(u64::from_be_bytes)
    }

    /// Whether only zeros are left: padding of a set or a message.
    pub(super) fn is_padding(&self) -> bool {
        self.left.iter().all(|&byte| byte == 0)
    }
}
