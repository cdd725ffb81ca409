//! Errors of export messages.

use std::net::SocketAddr;

use thiserror::Error;

/// An invalid message, which gave no rows.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("export message from {from}: {kind}")]
pub struct DecodeError {
    /// The sender.
    pub from: SocketAddr,
    /// The error.
    pub kind: DecodeErrorKind,
}

/// The kind of a decoding error. Offsets are in bytes from the start of the message.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// An unknown version.
    #[error(
        "unknown version {found} at offset 0, expected 5 or 9 (NetFlow), 10 (IPFIX), or 32-bit 5 (sFlow)"
    )]
    Version {
        /// The first 16 bits.
        found: u16,
    },
    /// A structure exceeds the message or the enclosing structure.
    #[error("{structure} at offset {offset} is truncated: expected {needed} bytes, found {found}")]
    Truncated {
        /// The structure.
        structure: &'static str,
        /// Its offset.
        offset: usize,
        /// Its length.
        needed: usize,
        /// The remaining bytes.
        found: usize,
    },
    /// An invalid length or count.
    #[error("{structure} at offset {offset} has length or count {claimed}, expected {expected}")]
    Length {
        /// The structure.
        structure: &'static str,
        /// Its offset.
        offset: usize,
        /// The length or count in the message.
        claimed: usize,
        /// The valid values.
        expected: &'static str,
    },
    /// An invalid number of a set, a template or a type.
    #[error("{structure} at offset {offset} has number {found}, expected {expected}")]
    Number {
        /// The structure.
        structure: &'static str,
        /// Its offset.
        offset: usize,
        /// The number.
        found: u32,
        /// The valid numbers.
        expected: &'static str,
    },
    /// A session has too many observation domains.
    #[error(
        "too many observation domains: {observation_domain_id} would exceed the limit of {limit} per session"
    )]
    TooManyDomains {
        /// The rejected domain.
        observation_domain_id: u32,
        /// [`Limits::domains`](super::Limits::domains).
        limit: usize,
    },
}
