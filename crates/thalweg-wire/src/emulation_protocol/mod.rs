//! The datagrams between the endpoints of a real-time emulation and its arbiter.
//!
//! Source: Ousterhout et al., *Flexplane* (NSDI 2017), sections 3.1 and 4. A host, the *endpoint*, holds the packets
//! of unmodified applications. Its *requests* describe them to the *arbiter*, which emulates the network. An *answer*
//! of the arbiter says whether to drop a packet or to send it, and how to modify it first. The paper names the fields
//! of an abstract packet; the format is ours; `docs/reference/emulation-protocol.md` has it byte by byte.
//!
//! A [`Datagram`] is a [`Header`], then blocks: requests towards the arbiter, answers towards the endpoint. A block
//! states its [`Flow`] once. [`Datagram::decode`] checks all bytes and the checksum first, so that the iterators over
//! a datagram cannot fail and a receiver never applies half of one. [`RequestWriter`] and [`AnswerWriter`] write into
//! the caller's buffer.
//!
//! - Any bytes decode to a datagram or a [`DecodeError`] with its offset, without a panic and without an allocation.
//! - What the writers write decodes to the same values.
//! - A request takes 1 byte and its scheme bytes if it resembles the one before. An answer takes 1 byte per packet if its
//!   emulated delay is within 6 us of the one before, and 1 byte per up to 32 packets with the same verdict.

mod answer;
mod checksum;
mod cursor;
mod datagram;
mod emulated_delay;
mod error;
mod header;
mod identity;
mod output;
mod request;
mod scheme_bytes;
#[cfg(test)]
mod tests;

pub use answer::{Answer, AnswerWriter, Verdict};
pub use checksum::checksum;
pub use datagram::{Answers, Datagram, Requests};
pub use emulated_delay::EmulatedDelay;
pub use error::{DecodeError, EncodeError};
pub use header::{Acknowledgement, Direction, Header};
pub use identity::{Flow, Sequence, Session};
pub use request::{Request, RequestWriter};
pub use scheme_bytes::{SchemeBytes, TooManySchemeBytes};

/// The version of the format.
pub const VERSION: u8 = 1;

/// The length of the header in bytes, checksum included.
pub const HEADER_LENGTH: usize = 28;

/// The UDP payload of an Ethernet frame with an MTU of 1,500 bytes and an IPv4 header without options, in bytes.
pub const DEFAULT_MAX_DATAGRAM: usize = 1_500 - 20 - 8;

/// The maximum number of bytes that a scheme adds to a request or to an answer: what 4 bits count.
pub const MAX_SCHEME_BYTES: usize = 15;

/// The window of a flow: a request's index is at least the flow's base, and less than the base plus this number.
///
/// The base is the lowest index that the endpoint has neither sent nor dropped. The arbiter remembers one bit for
/// each index of the window to recognise duplicates. 4,096 packets are four times the buffer of the paper's
/// evaluation (1,024 packets, Table 2), so that one flow can fill the emulated queue.
pub const FLOW_WINDOW: u64 = 4_096;

/// The maximum length of the head of a block in bytes: source 3, destination 3, flow 5, index 10, number of entries 1.
pub const MAX_BLOCK_HEAD: usize = 22;

/// The maximum length of a request in bytes without its scheme bytes: control byte 1, index 2, length 2, traffic
/// class 1. The index is coded as a difference of at most [`FLOW_WINDOW`] in magnitude.
pub const MAX_REQUEST: usize = 6;

/// The maximum length of an answer in bytes without its scheme bytes: control byte 1, index 10, number of scheme
/// bytes 1, emulated delay 5.
pub const MAX_ANSWER: usize = 17;
