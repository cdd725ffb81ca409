//! Bytes that a scheme adds to requests and answers.

use std::fmt;

use thiserror::Error;

use super::MAX_SCHEME_BYTES;

/// Up to [`MAX_SCHEME_BYTES`] bytes whose meaning only the scheme knows: from its `prepare_request` to the arbiter,
/// and from the arbiter to its `prepare_to_send` (Flexplane, Table 1).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SchemeBytes {
    length: u8,
    /// Zero from `length` on.
    bytes: [u8; MAX_SCHEME_BYTES],
}

/// More than [`MAX_SCHEME_BYTES`] bytes.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{length} scheme bytes: expected at most {MAX_SCHEME_BYTES}")]
pub struct TooManySchemeBytes {
    /// The number of bytes.
    pub length: usize,
}

impl SchemeBytes {
    /// No bytes.
    pub const NONE: SchemeBytes = SchemeBytes { length: 0, bytes: [0; MAX_SCHEME_BYTES] };

    /// Copies `bytes`.
    ///
    /// # Errors
    /// If there are more than [`MAX_SCHEME_BYTES`].
    pub fn new(bytes: &[u8]) -> Result<SchemeBytes, TooManySchemeBytes> {
        let mut copy = SchemeBytes::NONE;
        match copy.bytes.get_mut(..bytes.len()) {
            Some(room) => room.copy_from_slice(bytes),
            None => return Err(TooManySchemeBytes { length: bytes.len() }),
        }
        copy.length = bytes.len() as u8;
        Ok(copy)
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        usize::from(self.length)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl fmt::Debug for SchemeBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x?}", self.as_slice())
    }
}
