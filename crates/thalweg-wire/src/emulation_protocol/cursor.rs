//! Reading of numbers.

use super::DecodeError;

/// The unread bytes of a datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    left: &'a [u8],
    /// The offset of `left` in the datagram.
    offset: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(datagram: &'a [u8]) -> Cursor<'a> {
        Cursor { left: datagram, offset: 0 }
    }

    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub(super) fn take(&mut self, field: &'static str, length: usize) -> Result<&'a [u8], DecodeError> {
        let Some((taken, left)) = self.left.split_at_checked(length) else {
            let Cursor { left, offset } = *self;
            return Err(DecodeError::Truncated { field, offset, needed: length, found: left.len() });
        };
        self.left = left;
        self.offset += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        Ok(*self.take(field, N)?.first_chunk().expect("N bytes were taken"))
    }

    pub(super) fn byte(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        self.array(field).map(|[byte]: [u8; 1]| byte)
    }

    pub(super) fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.array(field).map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.array(field).map(u32::from_be_bytes)
    }

    /// Reads a number of up to 64 bits: seven bits a byte, lowest first; the top bit says that another byte follows.
    pub(super) fn number(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        let offset = self.offset;
        let mut number = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte(field)?;
            let bits = u64::from(byte & 0x7f);
            let (is_too_large, is_longer) = (bits << shift >> shift != bits, byte == 0 && shift > 0);
            if is_too_large || is_longer {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(DecodeError::Number { field, offset })
    }

    /// Reads a signed number n: 2n if n >= 0, -2n - 1 if n < 0.
    pub(super) fn difference(&mut self, field: &'static str) -> Result<i64, DecodeError> {
        let number = self.number(field)?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads a number of at most `limit`.
    pub(super) fn number_up_to(
        &mut self,
        field: &'static str,
        limit: u64,
        expected: &'static str,
    ) -> Result<u64, DecodeError> {
        let offset = self.offset;
        match self.number(field)? {
            number if number <= limit => Ok(number),
            found => Err(DecodeError::Value { field, offset, found, expected }),
        }
    }
}
