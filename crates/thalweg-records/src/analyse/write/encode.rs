//! Encodes column chunks. The `parquet` crate's writer would look up every value in a dictionary.
//!
//! Numbers are bit-packed differences, not compressed: flows are in hash order, so compression saves nothing. Addresses
//! use a compressed dictionary per row group; their indices are bit-packed and stored uncompressed. Pages are encoded as
//! rows arrive, while their columns are in the cache.

use std::mem;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::schema::types::ColumnDescPtr;
use thalweg_wire::flow_export::Address;

use super::super::table::Values;
use crate::schema::{self, Kind};
use crate::store::parquet::compress::{self, Zstd};
use crate::store::parquet::dictionary::Dictionary;
use crate::store::parquet::pages::{Encoded, Pages};
use crate::store::parquet::{PAGE_ROWS, delta, hybrid, pack};

/// The fastest zstd level with a useful compression ratio.
const LEVEL: i32 = 1;

/// Buffers shared by all columns of a file.
pub(super) struct Scratch {
    zstd: Zstd,
    numbers: Vec<u32>,
    page: Vec<u8>,
}

impl Scratch {
    pub(super) fn new() -> Result<Scratch> {
        Ok(Scratch { zstd: Zstd::new(LEVEL)?, numbers: Vec::new(), page: Vec::new() })
    }
}

/// One column chunk.
pub(super) struct Chunk {
    column: ColumnDescPtr,
    /// Only for addresses.
    dictionary: Option<Dictionary>,
    pages: Pages,
    /// Encoding of the data pages.
    encoding: Encoding,
}

impl Chunk {
    pub(super) fn new(column: ColumnDescPtr, values: &Values<'_>) -> Chunk {
        let is_address = matches!(values, Values::Address(_));
        Chunk {
            column,
            dictionary: is_address.then(|| Dictionary::new(Kind::Address)),
            pages: Pages::new(),
            encoding: Encoding::PLAIN,
        }
    }

    /// Adds values.
    pub(super) fn add(&mut self, values: &Values<'_>, scratch: &mut Scratch) -> Result<()> {
        match values {
            Values::Address(addresses) => {
                let Chunk { dictionary, pages, encoding, .. } = self;
                let dictionary = dictionary.as_mut().expect("exists for addresses");
                *encoding = Encoding::RLE_DICTIONARY;
                for addresses in addresses.chunks(PAGE_ROWS) {
                    encode_indices(addresses, dictionary, scratch);
                    let stored = compress::store(&scratch.page);
                    pages.add(addresses.len(), *encoding, stored, scratch.page.len())?;
                }
                Ok(())
            }
            Values::Number(numbers) => self.add_uncompressed(numbers, scratch, encode_differences),
            Values::Count(counts) | Values::Time(counts) => {
                self.add_uncompressed(counts, scratch, encode_differences)
            }
            Values::Flag(flags) => self.add_uncompressed(flags, scratch, encode_flags),
            Values::Ratio(ratios) => self.add_uncompressed(ratios, scratch, encode_optional),
        }
    }

    /// Adds uncompressed pages.
    fn add_uncompressed<T>(
        &mut self,
        values: &[T],
        scratch: &mut Scratch,
        encode: impl Fn(&[T], &mut Vec<u32>, &mut Vec<u8>) -> Encoding,
    ) -> Result<()> {
        for values in values.chunks(PAGE_ROWS) {
            scratch.page.clear();
            self.encoding = encode(values, &mut scratch.numbers, &mut scratch.page);
            let page = Bytes::from(mem::take(&mut scratch.page));
            self.pages.add(values.len(), self.encoding, page.clone(), page.len())?;
            scratch.page = page.try_into_mut().map(Vec::from).unwrap_or_default();
        }
        Ok(())
    }

    /// Closes the column and returns its footer entry; [`encoded`](Chunk::encoded) then has its bytes.
    pub(super) fn close(&mut self, scratch: &mut Scratch) -> Result<ColumnCloseResult> {
        let codec = match &self.dictionary {
            Some(dictionary) => {
                self.pages.set_dictionary(dictionary, &mut scratch.zstd)?;
                Compression::ZSTD(scratch.zstd.level())
            }
            None => Compression::UNCOMPRESSED,
        };
        let encodings = vec![Encoding::PLAIN, Encoding::RLE, self.encoding];
        self.pages.close(self.column.clone(), codec, encodings, None)
    }

    /// Returns the bytes of a closed column.
    pub(super) fn encoded(&self) -> Encoded<'_> {
        self.pages.encoded()
    }

    /// Starts the next row group, reusing memory.
    pub(super) fn begin(&mut self) -> Result<()> {
        self.dictionary.iter_mut().for_each(Dictionary::clear);
        self.pages.clear()
    }
}

/// Encodes a page of dictionary indices.
fn encode_indices(addresses: &[Address], dictionary: &mut Dictionary, scratch: &mut Scratch) {
    let Scratch { numbers, page, .. } = scratch;
    numbers.clear();
    dictionary.number(schema::Values::Address(addresses), numbers);
    let width = dictionary.width();
    page.clear();
    page.push(width as u8);
    hybrid::encode(numbers, width, page);
}

fn encode_differences<T: Copy + Into<i64>>(values: &[T], _: &mut Vec<u32>, page: &mut Vec<u8>) -> Encoding {
    delta::encode(values, page);
    Encoding::DELTA_BINARY_PACKED
}

fn encode_flags(flags: &[bool], numbers: &mut Vec<u32>, page: &mut Vec<u8>) -> Encoding {
    numbers.clear();
    numbers.extend(flags.iter().map(|&flag| u32::from(flag)));
    numbers.resize(flags.len().next_multiple_of(8), 0);
    pack::pack(numbers, 1, page);
    Encoding::PLAIN
}

/// Encodes definition levels and the values present.
fn encode_optional(values: &[Option<f64>], numbers: &mut Vec<u32>, page: &mut Vec<u8>) -> Encoding {
    numbers.clear();
    numbers.extend(values.iter().map(|value| u32::from(value.is_some())));
    page.extend([0; 4]);
    hybrid::encode(numbers, 1, page);
    let levels = page.len() as u32 - 4;
    page[..4].copy_from_slice(&levels.to_le_bytes());
    page.extend(values.iter().flatten().flat_map(|value| value.to_le_bytes()));
    Encoding::PLAIN
}
