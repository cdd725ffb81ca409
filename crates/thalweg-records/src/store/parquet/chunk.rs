//! One column chunk (a column of a row group), encoded page by page.
//!
//! A page holds indices of the dictionary as long as that pays. A column of 64-bit integers (in Parquet) with many
//! distinct values switches to deltas: after the first page if most of its values are distinct, or when the dictionary
//! exceeds [`MAX_DICTIONARY_ENTRIES`]. Addresses and narrow integers always use the dictionary. Pages are compressed until
//! one does not shrink by an eighth; later pages of the row group are stored.

use std::io;

use parquet::basic::{Compression, Encoding};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescPtr;

use thalweg_wire::flow_export::label_stack::MAX_LABELS;
use thalweg_wire::flow_export::{Address, LabelStack, Mac, Name};

use crate::schema::{Kind, Values};

use super::compress::{self, Zstd};
use super::dictionary::Dictionary;
use super::pages::{Encoded, Pages};
use super::{delta, hybrid};

/// Maximum size of a dictionary of 64-bit integers; larger ones cost more than they save.
const MAX_DICTIONARY_ENTRIES: u32 = 1 << 16;

/// Minimum size of a page that decides whether later pages are compressed.
const MIN_TRIAL_BYTES: usize = 1 << 10;

/// Buffers shared by all columns of a file.
pub(super) struct Scratch {
    ids: Vec<u32>,
    numbers: Vec<i64>,
    page: Vec<u8>,
    zstd: Zstd,
}

impl Scratch {
    /// # Errors
    /// If zstd has no such level.
    pub(super) fn new(level: i32) -> io::Result<Scratch> {
        Ok(Scratch { ids: Vec::new(), numbers: Vec::new(), page: Vec::new(), zstd: Zstd::new(level)? })
    }
}

/// One column chunk.
pub(super) struct Chunk {
    kind: Kind,
    descriptor: ColumnDescPtr,
    dictionary: Dictionary,
    /// Whether further pages use deltas.
    uses_deltas: bool,
    /// Whether further data pages are stored, because one did not shrink.
    is_stored: bool,
    /// Minimum and maximum of the values in delta pages.
    bounds: Option<(i64, i64)>,
    pages: Pages,
    indexed_pages: usize,
    delta_pages: usize,
}

impl Chunk {
    pub(super) fn new(kind: Kind, descriptor: ColumnDescPtr) -> Chunk {
        Chunk {
            kind,
            descriptor,
            dictionary: Dictionary::new(kind),
            uses_deltas: false,
            is_stored: false,
            bounds: None,
            pages: Pages::new(),
            indexed_pages: 0,
            delta_pages: 0,
        }
    }

    /// Returns the bytes encoded so far, including the dictionary.
    pub(super) fn bytes(&self) -> usize {
        self.pages.bytes() + self.dictionary.plain().len()
    }

    /// Adds a page. Returns how many values exceeded the range of `INT64`.
    pub(super) fn page(&mut self, values: Values<'_>, scratch: &mut Scratch) -> Result<u64, ParquetError> {
        scratch.page.clear();
        if self.uses_deltas {
            return self.delta_page(values, scratch);
        }
        scratch.ids.clear();
        let constant = is_constant(values);
        let numbered = if constant { first(values) } else { values };
        let above = self.dictionary.number(numbered, &mut scratch.ids);
        if self.is_too_large(values.len()) {
            (self.uses_deltas, self.is_stored) = (true, false);
            if self.indexed_pages == 0 {
                self.dictionary.clear();
                return self.delta_page(values, scratch);
            }
        }
        let width = self.dictionary.width();
        scratch.page.push(width as u8);
        if constant {
            hybrid::run_length(scratch.ids[0], values.len(), width, &mut scratch.page);
        } else {
            hybrid::encode(&mut scratch.ids, width, &mut scratch.page);
        }
        self.indexed_pages += 1;
        self.write_data_page(values.len(), Encoding::RLE_DICTIONARY, scratch)?;
        Ok(if constant { above * values.len() as u64 } else { above })
    }

    /// Returns whether deltas are shorter, judging by the page just numbered.
    fn is_too_large(&self, rows: usize) -> bool {
        let entries = self.dictionary.entries();
        matches!(self.kind, Kind::U32 | Kind::U64 | Kind::Timestamp)
            && (entries > MAX_DICTIONARY_ENTRIES
                || self.indexed_pages == 0 && entries > 256 && entries as usize > rows / 2)
    }

    fn delta_page(&mut self, values: Values<'_>, scratch: &mut Scratch) -> Result<u64, ParquetError> {
        let numbers = &mut scratch.numbers;
        numbers.clear();
        let mut above = 0;
        match values {
            Values::Timestamp(values) => numbers.extend_from_slice(values),
            Values::U32(values) => numbers.extend(values.iter().map(|&value| i64::from(value))),
            Values::U64(values) => numbers.extend(values.iter().map(|&value| {
                above += u64::from(value > i64::MAX as u64);
                value.min(i64::MAX as u64) as i64
            })),
            Values::Unset(_, rows) => numbers.resize(rows, 0),
            values => panic!("deltas do not support {:?}", values.kind()),
        }
        let (min, max) = self.bounds.unwrap_or((i64::MAX, i64::MIN));
        self.bounds =
            Some((numbers.iter().copied().fold(min, i64::min), numbers.iter().copied().fold(max, i64::max)));
        delta::encode(numbers, &mut scratch.page);
        self.delta_pages += 1;
        self.write_data_page(values.len(), Encoding::DELTA_BINARY_PACKED, scratch)?;
        Ok(above)
    }

    fn write_data_page(
        &mut self,
        rows: usize,
        encoding: Encoding,
        scratch: &mut Scratch,
    ) -> Result<(), ParquetError> {
        let buf = match self.is_stored {
            true => compress::store(&scratch.page),
            false => scratch.zstd.compress(&scratch.page)?,
        };
        self.is_stored |= buf.len() > scratch.page.len() / 8 * 7 && scratch.page.len() >= MIN_TRIAL_BYTES;
        self.pages.add(rows, encoding, buf, scratch.page.len())
    }

    /// Closes the column and returns its footer entry; [`encoded`](Chunk::encoded) then has its bytes.
    pub(super) fn close(&mut self, scratch: &mut Scratch) -> Result<ColumnCloseResult, ParquetError> {
        let mut encodings = Vec::new();
        if self.indexed_pages > 0 {
            encodings.extend([Encoding::PLAIN, Encoding::RLE_DICTIONARY]);
            self.pages.set_dictionary(&self.dictionary, &mut scratch.zstd)?;
        }
        if self.delta_pages > 0 {
            encodings.push(Encoding::DELTA_BINARY_PACKED);
        }
        let codec = Compression::ZSTD(scratch.zstd.level());
        self.pages.close(self.descriptor.clone(), codec, encodings, Some(self.statistics()))
    }

    /// Returns the bytes of a closed column.
    pub(super) fn encoded(&self) -> Encoded<'_> {
        self.pages.encoded()
    }

    /// Starts the next row group, reusing memory.
    pub(super) fn begin(&mut self) -> Result<(), ParquetError> {
        self.dictionary.clear();
        self.pages.clear()?;
        (self.uses_deltas, self.is_stored, self.bounds) = (false, false, None);
        (self.indexed_pages, self.delta_pages) = (0, 0);
        Ok(())
    }

    /// Returns minimum and maximum, which let readers skip the row group.
    fn statistics(&self) -> Statistics {
        let plain = self.dictionary.plain();
        match self.kind {
            Kind::Address | Kind::Format | Kind::Text | Kind::Name | Kind::Mac | Kind::Labels => {
                let (min, max) = bounds(texts(plain), None);
                let owned = |text: &[u8]| ByteArray::from(text.to_vec());
                Statistics::byte_array(min.map(owned), max.map(owned), None, Some(0), false)
            }
            Kind::U8 | Kind::U16 => {
                let values = plain.as_chunks::<4>().0.iter().map(|value| i32::from_le_bytes(*value));
                let (min, max) = bounds(values, None);
                Statistics::int32(min, max, None, Some(0), false)
            }
            Kind::Timestamp | Kind::U32 | Kind::U64 => {
                let values = plain.as_chunks::<8>().0.iter().map(|value| i64::from_le_bytes(*value));
                let (min, max) = bounds(values, self.bounds);
                Statistics::int64(min, max, None, Some(0), false)
            }
        }
    }
}

fn bounds<T: Copy + Ord>(values: impl Iterator<Item = T>, others: Option<(T, T)>) -> (Option<T>, Option<T>) {
    let all = values.fold(others, |bounds, value| match bounds {
        Some((min, max)) => Some((min.min(value), max.max(value))),
        None => Some((value, value)),
    });
    all.unzip()
}

/// Returns the strings of a dictionary.
fn texts(mut plain: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = plain.split_first_chunk::<4>()?;
        let (text, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        plain = rest;
        Some(text)
    })
}

/// Returns whether all values are equal, as in most columns of most pages (fields that the exporter does not send).
fn is_constant(values: Values<'_>) -> bool {
    fn all_one<T: Copy + PartialEq>(values: &[T]) -> bool {
        let Some(&first) = values.first() else { return true };
        // In pieces that the compiler compares without branches.
        values.chunks(256).all(|piece| piece.iter().fold(true, |all, &value| all & (value == first)))
    }
    match values {
        Values::Timestamp(values) => all_one(values),
        Values::Address(values) => all_one(values),
        Values::Format(values) => all_one(values),
        Values::Text(values) => values.iter().all(|value| *value == values[0]),
        Values::U8(values) => all_one(values),
        Values::U16(values) => all_one(values),
        Values::U32(values) => all_one(values),
        Values::U64(values) => all_one(values),
        Values::Name(values) => all_one(values),
        Values::Mac(values) => all_one(values),
        Values::Labels(values) => all_one(values),
        Values::Unset(..) => true,
    }
}

/// Returns the first value only.
fn first(values: Values<'_>) -> Values<'_> {
    match values {
        Values::Timestamp(values) => Values::Timestamp(&values[..1]),
        Values::Address(values) => Values::Address(&values[..1]),
        Values::Format(values) => Values::Format(&values[..1]),
        Values::Text(values) => Values::Text(&values[..1]),
        Values::U8(values) => Values::U8(&values[..1]),
        Values::U16(values) => Values::U16(&values[..1]),
        Values::U32(values) => Values::U32(&values[..1]),
        Values::U64(values) => Values::U64(&values[..1]),
        Values::Name(values) => Values::Name(&values[..1]),
        Values::Mac(values) => Values::Mac(&values[..1]),
        Values::Labels(values) => Values::Labels(&values[..1]),
        Values::Unset(kind, _) => unset(kind),
    }
}

/// Returns the value of a row without one, in a sparse column of this kind.
///
/// # Panics
/// If sparse columns cannot have this kind.
pub(crate) fn unset(kind: Kind) -> Values<'static> {
    match kind {
        Kind::Address => Values::Address(&[Address::NONE]),
        Kind::U8 => Values::U8(&[0]),
        Kind::U16 => Values::U16(&[0]),
        Kind::U32 => Values::U32(&[0]),
        Kind::U64 => Values::U64(&[0]),
        Kind::Name => Values::Name(&[Name::NONE]),
        Kind::Mac => Values::Mac(&[Mac::NONE]),
        Kind::Labels => Values::Labels(&[LabelStack([[0; 3]; MAX_LABELS])]),
        Kind::Timestamp | Kind::Format | Kind::Text => unreachable!("no sparse column has {kind:?}"),
    }
}
