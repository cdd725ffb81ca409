//! Column chunks encoded here rather than by the `parquet` crate, whose writer looks every value up in a dictionary.
//!
//! Numbers are differences in as many bits as they need and are not compressed: flows come in the order of a hash, so
//! that there is nothing else to be saved. Addresses are in a dictionary, made once for each address of a row group,
//! and compressed.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use thalweg_wire::flow_export::Address;

use super::super::table::Values;
use super::pack;

/// Rows of a page.
const PAGE: usize = 1 << 16;
/// The fastest level of zstd but those that hardly compress.
const LEVEL: i32 = 1;

/// Makes column chunks.
pub(super) struct Encoder {
    zstd: zstd::bulk::Compressor<'static>,
    dictionary: Dictionary,
}

/// A column chunk and what the row group's metadata say of it.
pub(super) struct Chunk {
    pub(super) bytes: Bytes,
    pub(super) close: ColumnCloseResult,
}

/// A page before compression.
struct Plain {
    encoding: Encoding,
    /// Values, or entries of the dictionary.
    count: usize,
    bytes: Vec<u8>,
}

impl Encoder {
    pub(super) fn new() -> Encoder {
        let zstd = zstd::bulk::Compressor::new(LEVEL).expect("a level that zstd has");
        Encoder { zstd, dictionary: Dictionary::default() }
    }

    /// A chunk of all values.
    pub(super) fn chunk(&mut self, column: ColumnDescPtr, values: &Values<'_>) -> Result<Chunk> {
        let (mut dictionary, mut pages) = (None, Vec::new());
        match values {
            Values::Address(addresses) => {
                self.dictionary.number_all(addresses);
                let width = usize::BITS - self.dictionary.entries.len().saturating_sub(1).leading_zeros();
                pages.extend(self.dictionary.indices.chunks(PAGE).map(|indices| {
                    let mut bytes = vec![width as u8];
                    pack::run(indices.iter().map(|&index| index.into()), indices.len(), width, &mut bytes);
                    Plain { encoding: Encoding::RLE_DICTIONARY, count: indices.len(), bytes }
                }));
                let count = self.dictionary.entries.len();
                dictionary = Some(Plain { encoding: Encoding::PLAIN, count, bytes: self.dictionary.texts() });
            }
            Values::Number(numbers) => pages.extend(numbers.chunks(PAGE).map(differences)),
            Values::Count(counts) | Values::Time(counts) => {
                pages.extend(counts.chunks(PAGE).map(differences))
            }
            Values::Flag(flags) => pages.extend(flags.chunks(PAGE).map(|flags| {
                let mut bytes = Vec::new();
                pack::bits(flags.iter().map(|&flag| flag.into()), 1, &mut bytes);
                Plain { encoding: Encoding::PLAIN, count: flags.len(), bytes }
            })),
            Values::Ratio(ratios) => pages.extend(ratios.chunks(PAGE).map(nullable)),
        }
        self.write(column, dictionary, pages)
    }

    fn write(
        &mut self,
        column: ColumnDescPtr,
        dictionary: Option<Plain>,
        pages: Vec<Plain>,
    ) -> Result<Chunk> {
        let compressed = dictionary.is_some();
        let encoding = pages.first().map_or(Encoding::PLAIN, |page| page.encoding);
        let values: usize = pages.iter().map(|page| page.count).sum();
        let (mut sink, mut uncompressed) = (TrackedWrite::new(Vec::new()), 0);
        let mut data_page_offset = None;
        let pages = pages.into_iter().map(|page| (page, false));
        for (plain, of_dictionary) in dictionary.map(|page| (page, true)).into_iter().chain(pages) {
            if !of_dictionary {
                data_page_offset.get_or_insert(sink.bytes_written() as i64);
            }
            let size = plain.bytes.len();
            let bytes = if compressed { self.zstd.compress(&plain.bytes)? } else { plain.bytes };
            let page = page(of_dictionary, plain.encoding, plain.count, bytes.into());
            let written = SerializedPageWriter::new(&mut sink).write_page(CompressedPage::new(page, size))?;
            uncompressed += written.uncompressed_size;
        }
        let bytes = Bytes::from(sink.into_inner()?);
        let codec = if compressed {
            Compression::ZSTD(ZstdLevel::try_new(LEVEL)?)
        } else {
            Compression::UNCOMPRESSED
        };
        let metadata = ColumnChunkMetaData::builder(column)
            .set_compression(codec)
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, encoding])
            .set_num_values(values as i64)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(uncompressed as i64)
            .set_dictionary_page_offset(compressed.then_some(0))
            .set_data_page_offset(
                data_page_offset.ok_or_else(|| ParquetError::General("no rows to write".to_owned()))?,
            )
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: values as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok(Chunk { bytes, close })
    }
}

/// A page in the crate's words.
fn page(of_dictionary: bool, encoding: Encoding, count: usize, buf: Bytes) -> Page {
    let num_values = count as u32;
    match of_dictionary {
        true => Page::DictionaryPage { buf, num_values, encoding, is_sorted: false },
        false => Page::DataPage {
            buf,
            num_values,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        },
    }
}

fn differences<T: Copy + Into<i64>>(values: &[T]) -> Plain {
    let mut bytes = Vec::with_capacity(size_of_val(values) / 2);
    pack::differences(values, &mut bytes);
    Plain { encoding: Encoding::DELTA_BINARY_PACKED, count: values.len(), bytes }
}

/// Definition levels and those values that are there.
fn nullable(values: &[Option<f64>]) -> Plain {
    let mut bytes = vec![0; 4];
    pack::run(values.iter().map(|value| value.is_some().into()), values.len(), 1, &mut bytes);
    let levels = bytes.len() as u32 - 4;
    bytes[..4].copy_from_slice(&levels.to_le_bytes());
    bytes.extend(values.iter().flatten().flat_map(|value| value.to_le_bytes()));
    Plain { encoding: Encoding::PLAIN, count: values.len(), bytes }
}

/// Addresses numbered in the order in which they come.
#[derive(Default)]
struct Dictionary {
    entries: Vec<Address>,
    /// Open addressing: the number of an entry plus one, or 0.
    slots: Vec<u32>,
    indices: Vec<u32>,
}

impl Dictionary {
    /// Numbers each address; entries are those of these addresses alone.
    fn number_all(&mut self, addresses: &[Address]) {
        let bits = (2 * addresses.len()).next_power_of_two().ilog2().max(1);
        self.entries.clear();
        self.slots.clear();
        self.slots.resize(1 << bits, 0);
        self.indices.clear();
        let (mut last, mut number) = (None, 0);
        for &address in addresses {
            // Flows of one pair of hosts come one after another.
            if last != Some(address) {
                number = self.number(address, bits);
                last = Some(address);
            }
            self.indices.push(number);
        }
    }

    #[inline]
    fn number(&mut self, address: Address, bits: u32) -> u32 {
        let folded = (address.0 as u64 ^ (address.0 >> 64) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut at = (folded >> (64 - bits)) as usize;
        loop {
            match self.slots[at] {
                0 => {
                    self.entries.push(address);
                    self.slots[at] = self.entries.len() as u32;
                    return self.slots[at] - 1;
                }
                number if self.entries[number as usize - 1] == address => return number - 1,
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
    }

    /// The entries as plain values: length and text.
    fn texts(&self) -> Vec<u8> {
        use std::io::Write;
        let mut bytes = Vec::with_capacity(self.entries.len() * 20);
        for entry in &self.entries {
            let start = bytes.len();
            bytes.extend([0; 4]);
            match entry.as_v4() {
                Some(number) => dotted_decimal(number, &mut bytes),
                None => write!(bytes, "{entry}").expect("memory takes all"),
            }
            let length = (bytes.len() - start - 4) as u32;
            bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
        }
        bytes
    }
}

fn dotted_decimal(number: u32, out: &mut Vec<u8>) {
    for (at, byte) in number.to_be_bytes().into_iter().enumerate() {
        if at > 0 {
            out.push(b'.');
        }
        if byte >= 100 {
            out.push(b'0' + byte / 100);
        }
        if byte >= 10 {
            out.push(b'0' + byte / 10 % 10);
        }
        out.push(b'0' + byte % 10);
    }
}
