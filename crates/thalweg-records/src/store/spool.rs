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
//! rows. A block with a wrong checksum was torn by a crash; the segment ends before it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use thalweg_wire::flow_export::label_stack::MAX_LABELS;
use thalweg_wire::flow_export::{Address, Format, LabelStack, Mac, Name, Sparse};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::schema::dataset::Text;
use crate::schema::{Dataset, Kind, SparseMut, Values, ValuesMut};

use super::parquet::PAGE_ROWS;
use super::split::Split;

const MAGIC: &[u8; 8] = b"thwspool";

/// Version of this format.
const FORMAT: u16 = 3;

const SEGMENT_HEADER: usize = 16;
const BLOCK_HEADER: usize = 16;
const COLUMN_HEADER: usize = 17;

/// Maximum length of a text in bytes; the rest is cut off.
const MAX_TEXT: usize = 1_024;

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
    /// Bytes after the last complete block.
    torn: u64,
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
}

impl Reader {
    /// Opens a segment; `None` if it has another format or other columns.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn open<D: Dataset>(path: &Path) -> io::Result<Option<Reader>> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut reader = Reader { file: io::BufReader::new(file), at: 0, length, block: Vec::new(), torn: 0 };
        let mut header = [0; SEGMENT_HEADER];
        if length < SEGMENT_HEADER as u64 {
            // The crash preceded the header.
            reader.torn = length;
            return Ok(Some(reader));
        }
        reader.file.read_exact(&mut header)?;
        reader.at = SEGMENT_HEADER as u64;
        Ok((header == segment_header::<D>()).then_some(reader))
    }

    /// Counts the contents of a segment; `None` as for [`Reader::open`].
    pub(super) fn contents<D: Dataset>(path: &Path) -> io::Result<Option<Contents>> {
        let Some(mut reader) = Reader::open::<D>(path)? else { return Ok(None) };
        let mut rows = 0;
        while let Some(block) = reader.block()? {
            rows += block as u64;
        }
        Ok(Some(Contents { rows, bytes: reader.length, torn: reader.torn }))
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
            decode(&mut columns, rows, batch.values_mut(column)).ok_or_else(|| {
                let name = D::columns()[column].name;
                let text =
                    format!("block before offset {}: column {name} does not have {rows} rows", self.at);
                io::Error::new(io::ErrorKind::InvalidData, text)
            })?;
        }
        Ok(true)
    }

    /// Reads the next block's columns and returns its rows; `None` at the end.
    fn block(&mut self) -> io::Result<Option<usize>> {
        let left = self.length.saturating_sub(self.at);
        if self.torn > 0 || left < BLOCK_HEADER as u64 {
            self.torn = self.torn.max(left);
            return Ok(None);
        }
        let mut header = [0; BLOCK_HEADER];
        self.file.read_exact(&mut header)?;
        let [a, b, c, d, e, f, g, h, expected @ ..] = header;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        let rows = u32::from_le_bytes([e, f, g, h]);
        if length > MAX_BLOCK_LENGTH
            || length as u64 > left - BLOCK_HEADER as u64
            || rows as usize > PAGE_ROWS
        {
            self.torn = left;
            return Ok(None);
        }
        self.block.resize(length, 0);
        self.file.read_exact(&mut self.block)?;
        if checksum(&self.block, self.at, rows) != u64::from_le_bytes(expected) {
            self.torn = left;
            return Ok(None);
        }
        self.at += (BLOCK_HEADER + length) as u64;
        Ok(Some(rows as usize))
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

fn checksum(columns: &[u8], offset: u64, rows: u32) -> u64 {
    xxh3_64_with_seed(columns, offset ^ u64::from(rows) << 40)
}

/// Declares the encoding of one type: differences from the minimum, in as few bytes as needed.
macro_rules! differences {
    ($encode:ident, $decode:ident, $type:ty; $($narrow:ty),*) => {
        fn $encode(values: impl ExactSizeIterator<Item = $type> + Clone, block: &mut Vec<u8>) {
            let bounds = values.clone().fold((<$type>::MAX, <$type>::MIN), |(min, max), value| {
                (min.min(value), max.max(value))
            });
            let (min, span) = (bounds.0, bounds.1.wrapping_sub(bounds.0));
            block.push(0);
            let width_at = block.len() - 1;
            block.extend_from_slice(&(min as u128).to_le_bytes());
            if span == 0 || values.len() == 0 {
                return;
            }
            $(
                if span as u128 <= <$narrow>::MAX as u128 {
                    const WIDTH: usize = size_of::<$narrow>();
                    block[width_at] = WIDTH as u8;
                    let from = block.len();
                    block.resize(from + values.len() * WIDTH, 0);
                    let positions = block[from..].as_chunks_mut::<WIDTH>().0;
                    for (position, value) in positions.iter_mut().zip(values) {
                        *position = (value.wrapping_sub(min) as $narrow).to_le_bytes();
                    }
                    return;
                }
            )*
            unreachable!("the last width holds every difference");
        }

        fn $decode<'a>(
            columns: &mut &'a [u8],
            rows: usize,
        ) -> Option<impl Iterator<Item = $type> + use<'a>> {
            let header = columns.split_off(..COLUMN_HEADER)?;
            let width = usize::from(header[0]);
            let mut min = [0; 16];
            min.copy_from_slice(&header[1..]);
            let min = u128::from_le_bytes(min) as $type;
            if width > size_of::<$type>() {
                return None;
            }
            let differences = columns.split_off(..rows * width)?;
            Some((0..rows).map(move |row| {
                let mut bytes = [0; size_of::<$type>()];
                bytes[..width].copy_from_slice(&differences[row * width..][..width]);
                min.wrapping_add(<$type>::from_le_bytes(bytes))
            }))
        }
    };
}

differences!(encode_u8, decode_u8, u8; u8);
differences!(encode_u16, decode_u16, u16; u8, u16);
differences!(encode_u32, decode_u32, u32; u8, u16, u32);
differences!(encode_u64, decode_u64, u64; u8, u16, u32, u64);
differences!(encode_u128, decode_u128, u128; u8, u16, u32, u64, u128);

fn encode(values: Values<'_>, split: &mut Split, block: &mut Vec<u8>) {
    match values {
        // In practice all times are after 1970, so their differences are as small when unsigned.
        Values::Timestamp(values) => encode_u64(values.iter().map(|&value| value as u64), block),
        Values::Address(values) => encode_addresses(values, split, block),
        Values::Format(values) => encode_u8(values.iter().map(|&value| value as u8), block),
        Values::Text(values) => encode_texts(values, block),
        Values::U8(values) => encode_u8(values.iter().copied(), block),
        Values::U16(values) => encode_u16(values.iter().copied(), block),
        Values::U32(values) => encode_u32(values.iter().copied(), block),
        Values::U64(values) => encode_u64(values.iter().copied(), block),
        Values::Name(values) => encode_names(values, block),
        Values::Mac(values) => encode_u64(values.iter().map(|mac| mac.number()), block),
        Values::Labels(values) => encode_labels(values, block),
        Values::Unset(kind, rows) => encode_unset(kind, rows, block),
    }
}

/// Encodes rows without a value, as a constant column.
fn encode_unset(kind: Kind, rows: usize, block: &mut Vec<u8>) {
    match kind {
        Kind::Address => {
            block.extend_from_slice(&(rows as u32).to_le_bytes());
            encode_u128([Address::NONE.0].into_iter(), block);
        }
        Kind::Name => encode_names(&[Name::NONE], block),
        Kind::Labels => block.push(0),
        _ => encode_u64([0].into_iter(), block),
    }
}

fn encode_names(values: &[Name], block: &mut Vec<u8>) {
    let mut positions = HashMap::new();
    let mut entries = Vec::new();
    let mut ids = Vec::with_capacity(values.len());
    for &value in values {
        ids.push(*positions.entry(value).or_insert_with(|| {
            entries.push(value.text());
            entries.len() as u32 - 1
        }));
    }
    block.extend_from_slice(&(entries.len() as u32).to_le_bytes());
    for entry in entries {
        block.push(entry.len() as u8);
        block.extend_from_slice(entry.as_bytes());
    }
    encode_u32(ids.into_iter(), block);
}

/// Decodes names. One that is not known to this process is none if there are too many.
fn decode_names(columns: &mut &[u8], rows: usize, values: &mut Sparse<Name>) -> Option<()> {
    let count = u32::from_le_bytes(*columns.split_off(..4)?.first_chunk()?);
    let mut entries = Vec::new();
    for _ in 0..count {
        let length = columns.split_off(..1)?[0];
        let text = std::str::from_utf8(columns.split_off(..usize::from(length))?).ok()?;
        entries.push(Name::of(text).unwrap_or_default());
    }
    for position in decode_u32(columns, rows)? {
        values.push(*entries.get(position as usize)?);
    }
    Some(())
}

fn encode_labels(values: &[LabelStack], block: &mut Vec<u8>) {
    block.push(1);
    values.iter().for_each(|stack| block.extend_from_slice(stack.0.as_flattened()));
}

fn decode_labels(columns: &mut &[u8], rows: usize, values: &mut Sparse<LabelStack>) -> Option<()> {
    if columns.split_off(..1)? == [0] {
        values.resize(values.len() + rows);
        return Some(());
    }
    for _ in 0..rows {
        let mut stack = LabelStack::default();
        stack.0.as_flattened_mut().copy_from_slice(columns.split_off(..3 * MAX_LABELS)?);
        values.push(stack);
    }
    Some(())
}

/// Appends the values of a sparse column; `None` if the data is malformed.
fn decode_sparse(columns: &mut &[u8], rows: usize, column: SparseMut<'_>) -> Option<()> {
    match column {
        SparseMut::Address(values) => {
            let mut addresses = Vec::new();
            decode_addresses(columns, rows, &mut addresses)?;
            values.extend(addresses);
        }
        SparseMut::U8(values) => values.extend(decode_u8(columns, rows)?),
        SparseMut::U16(values) => values.extend(decode_u16(columns, rows)?),
        SparseMut::U32(values) => values.extend(decode_u32(columns, rows)?),
        SparseMut::U64(values) => values.extend(decode_u64(columns, rows)?),
        SparseMut::Mac(values) => values.extend(decode_u64(columns, rows)?.map(Mac::from_number)),
        SparseMut::Name(values) => decode_names(columns, rows, values)?,
        SparseMut::Labels(values) => decode_labels(columns, rows, values)?,
    }
    Some(())
}

fn encode_texts(values: &[Text], block: &mut Vec<u8>) {
    encode_u16(values.iter().map(|value| shortened(value).len() as u16), block);
    values.iter().for_each(|value| block.extend_from_slice(shortened(value).as_bytes()));
}

/// Returns the part of a text that a block holds.
fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

fn decode_texts(columns: &mut &[u8], rows: usize, values: &mut Vec<Text>) -> Option<()> {
    let lengths: Vec<u16> = decode_u16(columns, rows)?.collect();
    for length in lengths {
        values.push(std::str::from_utf8(columns.split_off(..usize::from(length))?).ok()?.into());
    }
    Some(())
}

fn encode_addresses(values: &[Address], split: &mut Split, block: &mut Vec<u8>) {
    split.assign(values);
    let Split { v4, others, positions } = split;
    block.extend_from_slice(&(others.len() as u32).to_le_bytes());
    if others.len() < values.len() {
        encode_u32(v4.iter().copied(), block);
    }
    if !positions.is_empty() {
        encode_u32(positions.iter().copied(), block);
    }
    if !others.is_empty() {
        encode_u128(others.iter().copied(), block);
    }
}

fn decode_addresses(columns: &mut &[u8], rows: usize, values: &mut Vec<Address>) -> Option<()> {
    let others = u32::from_le_bytes(*columns.split_off(..4)?.first_chunk()?) as usize;
    if others > 0 && others == rows {
        values.extend(decode_u128(columns, rows)?.map(Address));
        return Some(());
    }
    let from = values.len();
    if rows > 0 {
        values.extend(decode_u32(columns, rows)?.map(Address::v4));
    }
    if others > 0 {
        let positions = decode_u32(columns, others)?;
        for (position, other) in positions.zip(decode_u128(columns, others)?) {
            *values[from..].get_mut(position as usize)? = Address(other);
        }
    }
    Some(())
}

/// Appends a column's values; `None` if the data is malformed.
fn decode(columns: &mut &[u8], rows: usize, values: ValuesMut<'_>) -> Option<()> {
    match values {
        ValuesMut::Timestamp(values) => {
            values.extend(decode_u64(columns, rows)?.map(|value| value as i64));
        }
        ValuesMut::Address(values) => decode_addresses(columns, rows, values)?,
        ValuesMut::Format(values) => {
            for number in decode_u8(columns, rows)? {
                values.push(*Format::ALL.get(usize::from(number))?);
            }
        }
        ValuesMut::Text(values) => decode_texts(columns, rows, values)?,
        ValuesMut::U8(values) => values.extend(decode_u8(columns, rows)?),
        ValuesMut::U16(values) => values.extend(decode_u16(columns, rows)?),
        ValuesMut::U32(values) => values.extend(decode_u32(columns, rows)?),
        ValuesMut::U64(values) => values.extend(decode_u64(columns, rows)?),
        ValuesMut::Sparse(column) => decode_sparse(columns, rows, column)?,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use thalweg_wire::flow_export::{Record, RecordBatch};

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
