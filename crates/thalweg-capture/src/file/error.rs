//! Why a capture file could not be read, or not to its end.

use std::io;

use thalweg_wire::LinkType;
use thalweg_wire::capture_file::FormatError;
use thiserror::Error;

use super::compression::Compression;

/// Why a capture file could not be read, or not to its end. Offsets count the unpacked bytes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// There is no such file, or it may not be read.
    #[error("cannot open {file}: {cause}")]
    Open {
        /// Name of the file.
        file: String,
        /// What the system says.
        cause: io::Error,
    },
    /// A directory was named.
    #[error("{file} is a directory, expected a capture file")]
    Directory {
        /// Name of the directory.
        file: String,
    },
    /// It has no bytes, or unpacks to none.
    #[error("{file} is empty, expected a pcap or pcapng file")]
    Empty {
        /// Name of the file.
        file: String,
    },
    /// It ends inside the header that would tell its format.
    #[error("{file} ends after {present} bytes, expected a file header of 24 bytes or more (pcap or pcapng)")]
    TooShort {
        /// Name of the file.
        file: String,
        /// Bytes that it has.
        present: usize,
    },
    /// It is something else.
    #[error("{}", not_a_capture(file, *compression, found))]
    NotACapture {
        /// Name of the file.
        file: String,
        /// How it was compressed.
        compression: Option<Compression>,
        /// Its first bytes, unpacked.
        found: [u8; 4],
    },
    /// It breaks its format.
    #[error("{file}: {cause}")]
    Format {
        /// Name of the file.
        file: String,
        /// Where and how.
        cause: FormatError,
    },
    /// All its frames have a link type that is not taken apart.
    #[error(
        "{file}: link type {link_type} at offset {offset} is not taken apart, expected one of {}",
        supported_link_types()
    )]
    UnsupportedLinkType {
        /// Name of the file.
        file: String,
        /// Its `LINKTYPE_` number.
        link_type: u16,
        /// Where the number stands.
        offset: u64,
    },
    /// It ends inside a record.
    #[error(
        "{file} ends inside the record at offset {offset}: it needs {needed} bytes or more, {present} are there"
    )]
    Truncated {
        /// Name of the file.
        file: String,
        /// Where the record begins.
        offset: u64,
        /// Length of the record, as far as can be told.
        needed: usize,
        /// Bytes that are there of it.
        present: usize,
    },
    /// It ends inside its compressed data.
    #[error(
        "{file} ends inside its {compression} data, at byte {packed_offset}; \
         it could be unpacked up to offset {offset}"
    )]
    TruncatedCompression {
        /// Name of the file.
        file: String,
        /// How it is compressed.
        compression: Compression,
        /// Length of the file as it lies on disk.
        packed_offset: u64,
        /// Unpacked bytes before the end.
        offset: u64,
    },
    /// Its compressed data is damaged.
    #[error(
        "{file} has damaged {compression} data before byte {packed_offset} ({cause}); \
         it could be unpacked up to offset {offset}"
    )]
    Decompress {
        /// Name of the file.
        file: String,
        /// How it is compressed.
        compression: Compression,
        /// How far it had been read: the damage lies shortly before.
        packed_offset: u64,
        /// Unpacked bytes before the damage was noticed.
        offset: u64,
        /// What the decompressor says.
        cause: io::Error,
    },
    /// The system could not read on.
    #[error("cannot read {file} beyond byte {packed_offset}: {cause}")]
    Read {
        /// Name of the file.
        file: String,
        /// Bytes read of it, as it lies on disk.
        packed_offset: u64,
        /// What the system says.
        cause: io::Error,
    },
}

impl FileError {
    /// Whether the file is sound but for its missing end, so that everything before was handed on.
    pub fn is_truncation(&self) -> bool {
        matches!(self, FileError::Truncated { .. } | FileError::TruncatedCompression { .. })
    }
}

fn not_a_capture(file: &str, compression: Option<Compression>, found: &[u8; 4]) -> String {
    let unpacked = compression.map(|c| format!(" (once unpacked with {c})")).unwrap_or_default();
    let guess = known_as(found).map(|name| format!(", as {name} does")).unwrap_or_default();
    format!(
        "{file} is not a capture file: it begins{unpacked} with {:02x} {:02x} {:02x} {:02x}{guess}; expected \
         pcap (d4 c3 b2 a1 and the like) or pcapng (0a 0d 0d 0a), plain or compressed with gzip or zstd",
        found[0], found[1], found[2], found[3]
    )
}

/// What files begin so, of those that people try.
fn known_as(found: &[u8; 4]) -> Option<&'static str> {
    Some(match found {
        [0x1f, 0x8b, ..] => "a gzip file",
        [0x28, 0xb5, 0x2f, 0xfd] => "a zstd file",
        [0xfd, b'7', b'z', b'X'] => "an xz file",
        [b'B', b'Z', b'h', _] => "a bzip2 file",
        [0x04, 0x22, 0x4d, 0x18] => "an lz4 file",
        [b'P', b'K', 3, 4] => "a ZIP archive",
        b"snoo" => "a snoop capture",
        bytes if bytes.iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace()) => "a text file",
        _ => return None,
    })
}

fn supported_link_types() -> String {
    let supported = (0..512).map(LinkType::from_number).filter(|link_type| link_type.is_supported());
    let mut names: Vec<_> = supported.map(|l| format!("{l} ({})", l.number())).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}
