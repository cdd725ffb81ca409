//! Reading and writing the numbers of a state: little-endian or variable-length.
//!
//! A *varint* has seven bits per byte, the lowest first; a set top bit means that another byte follows. Only the
//! shortest form is valid, so equal numbers have equal bytes. A signed number is first made unsigned by *zigzag*: 0,
//! -1, 1, -2, ... become 0, 1, 2, 3, ...
//!
//! The reader never reads beyond its bytes; errors name the offset.

use super::error::StateError;

/// The bits of a varint byte that belong to the number.
const PAYLOAD: u8 = 0x7F;
const CONTINUES: u8 = 0x80;

/// Appends an unsigned number.
#[inline(always)]
pub(super) fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number > u64::from(PAYLOAD) {
        out.push(number as u8 | CONTINUES);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a signed number.
#[inline(always)]
pub(super) fn put_zigzag(number: i64, out: &mut Vec<u8>) {
    put_varint(((number << 1) ^ (number >> 63)) as u64, out);
}

/// Appends bytes with a length prefix.
pub(super) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// The unread rest of a state.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, offset: 0 }
    }

    /// The number of bytes read so far.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// The number of bytes not read yet.
    pub(super) fn remaining(&self) -> usize {
        self.bytes.len() - self.offset
    }

    /// Checks that at least `count` bytes are left; called before memory for `count` items is allocated.
    pub(super) fn require(&self, count: u64, field: &'static str) -> Result<(), StateError> {
        if count <= self.remaining() as u64 {
            return Ok(());
        }
        Err(StateError::Truncated { offset: self.offset, field, needed: count, left: self.remaining() })
    }

    /// Reads `count` bytes.
    pub(super) fn take(&mut self, count: u64, field: &'static str) -> Result<&'a [u8], StateError> {
        self.require(count, field)?;
        let taken = &self.bytes[self.offset..][..count as usize];
        self.offset += taken.len();
        Ok(taken)
    }

    /// Reads `N` bytes.
    pub(super) fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], StateError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64, field)?);
        Ok(array)
    }

    /// Reads an unsigned number of variable length.
    #[inline]
    pub(super) fn varint(&mut self, field: &'static str) -> Result<u64, StateError> {
        let (mut number, mut shift) = (0u64, 0);
        for (index, &byte) in self.bytes[self.offset..].iter().enumerate() {
            let payload = u64::from(byte & PAYLOAD);
            let is_last = byte & CONTINUES == 0;
            let is_too_large = shift > 63 || payload << shift >> shift != payload;
            let is_overlong = is_last && byte == 0 && index > 0;
            if is_too_large || is_overlong {
                return Err(StateError::Varint { offset: self.offset, field });
            }
            number |= payload << shift;
            if is_last {
                self.offset += index + 1;
                return Ok(number);
            }
            shift += 7;
        }
        let needed = self.remaining() as u64 + 1;
        Err(StateError::Truncated { offset: self.offset, field, needed, left: self.remaining() })
    }

    /// Reads a signed number of variable length.
    #[inline]
    pub(super) fn zigzag(&mut self, field: &'static str) -> Result<i64, StateError> {
        let number = self.varint(field)?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads a number of variable length that fits into 63 bits.
    pub(super) fn varint_63(&mut self, field: &'static str, min: i64) -> Result<i64, StateError> {
        let offset = self.offset;
        let found = self.varint(field)?;
        match i64::try_from(found) {
            Ok(number) if number >= min => Ok(number),
            _ => Err(StateError::range(offset, field, found, min.into(), i64::MAX.into())),
        }
    }

    /// Reads bytes with a length prefix.
    pub(super) fn length_prefixed(&mut self, field: &'static str) -> Result<&'a [u8], StateError> {
        let count = self.varint(field)?;
        self.take(count, field)
    }

    /// Reads text with a length prefix.
    pub(super) fn text(&mut self, field: &'static str) -> Result<&'a str, StateError> {
        let offset = self.offset;
        std::str::from_utf8(self.length_prefixed(field)?).map_err(|_| StateError::Text { offset, field })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_in_the_shortest_form() {
        for (number, length) in [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (u64::MAX, 10)] {
            let mut out = Vec::new();
            put_varint(number, &mut out);
            assert_eq!(out.len(), length);
            let mut reader = Reader::new(&out);
            assert_eq!((reader.varint("n"), reader.remaining()), (Ok(number), 0));
        }
        for (number, length) in [(0, 1), (-64, 1), (63, 1), (64, 2), (i64::MIN, 10), (i64::MAX, 10)] {
            let mut out = Vec::new();
            put_zigzag(number, &mut out);
            assert_eq!(out.len(), length);
            assert_eq!(Reader::new(&out).zigzag("n"), Ok(number));
        }
    }

    #[test]
    fn longer_forms_of_a_varint_are_rejected() {
        let wrong = Err(StateError::Varint { offset: 0, field: "n" });
        assert_eq!(Reader::new(&[0x80, 0]).varint("n"), wrong);
        assert_eq!(Reader::new(&[0xFF, 0x80, 0]).varint("n"), wrong);
        let mut beyond = [0xFF; 10];
        beyond[9] = 2;
        assert_eq!(Reader::new(&beyond).varint("n"), wrong);
        assert_eq!(Reader::new(&[0xFF; 11]).varint("n"), wrong);
        let cut = Err(StateError::Truncated { offset: 0, field: "n", needed: 3, left: 2 });
        assert_eq!(Reader::new(&[0xFF, 0xFF]).varint("n"), cut);
    }

    #[test]
    fn an_excessive_length_allocates_nothing() {
        let mut out = Vec::new();
        put_varint(u64::MAX, &mut out);
        out.push(b'x');
        let expected = StateError::Truncated { offset: 10, field: "t", needed: u64::MAX, left: 1 };
        assert_eq!(Reader::new(&out).text("t"), Err(expected));
        assert_eq!(Reader::new(&[1, 0xFF]).text("t"), Err(StateError::Text { offset: 0, field: "t" }));
    }
}
