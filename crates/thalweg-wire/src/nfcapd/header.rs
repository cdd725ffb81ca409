//! Headers of files and blocks.

use super::error::{NfcapdError, NfcapdProblem, truncated};

/// The compression of a file's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// None.
    None,
    /// LZO1X-1.
    Lzo,
    /// bzip2.
    Bzip2,
    /// LZ4 blocks.
    Lz4,
    /// zstd.
    Zstd,
}

impl Compression {
    const ALL: [Compression; 5] =
        [Compression::None, Compression::Lzo, Compression::Bzip2, Compression::Lz4, Compression::Zstd];
}

/// The header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// The version of nfdump that wrote it, `0x01070100` for 1.7.1.
    pub version: u32,
    /// The time when it was created, in seconds since 1970.
    pub created: u64,
    /// The compression of its blocks.
    pub compression: Compression,
    /// Where blocks with data about the file begin, behind those with records; 0 if there are none.
    pub appendix: u64,
    /// The largest block without compression, in bytes.
    pub block_size: u32,
    /// The number of blocks with records.
    pub blocks: u32,
}

impl FileHeader {
    /// The bytes of a header.
    pub const BYTES: usize = 40;
    const MAGIC: u16 = 0xA50C;
    const LAYOUT: u16 = 2;

    /// Reads the header from the begin of a file.
    ///
    /// # Errors
    /// If it is none, of another layout, or encrypted.
    pub fn read(bytes: &[u8]) -> Result<FileHeader, NfcapdError> {
        let at = |offset, problem| NfcapdError { offset, problem };
        if bytes.len() < 4 {
            return Err(truncated(0, "the file header", Self::BYTES, bytes.len()));
        }
        match u16_at(bytes, 0) {
            Self::MAGIC => {}
            found => return Err(at(0, NfcapdProblem::Magic { found, expected: Self::MAGIC })),
        }
        match u16_at(bytes, 2) {
            Self::LAYOUT => {}
            found => return Err(at(2, NfcapdProblem::Layout { found })),
        }
        if bytes.len() < Self::BYTES {
            return Err(truncated(0, "the file header", Self::BYTES, bytes.len()));
        }
        let compression = Compression::ALL.get(usize::from(bytes[16])).copied();
        let compression =
            compression.ok_or_else(|| at(16, NfcapdProblem::Compression { found: bytes[16] }))?;
        if bytes[17] != 0 {
            return Err(at(17, NfcapdProblem::Encrypted));
        }
        Ok(FileHeader {
            version: u32_at(bytes, 4),
            created: u64_at(bytes, 8),
            compression,
            appendix: u64_at(bytes, 24),
            block_size: u32_at(bytes, 32),
            blocks: u32_at(bytes, 36),
        })
    }
}

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// The number of records.
    pub records: u32,
    /// The bytes of the body in the file.
    pub bytes: u32,
    /// Whether it has records of the types that are read here.
    pub has_records: bool,
    /// Whether the body is not compressed, though those of the file are.
    pub is_plain: bool,
}

impl BlockHeader {
    /// The bytes of a header.
    pub const BYTES: usize = 12;
    const TYPE: u16 = 3;
    const PLAIN: u16 = 1;

    /// Reads the header of a block from the begin of `bytes`; `offset` is its place in the file.
    ///
    /// # Errors
    /// If there are too few bytes.
    pub fn read(bytes: &[u8], offset: usize) -> Result<BlockHeader, NfcapdError> {
        if bytes.len() < Self::BYTES {
            return Err(truncated(offset, "a block header", Self::BYTES, bytes.len()));
        }
        Ok(BlockHeader {
            records: u32_at(bytes, 0),
            bytes: u32_at(bytes, 4),
            has_records: u16_at(bytes, 8) == Self::TYPE,
            is_plain: u16_at(bytes, 10) & Self::PLAIN != 0,
        })
    }
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(*bytes[at..].first_chunk().expect("the length was checked"))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("the length was checked"))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("the length was checked"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first bytes of a file of nfpcapd 1.7.1.
    const FILE: [u8; 52] = [
        0x0c, 0xa5, 0x02, 0x00, 0x00, 0x01, 0x07, 0x01, 0x89, 0x0b, 0x0c, 0x6b, 0, 0, 0, 0, 0, 0, 0x01, 0, 0,
        0, 0, 0, 0x88, 0x27, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0x75, 0, 0, 0, 0x54, 0x27, 0, 0, 3, 0,
        0, 0,
    ];

    #[test]
    fn headers_of_a_file_and_its_block_are_read() {
        let header = FileHeader::read(&FILE).unwrap();
        let expected = FileHeader {
            version: 0x0107_0100,
            created: 1_795_951_497,
            compression: Compression::None,
            appendix: 10_120,
            block_size: 1 << 24,
            blocks: 1,
        };
        assert_eq!(header, expected);
        let block = BlockHeader::read(&FILE[40..], 40).unwrap();
        let expected = BlockHeader { records: 117, bytes: 10_068, has_records: true, is_plain: false };
        assert_eq!(block, expected);
    }

    #[test]
    fn other_files_are_refused_with_offset_and_expectation() {
        let refused = |at: usize, byte: u8, expected: &str| {
            let mut file = FILE;
            file[at] = byte;
            let error = FileHeader::read(&file).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        refused(0, 0, "byte 0: begins with 0xa500: expected 0xa50c");
        refused(2, 1, "byte 2: layout 1: expected 2, of nfdump 1.7");
        refused(16, 9, "byte 16: compression 9");
        refused(17, 1, "byte 17: the file is encrypted");
        for length in 0..FileHeader::BYTES {
            assert!(FileHeader::read(&FILE[..length]).is_err(), "{length}");
        }
        let error = BlockHeader::read(&FILE[40..47], 40).unwrap_err().to_string();
        assert_eq!(error, "byte 40: 7 bytes left: expected 12 for a block header");
    }
}
