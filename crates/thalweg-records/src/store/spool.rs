//! Segments of the spool: batches in blocks, each with length and checksum.
//!
//! ```text
//! segment = "thwspool" u16 FORMAT, u16 VERSION of the dataset, u32 columns, block*
//! block   = u32 bytes of the columns, u32 rows, u64 checksum, column*
//! column  = numbers, or of addresses: u32 others, (numbers: IPv4)?, (numbers: positions of others)?, (numbers: others)?,
//!           or of texts: numbers: lengths, bytes
//!           or of names: u32 entries, entries * (u8 length, bytes), numbers: positions among the entries
//!           or of label stacks: u8 1, rows * 30 bytes, or u8 0 if all are empty
//! numbers = u8 width, u128 minimum, rows * (value - minimum) in width bytes
//! ```
//!
//! All integers are little-endian. A width is 0, 1, 2, 4, 8 or 16; a constant column takes 17 bytes. An address column
//! stores IPv4 for every row if there is any, and positions if there are both kinds. A record of a typical NetFlow v9
//! exporter takes about 40 bytes instead of 188. The checksum is XXH3 of the columns, seeded with the block's offset and
//! rows. A last block with a wrong checksum was torn by a crash; the segment ends before it. If a complete block follows, what is before that
//! was damaged, and is skipped.
//!
//! Segments of [earlier versions](Dataset::EARLIER) are read too: they have the first columns of today, and the others are
//! empty.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::schema::Dataset;

use super::column_codec::{COLUMN_HEADER, MAX_TEXT, decode, encode};
use super::parquet::PAGE_ROWS;
use super::split::Split;

const MAGIC: &[u8; 8] = b"thwspool";

/// Version of this format.
const FORMAT: u16 = 3;

/// The oldest version that is read. It has no names, label stacks and sparse columns.
const OLDEST_FORMAT: u16 = 2;

const SEGMENT_HEADER: usize = 16;
const BLOCK_HEADER: usize = 16;

/// Maximum length of a block: a page of incompressible columns, or of long texts.
const MAX_BLOCK_LENGTH: usize = 64 * (4 + 3 * COLUMN_HEADER + (24 + MAX_TEXT) * PAGE_ROWS);

/// A segment being written.
pub(super) struct Segment {
    file: File,
    bytes: u64,
    rows: u64,
    synced: bool,
    block: Vec<u8>,
    split: Split,
}

impl Segment {
    /// # Errors
    /// If the file exists or cannot be written.
    pub(super) fn create<D: Dataset>(path: &Path) -> io::Result<Segment> {
        let file = File::create_new(path)?;
        let written = file.write_all_at(&segment_header::<D>(), 0);
        written.inspect_err(|_| {
            let _ = std::fs::remove_file(path);
        })?;
        let (bytes, block, split) = (SEGMENT_HEADER as u64, Vec::new(), Split::default());
        Ok(Segment { file, bytes, rows: 0, synced: false, block, split })
    }

    /// Appends a block of at most [`PAGE_ROWS`] rows.
    ///
    /// # Errors
    /// If the block cannot be written. The segment is unchanged then; the next block overwrites the partial one.
    pub(super) fn append<D: Dataset>(&mut self, batch: &D) -> io::Result<()> {
        let block = &mut self.block;
        block.clear();
        block.resize(BLOCK_HEADER, 0);
        for column in 0..D::columns().len() {
            encode(batch.values(column), &mut self.split, block);
        }
        let (rows, length) = (batch.rows() as u32, (block.len() - BLOCK_HEADER) as u32);
        let checksum = checksum(&block[BLOCK_HEADER..], self.bytes, rows);
        block[..4].copy_from_slice(&length.to_le_bytes());
        block[4..8].copy_from_slice(&rows.to_le_bytes());
        block[8..16].copy_from_slice(&checksum.to_le_bytes());
        if let Err(error) = self.file.write_all_at(block, self.bytes) {
            // Frees space if the disk is full. If this fails too, the block is torn and detected when read.
            let _ = self.file.set_len(self.bytes);
            return Err(error);
        }
        self.bytes += block.len() as u64;
        self.rows += u64::from(rows);
        self.synced = false;
        Ok(())
    }

    /// Appends a block as [`append`](Segment::append), and flushes it to the disk.
    ///
    /// # Errors
    /// If the block cannot be written or flushed. The segment is unchanged then; the next block overwrites this one.
    pub(super) fn append_durably<D: Dataset>(&mut self, batch: &D) -> io::Result<()> {
        let before = (self.bytes, self.rows);
        self.append(batch)?;
        self.sync().inspect_err(|_| {
            (self.bytes, self.rows) = before;
            // A crash before the next block must not bring this one back.
            let _ = self.file.set_len(self.bytes).and_then(|()| self.file.sync_data());
        })
    }

    /// Flushes appended blocks to the disk (`fdatasync`).
    ///
    /// # Errors
    /// If the disk fails.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if !self.synced {
            self.file.sync_data()?;
            self.synced = true;
        }
        Ok(())
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Replaces the file, so that a test can let the disk fail.
    #[cfg(test)]
    pub(super) fn replace_file(&mut self, file: File) -> File {
        std::mem::replace(&mut self.file, file)
    }
}

/// A segment being read.
pub(super) struct Reader {
    file: io::BufReader<File>,
    at: u64,
    length: u64,
    block: Vec<u8>,
    /// Number of columns that each block has.
    columns: usize,
    /// Bytes after the last complete block.
    torn: u64,
    /// Bytes between complete blocks.
    damaged: u64,
}

/// Why a segment is not read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(super) enum UnknownLayout {
    /// Its first bytes are others.
    #[error("it is not a spool segment")]
    Magic,
    /// Another version of the program wrote it.
    #[error(
        "it has format {format} with version {version} and {columns} columns, written by another version of \
         thalweg; expected format {OLDEST_FORMAT} to {FORMAT} with version {expected}; collect with that version to \
         write it to a file"
    )]
    Version {
        /// Version of the format.
        format: u16,
        /// Version of the dataset's columns.
        version: u16,
        /// Number of columns.
        columns: u32,
        /// The versions of the columns that are read.
        expected: String,
    },
}

/// The contents of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// Rows in complete blocks.
    pub(super) rows: u64,
    /// Size of the segment in bytes.
    pub(super) bytes: u64,
    /// Bytes after the last complete block.
    pub(super) torn: u64,
    /// Bytes between complete blocks.
    pub(super) damaged: u64,
}

impl Reader {
    /// Opens a segment.
    ///
    /// # Errors
    /// The outer if it cannot be read, the inner if its layout is unknown.
    pub(super) fn open<D: Dataset>(path: &Path) -> io::Result<Result<Reader, UnknownLayout>> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let file = io::BufReader::new(file);
        let mut reader = Reader { file, at: 0, length, block: Vec::new(), columns: 0, torn: 0, damaged: 0 };
        let mut header = [0; SEGMENT_HEADER];
        if length < SEGMENT_HEADER as u64 {
            // The crash preceded the header.
            reader.torn = length;
            return Ok(Ok(reader));
        }
        reader.file.read_exact(&mut header)?;
        reader.at = SEGMENT_HEADER as u64;
        Ok(columns_of::<D>(&header).map(|columns| Reader { columns, ..reader }))
    }

    /// Counts the contents of a segment.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub(super) fn contents<D: Dataset>(path: &Path) -> io::Result<Result<Contents, UnknownLayout>> {
        let mut reader = match Reader::open::<D>(path)? {
            Ok(reader) => reader,
            Err(unknown) => return Ok(Err(unknown)),
        };
        let mut rows = 0;
        while let Some(block) = reader.block()? {
            rows += block as u64;
        }
        Ok(Ok(Contents { rows, bytes: reader.length, torn: reader.torn, damaged: reader.damaged }))
    }

    /// Replaces the rows of `batch` by those of the next block; `false` at the end.
    ///
    /// # Errors
    /// If the segment cannot be read, or a complete block does not have the expected columns.
    pub(super) fn next<D: Dataset>(&mut self, batch: &mut D) -> io::Result<bool> {
        let Some(rows) = self.block()? else { return Ok(false) };
        batch.truncate_rows(0);
        let mut columns = &self.block[..];
        for column in 0..D::columns().len() {
            let mut values = batch.values_mut(column);
            let decoded = match column < self.columns {
                true => decode(&mut columns, rows, values),
                false => values.resize_sparse(rows),
            };
            decoded.ok_or_else(|| {
                let name = D::columns()[column].name;
                let text =
                    format!("block before offset {}: column {name} does not have {rows} rows", self.at);
                io::Error::new(io::ErrorKind::InvalidData, text)
            })?;
        }
        Ok(true)
    }

    /// Reads the next complete block's columns and returns its rows; `None` at the end.
    fn block(&mut self) -> io::Result<Option<usize>> {
        if let Some(rows) = self.block_here()? {
            return Ok(Some(rows));
        }
        let left = self.length.saturating_sub(self.at);
        if self.torn > 0 || left == 0 {
            return Ok(None);
        }
        let Some(skipped) = self.find_block()? else {
            self.torn = left;
            return Ok(None);
        };
        self.damaged += skipped;
        self.at += skipped;
        self.file.seek(SeekFrom::Start(self.at))?;
        self.block_here()
    }

    /// Reads the block at this offset; `None` if no complete one is there.
    fn block_here(&mut self) -> io::Result<Option<usize>> {
        let left = self.length.saturating_sub(self.at);
        if self.torn > 0 || left < BLOCK_HEADER as u64 {
            return Ok(None);
        }
        let mut header = [0; BLOCK_HEADER];
        self.file.read_exact(&mut header)?;
        let Some(header) = BlockHeader::of(&header, left) else { return Ok(None) };
        self.block.resize(header.length, 0);
        self.file.read_exact(&mut self.block)?;
        if checksum(&self.block, self.at, header.rows) != header.checksum {
            return Ok(None);
        }
        self.at += (BLOCK_HEADER + header.length) as u64;
        Ok(Some(header.rows as usize))
    }

    /// Searches the next complete block, and returns the bytes before it.
    #[cold]
    fn find_block(&mut self) -> io::Result<Option<u64>> {
        let mut rest = Vec::new();
        self.file.seek(SeekFrom::Start(self.at))?;
        self.file.read_to_end(&mut rest)?;
        let is_block = |start: usize| {
            let bytes = &rest[start..];
            let header = bytes.first_chunk().and_then(|header| BlockHeader::of(header, bytes.len() as u64));
            header.is_some_and(|BlockHeader { length, rows, checksum: expected }| {
                let columns = &bytes[BLOCK_HEADER..][..length];
                rows > 0 && checksum(columns, self.at + start as u64, rows) == expected
            })
        };
        Ok((1..rest.len()).find(|&start| is_block(start)).map(|start| start as u64))
    }
}

/// The header of a block.
struct BlockHeader {
    /// Bytes of the columns.
    length: usize,
    rows: u32,
    checksum: u64,
}

impl BlockHeader {
    /// Reads a header; `None` if a block with it does not fit into the `left` bytes, or into any segment.
    fn of(bytes: &[u8; BLOCK_HEADER], left: u64) -> Option<BlockHeader> {
        let [a, b, c, d, e, f, g, h, checksum @ ..] = *bytes;
        let (length, rows) = (u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes([e, f, g, h]));
        let fits = length <= MAX_BLOCK_LENGTH
            && length as u64 <= left - BLOCK_HEADER as u64
            && rows as usize <= PAGE_ROWS;
        fits.then(|| BlockHeader { length, rows, checksum: u64::from_le_bytes(checksum) })
    }
}

fn segment_header<D: Dataset>() -> [u8; SEGMENT_HEADER] {
    let mut header = [0; SEGMENT_HEADER];
    header[..8].copy_from_slice(MAGIC);
    header[8..10].copy_from_slice(&FORMAT.to_le_bytes());
    header[10..12].copy_from_slice(&D::VERSION.to_le_bytes());
    header[12..].copy_from_slice(&(D::columns().len() as u32).to_le_bytes());
    header
}

/// Returns the number of columns of a segment with this header.
fn columns_of<D: Dataset>(header: &[u8; SEGMENT_HEADER]) -> Result<usize, UnknownLayout> {
    let [magic @ .., a, b, c, d, e, f, g, h] = *header;
    if magic != *MAGIC {
        return Err(UnknownLayout::Magic);
    }
    let (format, version) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
    let columns = u32::from_le_bytes([e, f, g, h]);
    let known = || D::EARLIER.iter().copied().chain([(D::VERSION, D::columns().len())]);
    if (OLDEST_FORMAT..=FORMAT).contains(&format) && known().any(|known| known == (version, columns as usize))
    {
        return Ok(columns as usize);
    }
    let expected: Vec<String> =
        known().map(|(version, columns)| format!("{version} and {columns} columns")).collect();
    Err(UnknownLayout::Version { format, version, columns, expected: expected.join(", or ") })
}

fn checksum(columns: &[u8], offset: u64, rows: u32) -> u64 {
    xxh3_64_with_seed(columns, offset ^ u64::from(rows) << 40)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use thalweg_wire::flow_export::{Address, Mac, Name, Record, RecordBatch};

    use super::*;

    /// Frames with addresses of one kind, of none, and mixed, and numbers of all widths.
    fn any_block() -> impl Strategy<Value = Vec<Record>> {
        let v4 = || any::<u32>().prop_map(Address::v4).boxed();
        let other = || prop_oneof![Just(Address::NONE), any::<u128>().prop_map(Address)].boxed();
        let address = prop_oneof![
            Just(Just(Address::NONE).boxed()),
            Just(v4()),
            Just(other()),
            Just(prop_oneof![v4(), other()].boxed()),
        ];
        let record = |address| {
            (address, 0..64_u32, any::<u64>()).prop_map(|(source_address, shift, number)| Record {
                received_us: number as i64,
                source_address,
                octets: number >> shift,
                source_as: (number >> shift) as u32,
                bgp_next_hop: source_address,
                post_vlan_id: (shift / 32) as u16,
                source_mac: Mac::from_number(number >> shift),
                mpls_labels: format!("{shift}-0-1").parse().unwrap(),
                ingress_interface_name: Name::of(&format!("xe-{}", shift / 8)).unwrap(),
                egress_vrf_name: Name::of(["", "red"][shift as usize % 2]).unwrap(),
                ..Record::default()
            })
        };
        address.prop_flat_map(move |address| prop::collection::vec(record(address), 1..60))
    }

    proptest! {
        #[test]
        fn encoded_blocks_decode_to_the_same_rows(blocks in prop::collection::vec(any_block(), 1..5)) {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("a.spool");
            let mut segment = Segment::create::<RecordBatch>(&path).unwrap();
            let mut batches = Vec::new();
            for block in &blocks {
                let mut batch = RecordBatch::default();
                block.iter().for_each(|record| batch.push(record));
                segment.append(&batch).unwrap();
                batches.push(batch);
            }
            let mut reader = Reader::open::<RecordBatch>(&path).unwrap().unwrap();
            let mut read = RecordBatch::default();
            for batch in &batches {
                prop_assert!(reader.next(&mut read).unwrap());
                prop_assert!(read == *batch);
            }
            prop_assert!(!reader.next(&mut read).unwrap());
        }
    }
}
