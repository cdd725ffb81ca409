//! Reading and writing of structures in network byte order.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{DecodeError, EncodeError};
use crate::mac_address::MacAddress;
use crate::protocol::Protocol;

/// A type with an encoding.
pub(super) trait Wire: Sized {
    /// Reads a value; a list takes all remaining bytes.
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError>;

    /// Appends the value.
    fn write(&self, to: &mut Writer<'_>);
}

/// The unread bytes of a message or of a structure in it.
pub(super) struct Reader<'a> {
    left: &'a [u8],
    /// Offset of `left` in the message.
    offset: usize,
    /// The structure being read, for errors.
    structure: &'static str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(structure: &'static str, bytes: &'a [u8]) -> Reader<'a> {
        Reader { left: bytes, offset: 0, structure }
    }

    /// Sets the name of the structure to read.
    pub(super) fn enter(&mut self, structure: &'static str) {
        self.structure = structure;
    }

    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Returns the number of unread bytes.
    pub(super) fn left(&self) -> usize {
        self.left.len()
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let Some((taken, left)) = self.left.split_at_checked(length) else {
            let Reader { left, offset, structure } = *self;
            return Err(DecodeError::Truncated { structure, offset, needed: length, found: left.len() });
        };
        self.left = left;
        self.offset += length;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        Ok(*self.take(N)?.first_chunk().expect("N bytes were taken"))
    }

    /// Skips padding.
    pub(super) fn skip(&mut self, length: usize) -> Result<(), DecodeError> {
        self.take(length).map(drop)
    }

    pub(super) fn rest(&mut self) -> &'a [u8] {
        self.take(self.left.len()).expect("all that is left")
    }

    /// Returns a reader of the next `length` bytes.
    pub(super) fn part(&mut self, structure: &'static str, length: usize) -> Result<Reader<'a>, DecodeError> {
        let offset = self.offset;
        Ok(Reader { left: self.take(length)?, offset, structure })
    }

    /// Reads the 16-bit length at the start of a structure, and returns a reader of the rest of the structure.
    pub(super) fn sized(&mut self, structure: &'static str) -> Result<Reader<'a>, DecodeError> {
        let offset = self.offset;
        let length = usize::from(u16::read(self)?);
        let Some(rest) = length.checked_sub(size_of::<u16>()) else {
            return Err(DecodeError::Length { structure, offset, length, expected: "2 or more" });
        };
        self.part(structure, rest)
    }

    /// Checks that no bytes are left.
    pub(super) fn finish(&self) -> Result<(), DecodeError> {
        let Reader { left, offset, structure } = *self;
        if left.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::Trailing { structure, offset, left: left.len() })
        }
    }
}

/// Appends messages to a vector. The first length that exceeds its field is returned by
/// [`Writer::finish`], so that the other methods cannot fail.
pub(super) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    error: Option<EncodeError>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Writer<'a> {
        Writer { out, error: None }
    }

    pub(super) fn position(&self) -> usize {
        self.out.len()
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(super) fn zeros(&mut self, length: usize) {
        self.out.resize(self.out.len() + length, 0);
    }

    /// Pads the structure that begins at `start` to a multiple of 8 bytes.
    pub(super) fn pad_to_8(&mut self, start: usize) {
        let length = self.out.len() - start;
        self.zeros(length.next_multiple_of(8) - length);
    }

    /// Writes the length of the structure that begins at `start` and ends here into the 16 bits at `field`.
    pub(super) fn set_length(&mut self, structure: &'static str, start: usize, field: usize) {
        let length = self.out.len() - start;
        match u16::try_from(length) {
            Ok(short) => self.out[field..field + 2].copy_from_slice(&short.to_be_bytes()),
            Err(_) => self.fail(EncodeError::TooLong { structure, length, limit: u16::MAX.into() }),
        }
    }

    /// Writes the length into the 8 bits before `start`, as in match fields.
    pub(super) fn set_short_length(&mut self, structure: &'static str, start: usize) {
        let length = self.out.len() - start;
        match u8::try_from(length) {
            Ok(short) => self.out[start - 1] = short,
            Err(_) => self.fail(EncodeError::TooLong { structure, length, limit: u8::MAX.into() }),
        }
    }

    fn fail(&mut self, error: EncodeError) {
        self.error.get_or_insert(error);
    }

    pub(super) fn finish(self) -> Result<(), EncodeError> {
        self.error.map_or(Ok(()), Err)
    }
}

macro_rules! wire_as_bytes {
    ($($type:ty: $from:expr, $to:expr;)+) => { $(
        impl Wire for $type {
            fn read(from: &mut Reader<'_>) -> Result<$type, DecodeError> {
                from.array().map($from)
            }

            fn write(&self, to: &mut Writer<'_>) {
                to.bytes(&$to(*self));
            }
        }
    )+ };
}

wire_as_bytes! {
    u8: u8::from_be_bytes, u8::to_be_bytes;
    u16: u16::from_be_bytes, u16::to_be_bytes;
    u32: u32::from_be_bytes, u32::to_be_bytes;
    u64: u64::from_be_bytes, u64::to_be_bytes;
    MacAddress: MacAddress, |address: MacAddress| address.0;
    Ipv4Addr: Ipv4Addr::from, |address: Ipv4Addr| address.octets();
    Ipv6Addr: Ipv6Addr::from, |address: Ipv6Addr| address.octets();
    Protocol: |[number]: [u8; 1]| Protocol(number), |protocol: Protocol| [protocol.0];
}

/// Data up to the end of the enclosing structure.
impl Wire for Vec<u8> {
    fn read(from: &mut Reader<'_>) -> Result<Vec<u8>, DecodeError> {
        Ok(from.rest().to_vec())
    }

    fn write(&self, to: &mut Writer<'_>) {
        to.bytes(self);
    }
}

/// Entries up to the end of the enclosing structure. No entry has an empty encoding.
pub(super) trait Listed: Wire {}

impl<T: Listed> Wire for Vec<T> {
    fn read(from: &mut Reader<'_>) -> Result<Vec<T>, DecodeError> {
        let mut list = Vec::new();
        while !from.is_empty() {
            list.push(T::read(from)?);
        }
        Ok(list)
    }

    fn write(&self, to: &mut Writer<'_>) {
        self.iter().for_each(|entry| entry.write(to));
    }
}

impl<T: Wire> Wire for Box<T> {
    fn read(from: &mut Reader<'_>) -> Result<Box<T>, DecodeError> {
        T::read(from).map(Box::new)
    }

    fn write(&self, to: &mut Writer<'_>) {
        T::write(self, to);
    }
}
