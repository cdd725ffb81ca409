//! Errors of reading a capture file.

use std::io;

use thalweg_wire::LinkType;
use thalweg_wire::capture_file::FormatError;
use thiserror::Error;

use super::compression::Compression;

/// Why a capture file could not be read completely. Offsets count decompressed bytes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file does not exist, or cannot be opened.
    #[error("cannot open {file}: {cause}")]
    Open {
        /// The name of the file.
        file: String,
        /// The system error.
        cause: io::Error,
    },
    /// The path is a directory.
    #[error("{file} is a directory, expected a capture file")]
    Directory {
        /// The name of the directory.
        file: String,
    },
    /// The file is empty, or decompresses to nothing.
    #[error("{file} is empty, expected a pcap or pcapng file")]
    Empty {
        /// The name of the file.
        file: String,
    },
    /// The file ends inside the header.
    #[error(
        "{file} is truncated: {present} bytes, expected a file header of at least 24 bytes (pcap or pcapng)"
    )]
    TooShort {
        /// The name of the file.
        file: String,
        /// The length of the file.
        present: usize,
    },
    /// The file has another format.
    #[error("{}", not_a_capture(file, *compression, found))]
    NotACapture {
        /// The name of the file.
        file: String,
        /// Its compression.
        compression: Option<Compression>,
        /// Its first bytes, decompressed.
        found: [u8; 4],
    },
    /// The file violates its format.
    #[error("{file}: {cause}")]
    Format {
        /// The name of the file.
        file: String,
        /// The violation and its offset.
        cause: FormatError,
    },
    /// The link type of all its frames is not supported.
    #[error(
        "{file}: unsupported link type {link_type} at offset {offset}: expected one of {}",
        supported_link_types()
    )]
    UnsupportedLinkType {
        /// The name of the file.
        file: String,
        /// The `LINKTYPE_` number.
        link_type: u16,
        /// The offset of the number.
        offset: u64,
    },
    /// The file ends inside a record.
    #[error(
        "{file} is truncated: the record at offset {offset} needs at least {needed} bytes, {present} are left"
    )]
    Truncated {
        /// The name of the file.
        file: String,
        /// The beginning of the record.
        offset: u64,
        /// The length of the record, as far as known.
        needed: usize,
        /// The bytes of it that are present.
        present: usize,
    },
    /// The file ends inside its compressed data.
    #[error(
        "{file} is truncated: its {compression} data ends at byte {compressed_offset}; \
         decompressed up to offset {offset}"
    )]
    TruncatedCompression {
        /// The name of the file.
        file: String,
        /// Its compression.
        compression: Compression,
        /// The length of the file on disk.
        compressed_offset: u64,
        /// Decompressed bytes before the end.
        offset: u64,
    },
    /// The compressed data is damaged.
    #[error(
        "{file} has damaged {compression} data before byte {compressed_offset} ({cause}); \
         decompressed up to offset {offset}"
    )]
    Decompress {
        /// The name of the file.
        file: String,
        /// Its compression.
        compression: Compression,
        /// The position up to which it was read; the damage is shortly before.
        compressed_offset: u64,
        /// Decompressed bytes before the damage was detected.
        offset: u64,
        /// The error of the decompressor.
        cause: io::Error,
    },
    /// The system failed to read the file.
    #[error("cannot read {file} beyond byte {compressed_offset}: {cause}")]
    Read {
        /// The name of the file.
        file: String,
        /// Bytes of it read on disk.
        compressed_offset: u64,
        /// The system error.
        cause: io::Error,
    },
}

impl FileError {
    /// Whether the file is valid except for its missing end, so that everything before was delivered.
    pub fn is_truncation(&self) -> bool {
        matches!(self, FileError::Truncated { .. } | FileError::TruncatedCompression { .. })
    }
}

fn not_a_capture(file: &str, compression: Option<Compression>, found: &[u8; 4]) -> String {
    let unpacked = compression.map(|c| format!(" after {c} decompression")).unwrap_or_default();
    let guess = file_type(found).map(|name| format!(" ({name})")).unwrap_or_default();
    format!(
        "{file} is not a capture file: first bytes{unpacked} {:02x} {:02x} {:02x} {:02x}{guess}: expected \
         pcap (such as d4 c3 b2 a1) or pcapng (0a 0d 0d 0a), plain or compressed with gzip, zstd, bzip2, xz or LZ4",
        found[0], found[1], found[2], found[3]
    )
}

/// Returns the type of file with these first bytes, among those that users try.
fn file_type(found: &[u8; 4]) -> Option<&'static str> {
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
