//! Errors of the capture file formats.

use thiserror::Error;

use super::{MAX_INTERFACES, MAX_RECORD_LENGTH};

/// The reason why bytes are not a valid capture file. Offsets are in bytes from the start of the decompressed file to
/// the invalid record.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// The file does not start with a magic number of either format.
    #[error(
        "not a capture file: starts with {}, expected a pcap magic number (a1b2c3d4, a1b23c4d or a1b2cd34, \
         in either byte order) or a pcapng section header (0a0d0d0a)",
        hex(found)
    )]
    NotACapture {
        /// The first bytes.
        found: [u8; 4],
    },
    /// An unsupported version of the format.
    #[error("unsupported {format} version {major}.{minor} at offset {offset}: expected {expected}")]
    Version {
        /// The offset of the header.
        offset: u64,
        /// The name of the format.
        format: &'static str,
        /// The major version.
        major: u16,
        /// The minor version.
        minor: u16,
        /// The supported versions.
        expected: &'static str,
    },
    /// A record is longer than [`MAX_RECORD_LENGTH`].
    #[error(
        "record at offset {offset} has length {length}, expected at most {MAX_RECORD_LENGTH}: the file may be damaged"
    )]
    RecordTooLong {
        /// The offset of the record.
        offset: u64,
        /// The length in the record header, plus the header.
        length: u64,
    },
    /// A section header with an invalid byte-order magic.
    #[error(
        "section header at offset {offset} has byte-order magic {}, expected 1a2b3c4d or 4d3c2b1a",
        hex(found)
    )]
    ByteOrderMagic {
        /// The offset of the block.
        offset: u64,
        /// The four bytes.
        found: [u8; 4],
    },
    /// A block's total length is not a multiple of 4 or is too short for the block's type.
    #[error(
        "block of type {block_type:#x} at offset {offset} has total length {length}, \
         expected a multiple of 4, at least {minimum}"
    )]
    BlockLength {
        /// The offset of the block.
        offset: u64,
        /// The block type.
        block_type: u32,
        /// The total length in the block.
        length: u32,
        /// The minimum length for this type.
        minimum: u32,
    },
    /// The two total lengths of a block differ.
    #[error(
        "block at offset {offset} starts with total length {leading} but ends with {trailing}, expected equal lengths"
    )]
    TrailingLength {
        /// The offset of the block.
        offset: u64,
        /// The total length at the start.
        leading: u32,
        /// The total length at the end.
        trailing: u32,
    },
    /// The captured length of a packet block exceeds the block.
    #[error(
        "packet block at offset {offset} has captured length {captured_length}, expected at most {available}"
    )]
    FrameBeyondBlock {
        /// The offset of the block.
        offset: u64,
        /// The captured length in the block.
        captured_length: u32,
        /// The bytes between the fixed fields and the end of the block.
        available: u32,
    },
    /// A packet block refers to an interface that its section has not described.
    #[error(
        "packet block at offset {offset} refers to interface {interface}, expected one of the {described} described"
    )]
    UndescribedInterface {
        /// The offset of the block.
        offset: u64,
        /// The interface number in the section.
        interface: u32,
        /// The number of interfaces described so far in the section.
        described: u32,
    },
    /// The file describes more than [`MAX_INTERFACES`] interfaces.
    #[error("too many interface descriptions at offset {offset}, expected at most {MAX_INTERFACES}")]
    TooManyInterfaces {
        /// The offset of the block.
        offset: u64,
    },
    /// An option of an interface description has the wrong length, or exceeds the block.
    #[error(
        "option {code} of the interface description at offset {offset} has length {length}, expected {expected}"
    )]
    OptionLength {
        /// The offset of the block.
        offset: u64,
        /// The option code.
        code: u16,
        /// The length in the option.
        length: u16,
        /// The required or maximum length.
        expected: u32,
    },
}

fn hex(bytes: &[u8; 4]) -> String {
    format!("{:08x}", u32::from_be_bytes(*bytes))
}
