//! How bytes can break the protocol, and values not fit into it.

use thiserror::Error;

use super::VERSION;

/// Why bytes are no message. Offsets count from the message's first byte.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// A structure goes on where its message, or the structure around it, ends.
    #[error(
        "{structure} at offset {offset} of an OpenFlow message is cut short: expected {needed} bytes, found {found}"
    )]
    Truncated {
        /// What was being read.
        structure: &'static str,
        /// Where its next part should begin.
        offset: usize,
        /// Bytes that this part takes.
        needed: usize,
        /// Bytes that are left.
        found: usize,
    },
    /// Bytes are left where a structure is at its end.
    #[error(
        "{left} bytes are left at offset {offset} of an OpenFlow message, expected the end of {structure}"
    )]
    Trailing {
        /// What was being read.
        structure: &'static str,
        /// Where it should have ended.
        offset: usize,
        /// Bytes beyond that.
        left: usize,
    },
    /// A length field has a value that its structure cannot have.
    #[error(
        "{structure} at offset {offset} of an OpenFlow message claims a length of {length}, expected {expected}"
    )]
    Length {
        /// What was being read.
        structure: &'static str,
        /// Where the structure begins.
        offset: usize,
        /// Its length as claimed.
        length: usize,
        /// Lengths that it can have.
        expected: &'static str,
    },
    /// A match of another type than OXM.
    #[error("match at offset {offset} of an OpenFlow message has type {found}, expected 1 (OXM)")]
    MatchType {
        /// Where the match begins.
        offset: usize,
        /// Type found.
        found: u16,
    },
    /// A message of a version that means something else by it.
    #[error("OpenFlow message of version {found}, expected {VERSION} (OpenFlow 1.3)")]
    Version {
        /// Version found.
        found: u8,
    },
}

/// Why a value cannot be encoded.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// A length does not fit into its field.
    #[error("{structure} would be {length} bytes long, expected at most {limit}")]
    TooLong {
        /// What is too long.
        structure: &'static str,
        /// Bytes that it would take.
        length: usize,
        /// Most bytes that its length field can say.
        limit: usize,
    },
}
