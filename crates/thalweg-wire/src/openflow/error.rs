//! Errors in decoding and encoding.

use thiserror::Error;

use super::VERSION;

/// An error in decoding a message. Offsets count from the first byte of the message.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// A structure exceeds its message or enclosing structure.
    #[error(
        "{structure} at offset {offset} of an OpenFlow message is truncated: expected {needed} bytes, found {found}"
    )]
    Truncated {
        /// The structure being read.
        structure: &'static str,
        /// The offset of its next part.
        offset: usize,
        /// The length of this part in bytes.
        needed: usize,
        /// The number of bytes left.
        found: usize,
    },
    /// A structure is followed by unexpected bytes.
    #[error(
        "{left} unexpected bytes at offset {offset} of an OpenFlow message: expected the end of {structure}"
    )]
    Trailing {
        /// The structure being read.
        structure: &'static str,
        /// The expected end of the structure.
        offset: usize,
        /// The number of bytes after it.
        left: usize,
    },
    /// A length field has an invalid value.
    #[error("{structure} at offset {offset} of an OpenFlow message has length {length}, expected {expected}")]
    Length {
        /// The structure being read.
        structure: &'static str,
        /// The start of the structure.
        offset: usize,
        /// The length in the field.
        length: usize,
        /// The valid lengths.
        expected: &'static str,
    },
    /// The type of a match is not OXM.
    #[error("match at offset {offset} of an OpenFlow message has type {found}, expected 1 (OXM)")]
    MatchType {
        /// The start of the match.
        offset: usize,
        /// The type found.
        found: u16,
    },
    /// The version of the message is unsupported.
    #[error("unsupported OpenFlow version {found}, expected {VERSION} (OpenFlow 1.3)")]
    Version {
        /// The version found.
        found: u8,
    },
}

/// An error in encoding a value.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// A length exceeds its field.
    #[error("{structure} is too long: {length} bytes, expected at most {limit}")]
    TooLong {
        /// The structure.
        structure: &'static str,
        /// Its length in bytes.
        length: usize,
        /// The maximum of its length field.
        limit: usize,
    },
}
