//! How a capture file can break its format.

use thiserror::Error;

use super::{MAX_INTERFACES, MAX_RECORD_LENGTH};

/// Why bytes are no capture file, or not one any further. Offsets are bytes from the start of the (unpacked)
/// file to the record at fault.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// The first bytes are no magic number of either format.
    #[error(
        "not a capture file: it begins with {}, expected a pcap magic number (a1b2c3d4, a1b23c4d or a1b2cd34, \
         in either byte order) or a pcapng section header (0a0d0d0a)",
        hex(found)
    )]
    NotACapture {
        /// The first bytes.
        found: [u8; 4],
    },
    /// A version of the format whose records may mean something else.
    #[error("{format} version {major}.{minor} at offset {offset}, expected {expected}")]
    Version {
        /// Where the header begins.
        offset: u64,
        /// Name of the format.
        format: &'static str,
        /// Version found.
        major: u16,
        /// Version found.
        minor: u16,
        /// Versions that are understood.
        expected: &'static str,
    },
    /// A record claims more than [`MAX_RECORD_LENGTH`].
    #[error(
        "record at offset {offset} claims {length} bytes, expected at most {MAX_RECORD_LENGTH}: damaged?"
    )]
    RecordTooLong {
        /// Where the record begins.
        offset: u64,
        /// Its length with its header, as claimed.
        length: u64,
    },
    /// A section header whose byte-order magic is neither way round.
    #[error(
        "section header at offset {offset} has byte-order magic {}, expected 1a2b3c4d or 4d3c2b1a",
        hex(found)
    )]
    ByteOrderMagic {
        /// Where the block begins.
        offset: u64,
        /// What stands in its place.
        found: [u8; 4],
    },
    /// A block's total length is not a multiple of 4 or is too short for the block's type.
    #[error(
        "block of type {block_type:#x} at offset {offset} has total length {length}, \
         expected a multiple of 4 from {minimum} up"
    )]
    BlockLength {
        /// Where the block begins.
        offset: u64,
        /// Its type.
        block_type: u32,
        /// Its total length as claimed.
        length: u32,
        /// The least length of its type.
        minimum: u32,
    },
    /// The total length at the end of a block is not the one at its beginning.
    #[error(
        "block at offset {offset} begins with total length {leading} and ends with {trailing}, expected them equal"
    )]
    TrailingLength {
        /// Where the block begins.
        offset: u64,
        /// Total length at its beginning.
        leading: u32,
        /// Total length at its end.
        trailing: u32,
    },
    /// A packet block claims more captured bytes than it has room for.
    #[error(
        "packet block at offset {offset} claims {captured_length} captured bytes, expected at most {room}"
    )]
    FrameBeyondBlock {
        /// Where the block begins.
        offset: u64,
        /// Captured length as claimed.
        captured_length: u32,
        /// Bytes between its fixed fields and its end.
        room: u32,
    },
    /// A packet block names an interface that its section has not described.
    #[error(
        "packet block at offset {offset} names interface {interface}, expected one of the {described} described"
    )]
    UndescribedInterface {
        /// Where the block begins.
        offset: u64,
        /// Interface number within the section.
        interface: u32,
        /// How many the section has described so far.
        described: u32,
    },
    /// More than [`MAX_INTERFACES`] are described.
    #[error("interface description at offset {offset} is one too many, expected at most {MAX_INTERFACES}")]
    TooManyInterfaces {
        /// Where the block begins.
        offset: u64,
    },
    /// An option of an interface description is too long for its block, or not as long as its kind must be.
    #[error(
        "option {code} of the interface description at offset {offset} is {length} bytes long, expected {expected}"
    )]
    OptionLength {
        /// Where the block begins.
        offset: u64,
        /// Code of the option.
        code: u16,
        /// Its length as claimed.
        length: u16,
        /// How long it must be, or can be at most.
        expected: u32,
    },
}

fn hex(bytes: &[u8; 4]) -> String {
    format!("{:08x}", u32::from_be_bytes(*bytes))
}
