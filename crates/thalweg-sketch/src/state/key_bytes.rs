//! A key type for programs that do not know the meaning of the keys.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::digest::Key;

/// Any key of up to [`KeyBytes::MAX_LENGTH`] bytes; used to merge, print and compare states of any keys.
#[derive(Clone, Copy)]
pub struct KeyBytes {
    length: u8,
    /// Any bytes beyond the length.
    bytes: [u8; KeyBytes::MAX_LENGTH],
}

impl KeyBytes {
    /// The length of the longest key.
    pub const MAX_LENGTH: usize = 64;

    /// Replaces the key by what `write` writes into the bytes; it returns the length. Returns false for lengths of 0 and above
    /// [`KeyBytes::MAX_LENGTH`].
    #[inline(always)]
    pub fn write(&mut self, write: impl FnOnce(&mut [u8; KeyBytes::MAX_LENGTH]) -> usize) -> bool {
        let length = write(&mut self.bytes);
        let is_key = (1..=Self::MAX_LENGTH).contains(&length);
        self.length = if is_key { length as u8 } else { 0 };
        is_key
    }
}

/// The empty key.
impl Default for KeyBytes {
    fn default() -> KeyBytes {
        KeyBytes { length: 0, bytes: [0; KeyBytes::MAX_LENGTH] }
    }
}

impl PartialEq for KeyBytes {
    fn eq(&self, other: &KeyBytes) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for KeyBytes {}

impl Hash for KeyBytes {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.as_bytes().hash(hasher);
    }
}

impl Key for KeyBytes {
    #[inline(always)]
    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    fn from_bytes(bytes: &[u8]) -> Option<KeyBytes> {
        let mut key = KeyBytes { length: u8::try_from(bytes.len()).ok()?, bytes: [0; Self::MAX_LENGTH] };
        key.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(key)
    }
}

/// Formats as hexadecimal: `0a000001`.
impl fmt::Display for KeyBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyBytes({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_bytes_of_any_length_round_trip() {
        for length in 0..=KeyBytes::MAX_LENGTH {
            let bytes: Vec<u8> = (0..length as u8).collect();
            let key = KeyBytes::from_bytes(&bytes).unwrap();
            assert_eq!(key.as_bytes(), bytes);
        }
        for length in [65, 255, 256, 300] {
            assert_eq!(KeyBytes::from_bytes(&vec![0; length]), None);
        }
        assert_ne!(KeyBytes::from_bytes(&[0]), KeyBytes::from_bytes(&[0, 0]));
        assert_eq!(KeyBytes::from_bytes(&[10, 0, 0, 255]).unwrap().to_string(), "0a0000ff");
    }
}
