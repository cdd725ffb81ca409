//! How an export message can break its format.

use std::net::SocketAddr;

use thiserror::Error;

/// A message that gave no rows, and from whom it came.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("export message from {from}: {fault}")]
pub struct DecodeError {
    /// Who sent it.
    pub from: SocketAddr,
    /// What is wrong with it.
    pub fault: Fault,
}

/// Which rule a message breaks. Offsets count from the message's first byte.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It begins like none of the formats.
    #[error("version {found} at offset 0, expected 5 or 9 (NetFlow), 10 (IPFIX), or 5 in 32 bits (sFlow)")]
    Version {
        /// The first 16 bits.
        found: u16,
    },
    /// Something goes on where the message, or the structure around it, ends.
    #[error("{structure} at offset {offset} is cut short: expected {needed} bytes, found {found}")]
    Truncated {
        /// What was being read.
        structure: &'static str,
        /// Where it begins.
        offset: usize,
        /// Bytes that it takes.
        needed: usize,
        /// Bytes that are left.
        found: usize,
    },
    /// A length or count has a value that its structure cannot have.
    #[error("{structure} at offset {offset} claims {claimed}, expected {expected}")]
    Length {
        /// What claims it.
        structure: &'static str,
        /// Where it begins.
        offset: usize,
        /// The length or count claimed.
        claimed: usize,
        /// What it can be.
        expected: &'static str,
    },
    /// A set or template has a number that means nothing.
    #[error("{structure} at offset {offset} has number {found}, expected {expected}")]
    Number {
        /// What has it.
        structure: &'static str,
        /// Where it begins.
        offset: usize,
        /// The number.
        found: u32,
        /// Numbers that have a meaning.
        expected: &'static str,
    },
    /// A session has more observation domains than a decoder keeps.
    #[error("observation domain {observation_domain_id} is one too many: the session has {limit} already")]
    TooManyDomains {
        /// Which domain.
        observation_domain_id: u32,
        /// [`Limits::domains`](super::Limits::domains).
        limit: usize,
    },
}
