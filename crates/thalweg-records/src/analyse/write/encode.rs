//! Column chunks encoded here rather than by the `parquet` crate, whose writer looks every value up in a dictionary.
//!
//! Numbers are differences in as many bits as they need and are not compressed: flows come in the order of a hash, so
//! that there is nothing else to be saved. Addresses are in a dictionary, made once for each address of a row group,
//! and compressed; their numbers are packed to the last bit and stored. Pages are encoded as the store's.

use std::mem;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use thalweg_wire::flow_export::Address;

use super::super::table::Values;
use crate::schema::{self, Kind};
use crate::store::parquet::compress::{self, Zstd};
use crate::store::parquet::dictionary::Dictionary;
use crate::store::parquet::{delta, hybrid, pack};

/// Rows of a page.
const PAGE: usize = 1 << 15;
/// The fastest level of zstd but those that hardly compress.
const LEVEL: i32 = 1;

/// Makes column chunks.
pub(super) struct Encoder {
    zstd: Zstd,
    dictionary: Dictionary,
    numbers: Vec<u32>,
    page: Vec<u8>,
    /// The memory of chunks that were written.
    spare: Vec<u8>,
}

/// A column chunk and what the row group's metadata say of it.
pub(super) struct Chunk {
    pub(super) bytes: Bytes,
    pub(super) close: ColumnCloseResult,
}

/// Pages of a chunk, one after another.
struct Pages {
    sink: TrackedWrite<Vec<u8>>,
    uncompressed: usize,
    /// Values in data pages.
    values: usize,
    encoding: Encoding,
}

impl Encoder {
    pub(super) fn new() -> Result<Encoder> {
        Ok(Encoder {
            zstd: Zstd::new(LEVEL)?,
            dictionary: Dictionary::new(Kind::Address),
            numbers: Vec::new(),
            page: Vec::new(),
            spare: Vec::new(),
        })
    }

    /// Memory for the next chunk.
    pub(super) fn recycle(&mut self, chunk: Bytes) {
        if let Ok(mut memory) = chunk.try_into_mut().map(Vec::from) {
            memory.clear();
            self.spare = memory;
        }
    }

    /// A chunk of all values.
    pub(super) fn chunk(&mut self, column: ColumnDescPtr, values: &Values<'_>) -> Result<Chunk> {
        let sink = TrackedWrite::new(mem::take(&mut self.spare));
        let mut pages = Pages { sink, uncompressed: 0, values: 0, encoding: Encoding::PLAIN };
        match values {
            Values::Address(addresses) => return self.addresses(column, addresses, pages),
            Values::Number(numbers) => self.pages(numbers, &mut pages, differences)?,
            Values::Count(counts) | Values::Time(counts) => self.pages(counts, &mut pages, differences)?,
            Values::Flag(flags) => self.pages(flags, &mut pages, bits)?,
            Values::Ratio(ratios) => self.pages(ratios, &mut pages, nullable)?,
        }
        pages.finish(column, Compression::UNCOMPRESSED, None)
    }

    /// Pages that are not compressed.
    fn pages<T>(
        &mut self,
        values: &[T],
        pages: &mut Pages,
        encode: impl Fn(&[T], &mut Vec<u32>, &mut Vec<u8>) -> Encoding,
    ) -> Result<()> {
        for values in values.chunks(PAGE) {
            self.page.clear();
            let encoding = encode(values, &mut self.numbers, &mut self.page);
            let bytes = Bytes::from(mem::take(&mut self.page));
            let size = bytes.len();
            let bytes = pages.data(values.len(), encoding, bytes, size)?;
            self.page = bytes.try_into_mut().map(Vec::from).unwrap_or_default();
        }
        Ok(())
    }

    /// The dictionary has to stand before the pages that fill it.
    fn addresses(&mut self, column: ColumnDescPtr, addresses: &[Address], mut pages: Pages) -> Result<Chunk> {
        self.dictionary.clear();
        let mut numbered = Vec::new();
        for addresses in addresses.chunks(PAGE) {
            self.numbers.clear();
            self.dictionary.number(schema::Values::Address(addresses), &mut self.numbers);
            let width = self.dictionary.width();
            let mut page = vec![width as u8];
            hybrid::encode(&mut self.numbers, width, &mut page);
            numbered.push((addresses.len(), page));
        }
        let plain = self.dictionary.plain();
        let compressed = self.zstd.compress(plain)?;
        pages.dictionary(self.dictionary.entries(), compressed, plain.len())?;
        let data = pages.sink.bytes_written() as i64;
        for (count, page) in numbered {
            pages.data(count, Encoding::RLE_DICTIONARY, compress::store(&page), page.len())?;
        }
        pages.finish(column, Compression::ZSTD(self.zstd.level()), Some(data))
    }
}

impl Pages {
    fn dictionary(&mut self, entries: u32, buf: Bytes, size: usize) -> Result<()> {
        let encoding = Encoding::PLAIN;
        self.write(Page::DictionaryPage { buf, num_values: entries, encoding, is_sorted: false }, size)
    }

    /// Adds a page; gives its bytes back.
    fn data(&mut self, count: usize, encoding: Encoding, buf: Bytes, size: usize) -> Result<Bytes> {
        self.values += count;
        self.encoding = encoding;
        let page = Page::DataPage {
            buf: buf.clone(),
            num_values: count as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        self.write(page, size)?;
        Ok(buf)
    }

    fn write(&mut self, page: Page, size: usize) -> Result<()> {
        let mut writer = SerializedPageWriter::new(&mut self.sink);
        self.uncompressed += writer.write_page(CompressedPage::new(page, size))?.uncompressed_size;
        Ok(())
    }

    /// The chunk; `data` is where its data pages begin if a dictionary stands before them.
    fn finish(self, column: ColumnDescPtr, codec: Compression, data: Option<i64>) -> Result<Chunk> {
        let bytes = Bytes::from(self.sink.into_inner()?);
        let metadata = ColumnChunkMetaData::builder(column)
            .set_compression(codec)
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, self.encoding])
            .set_num_values(self.values as i64)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(self.uncompressed as i64)
            .set_dictionary_page_offset(data.map(|_| 0))
            .set_data_page_offset(data.unwrap_or(0))
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: self.values as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok(Chunk { bytes, close })
    }
}

fn differences<T: Copy + Into<i64>>(values: &[T], _: &mut Vec<u32>, page: &mut Vec<u8>) -> Encoding {
    delta::encode(values, page);
    Encoding::DELTA_BINARY_PACKED
}

fn bits(flags: &[bool], numbers: &mut Vec<u32>, page: &mut Vec<u8>) -> Encoding {
    numbers.clear();
    numbers.extend(flags.iter().map(|&flag| u32::from(flag)));
    numbers.resize(flags.len().next_multiple_of(8), 0);
    pack::pack(numbers, 1, page);
    Encoding::PLAIN
}

/// Definition levels and those values that are there.
fn nullable(values: &[Option<f64>], numbers: &mut Vec<u32>, page: &mut Vec<u8>) -> Encoding {
    numbers.clear();
    numbers.extend(values.iter().map(|value| u32::from(value.is_some())));
    page.extend([0; 4]);
    hybrid::encode(numbers, 1, page);
    let levels = page.len() as u32 - 4;
    page[..4].copy_from_slice(&levels.to_le_bytes());
    page.extend(values.iter().flatten().flat_map(|value| value.to_le_bytes()));
    Encoding::PLAIN
}
