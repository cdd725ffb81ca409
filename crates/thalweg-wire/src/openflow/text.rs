//! Text in a fixed-length field.

use std::fmt;

use super::codec::{Reader, Wire, Writer};
use super::error::DecodeError;

/// Text in a field of N bytes, terminated by a zero byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Text<const N: usize>([u8; N]);

impl<const N: usize> Text<N> {
    /// Creates a field from `text`, truncated to N - 1 bytes.
    pub fn new(text: &str) -> Text<N> {
        let mut bytes = [0; N];
        let length = text.floor_char_boundary(N.saturating_sub(1));
        bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        Text(bytes)
    }

    /// Returns the bytes before the first zero byte.
    pub fn as_bytes(&self) -> &[u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        &self.0[..end.unwrap_or(N)]
    }
}

/// Invalid UTF-8 is shown as the replacement character.
impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl<const N: usize> Wire for Text<N> {
    fn read(from: &mut Reader<'_>) -> Result<Text<N>, DecodeError> {
        from.array().map(Text)
    }

    fn write(&self, to: &mut Writer<'_>) {
        to.bytes(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_the_first_zero_byte_and_is_truncated_for_one() {
        assert_eq!(Text::<16>::new("eth0").to_string(), "eth0");
        assert_eq!(Text::<4>::new("eth0").to_string(), "eth");
        assert_eq!(Text::<4>::new("ab\u{e9}").to_string(), "ab", "no half of a character");
        assert_eq!(Text([b'a'; 4]).as_bytes(), b"aaaa", "a field without a zero byte is all text");
    }
}
