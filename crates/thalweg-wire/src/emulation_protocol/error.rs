//! Errors in decoding and encoding.

use thiserror::Error;

use super::VERSION;

/// An error in decoding a datagram. Offsets count from the first byte of the UDP payload.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The datagram ends within a field.
    #[error(
        "{field} at offset {offset} of an emulation datagram is truncated: expected {needed} bytes, found {found}"
    )]
    Truncated {
        /// The field.
        field: &'static str,
        /// Its offset.
        offset: usize,
        /// Its length in bytes, or of its next part.
        needed: usize,
        /// The number of bytes left.
        found: usize,
    },
    /// The version of the datagram is unsupported.
    #[error("unsupported version {found} at offset 0 of an emulation datagram: expected {VERSION}")]
    Version {
        /// The version found.
        found: u8,
    },
    /// The checksum is wrong: bytes have changed on the way.
    #[error("checksum at offset 24 of an emulation datagram is {found:#010x}, expected {expected:#010x}")]
    Checksum {
        /// The checksum of the bytes.
        expected: u32,
        /// The checksum in the datagram.
        found: u32,
    },
    /// A field has an invalid value.
    #[error("{field} at offset {offset} of an emulation datagram is {found}: expected {expected}")]
    Value {
        /// The field.
        field: &'static str,
        /// Its offset.
        offset: usize,
        /// The value.
        found: u64,
        /// The valid values.
        expected: &'static str,
    },
    /// A variable-length number has more than 64 bits, or is not in its shortest form.
    #[error(
        "{field} at offset {offset} of an emulation datagram: expected a number of at most 64 bits in its shortest form"
    )]
    Number {
        /// The field.
        field: &'static str,
        /// Its offset.
        offset: usize,
    },
    /// An index is outside of its range.
    #[error("index at offset {offset} of an emulation datagram is out of range: expected {expected}")]
    Index {
        /// The offset of the entry with this index.
        offset: usize,
        /// The valid range.
        expected: &'static str,
    },
}

/// An error in encoding a datagram.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The buffer has no room left. What was written before is unchanged: finish the datagram, and begin another.
    #[error("the buffer is full: {needed} bytes needed, {left} left")]
    Full {
        /// The length of what was to be written, in bytes.
        needed: usize,
        /// The number of bytes left in the buffer.
        left: usize,
    },
    /// The index of a request is outside of its flow's window.
    #[error("index {index} is outside of the window of its flow: expected {base} to {base} + 4,095")]
    Window {
        /// The index.
        index: u64,
        /// The base of the flow.
        base: u64,
    },
}
