//! Reads a column chunk in steps of any size.
//!
//! Dictionary entries are decoded once, so an address is parsed once per entry rather than once per row. Pages in plain,
//! dictionary or delta encoding are decoded here; chunks with other encodings by the `parquet` crate.

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::column::reader::{ColumnReaderImpl, get_column_reader, get_typed_column_reader};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;

use super::delta::Delta;
use super::hybrid::{Decoded, Hybrid};
use super::malformed::Malformed;
use super::value::Value;

/// Number of dictionary indices unpacked at a time.
const INDEX_BUFFER: usize = 1024;
/// Number of values without dictionary that are numbered at a time.
const NUMBERED: usize = 256;
/// Maximum size of a dictionary; larger ones are rejected before they are read.
const MAX_ENTRIES: usize = 1 << 26;

/// Why a chunk cannot be read.
#[derive(Debug)]
pub(super) enum ChunkError {
    /// Error of the `parquet` crate.
    Parquet(ParquetError),
    /// A malformed value or page.
    Malformed(Malformed),
}

impl From<ParquetError> for ChunkError {
    fn from(error: ParquetError) -> ChunkError {
        ChunkError::Parquet(error)
    }
}

impl From<Malformed> for ChunkError {
    fn from(error: Malformed) -> ChunkError {
        ChunkError::Malformed(error)
    }
}

/// Reads the values of a column chunk in order.
pub(super) enum Chunk<V: Value> {
    Pages(Box<Pages<V>>),
    Other(Box<Other<V>>),
}

impl<V: Value> Chunk<V> {
    /// Starts at the first value of a column chunk.
    pub(super) fn new(chunk: &ColumnChunkMetaData, pages: Box<dyn PageReader>) -> Chunk<V> {
        #[expect(deprecated, reason = "old levels may be bit-packed")]
        let own = |encoding| {
            use Encoding::{BIT_PACKED, DELTA_BINARY_PACKED, PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY};
            matches!(
                encoding,
                PLAIN | PLAIN_DICTIONARY | RLE_DICTIONARY | DELTA_BINARY_PACKED | RLE | BIT_PACKED
            )
        };
        match chunk.encodings().all(own) {
            true => Chunk::Pages(Box::new(Pages::new(chunk, pages))),
            false => Chunk::Other(Box::new(Other::new(chunk, pages))),
        }
    }

    /// Reads the next `out.len()` values. Returns the index of the first value outside `range`; later ones are not read.
    pub(super) fn read(&mut self, out: &mut [V], range: &V::Range) -> Result<Option<usize>, ChunkError> {
        match self {
            Chunk::Pages(pages) => pages.read(out, range),
            Chunk::Other(decoded) => decoded.read(out).map(|()| V::outside(out, range)),
        }
    }

    /// Reads the next `out.len()` values as the numbers that `number` assigns.
    pub(super) fn number(
        &mut self,
        number: &mut impl FnMut(V) -> u32,
        out: &mut [u32],
    ) -> Result<(), ChunkError> {
        match self {
            Chunk::Pages(pages) => pages.number(number, out),
            Chunk::Other(decoded) => {
                let mut values = vec![V::default(); out.len()];
                decoded.read(&mut values)?;
                out.iter_mut().zip(values).for_each(|(out, value)| *out = number(value));
                Ok(())
            }
        }
    }
}

/// A chunk of plain, dictionary and delta pages.
pub(super) struct Pages<V> {
    pages: Box<dyn PageReader>,
    nullable: bool,
    dictionary: Vec<V>,
    /// Whether all dictionary entries are in range; unknown until a value is looked up.
    in_range: Option<bool>,
    /// Numbers assigned to the dictionary entries; empty until needed.
    numbers: Vec<u32>,
    page: Option<Page>,
    left: usize,
    values: Values,
    delta: Delta,
    indices: Box<[u32; INDEX_BUFFER]>,
}

/// Read position in a page.
enum Values {
    Plain(usize),
    Dictionary(Hybrid),
    Delta,
}

impl<V: Value> Pages<V> {
    fn new(chunk: &ColumnChunkMetaData, pages: Box<dyn PageReader>) -> Pages<V> {
        Pages {
            pages,
            nullable: chunk.column_descr().max_def_level() > 0,
            dictionary: Vec::new(),
            in_range: None,
            numbers: Vec::new(),
            page: None,
            left: 0,
            values: Values::Plain(0),
            delta: Delta::default(),
            indices: Box::new([0; INDEX_BUFFER]),
        }
    }

    fn read(&mut self, out: &mut [V], range: &V::Range) -> Result<Option<usize>, ChunkError> {
        let mut done = 0;
        while done < out.len() {
            let count = self.ready(out.len() - done)?;
            let now = &mut out[done..done + count];
            let bytes = self.page.as_ref().expect("the page has values left").buffer();
            let in_range = match &mut self.values {
                Values::Dictionary(indices) => {
                    look_up(&self.dictionary, indices, bytes, &mut *self.indices, now)?;
                    *self.in_range.get_or_insert_with(|| V::outside(&self.dictionary, range).is_none())
                }
                values => {
                    values.read(&mut self.delta, bytes, now)?;
                    false
                }
            };
            if !in_range && let Some(at) = V::outside(now, range) {
                return Ok(Some(done + at));
            }
            self.left -= count;
            done += count;
        }
        Ok(None)
    }

    fn number(&mut self, number: &mut impl FnMut(V) -> u32, mut out: &mut [u32]) -> Result<(), ChunkError> {
        while !out.is_empty() {
            let count = self.ready(out.len().min(NUMBERED))?;
            let (now, later) = out.split_at_mut(count);
            let bytes = self.page.as_ref().expect("the page has values left").buffer();
            match &mut self.values {
                Values::Dictionary(indices) => {
                    if self.numbers.is_empty() {
                        self.numbers.extend(self.dictionary.iter().map(|&value| number(value)));
                    }
                    look_up(&self.numbers, indices, bytes, &mut *self.indices, now)?;
                }
                values => {
                    let mut buffer = [V::default(); NUMBERED];
                    values.read(&mut self.delta, bytes, &mut buffer[..count])?;
                    now.iter_mut().zip(buffer).for_each(|(out, value)| *out = number(value));
                }
            }
            self.left -= count;
            out = later;
        }
        Ok(())
    }

    /// Moves to the next page if necessary. Returns the number of values available, at max `max`.
    #[inline]
    fn ready(&mut self, max: usize) -> Result<usize, ChunkError> {
        while self.left == 0 {
            self.next_page()?;
        }
        Ok(self.left.min(max))
    }

    fn next_page(&mut self) -> Result<(), ChunkError> {
        let page = self.pages.get_next_page()?.ok_or(Malformed("more pages in the column chunk"))?;
        let (encoding, values) = match &page {
            Page::DictionaryPage { buf, num_values, .. } => {
                let entries = *num_values as usize;
                if entries > MAX_ENTRIES || entries > buf.len() {
                    return Err(Malformed("a dictionary of the stated length").into());
                }
                self.dictionary.clear();
                self.in_range = None;
                self.numbers.clear();
                self.dictionary.resize(entries, V::default());
                V::plain(buf, 0, &mut self.dictionary)?;
                return Ok(());
            }
            Page::DataPage { buf, num_values, encoding, .. } => {
                let levels = match self.nullable {
                    true => check_no_nulls(buf, *num_values as usize)?,
                    false => 0,
                };
                (*encoding, levels)
            }
            Page::DataPageV2 { encoding, num_nulls, def_levels_byte_len, rep_levels_byte_len, .. } => {
                if *num_nulls > 0 {
                    return Err(Malformed(NO_NULLS).into());
                }
                (*encoding, *def_levels_byte_len as usize + *rep_levels_byte_len as usize)
            }
        };
        self.values = match encoding {
            Encoding::PLAIN => Values::Plain(values),
            Encoding::DELTA_BINARY_PACKED => {
                self.delta.begin(page.buffer(), values)?;
                Values::Delta
            }
            _ => match page.buffer().get(values) {
                Some(&width) => Values::Dictionary(Hybrid::new(width.into(), values + 1)?),
                None if page.num_values() == 0 => Values::Plain(values),
                None => return Err(Malformed("the width of dictionary indices").into()),
            },
        };
        self.left = page.num_values() as usize;
        self.page = Some(page);
        Ok(())
    }
}

impl Values {
    /// Reads values from a page without dictionary.
    fn read<V: Value>(&mut self, delta: &mut Delta, bytes: &[u8], out: &mut [V]) -> Result<(), Malformed> {
        match self {
            Values::Plain(at) => *at = V::plain(bytes, *at, out)?,
            Values::Delta => V::differences(delta, bytes, out)?,
            Values::Dictionary(_) => unreachable!("indices are looked up"),
        }
        Ok(())
    }
}

/// Looks up the next indices in the dictionary, or in a table with its length.
#[inline]
fn look_up<V: Copy>(
    dictionary: &[V],
    indices: &mut Hybrid,
    bytes: &[u8],
    buffer: &mut [u32],
    mut out: &mut [V],
) -> Result<(), Malformed> {
    const BEYOND: Malformed = Malformed("dictionary indices within the dictionary");
    while !out.is_empty() {
        let room = buffer.len().min(out.len());
        // A run may be longer than the buffer, because it is not expanded.
        let decoded = indices.next(bytes, &mut buffer[..room])?;
        let count = match decoded {
            Decoded::Repeated(_, count) | Decoded::Literal(count) => count,
        };
        let (now, later) = out.split_at_mut(count);
        match decoded {
            Decoded::Repeated(index, _) => now.fill(*dictionary.get(index as usize).ok_or(BEYOND)?),
            Decoded::Literal(_) => {
                for (value, &index) in now.iter_mut().zip(&*buffer) {
                    *value = *dictionary.get(index as usize).ok_or(BEYOND)?;
                }
            }
        }
        out = later;
    }
    Ok(())
}

/// Expectation of a column without nulls.
const NO_NULLS: &str = "no nulls";

/// Checks that the definition levels of a version 1 page mark all values as present. Returns the offset after them.
fn check_no_nulls(bytes: &[u8], count: usize) -> Result<usize, Malformed> {
    let length = bytes.first_chunk().ok_or(Malformed("definition levels"))?;
    let end = 4 + u32::from_le_bytes(*length) as usize;
    let bytes = bytes.get(..end).ok_or(Malformed("definition levels"))?;
    let (mut levels, mut left, mut buffer) = (Hybrid::new(1, 4)?, count, [0; INDEX_BUFFER]);
    while left > 0 {
        let room = left.min(INDEX_BUFFER);
        left -= match levels.next(bytes, &mut buffer[..room])? {
            Decoded::Repeated(1, count) => count,
            Decoded::Literal(count) if buffer[..count].iter().all(|&level| level == 1) => count,
            _ => return Err(Malformed(NO_NULLS)),
        };
    }
    Ok(end)
}

/// A chunk in any encoding that the `parquet` crate supports.
pub(super) struct Other<V: Value> {
    reader: ColumnReaderImpl<V::Physical>,
    levels: Vec<i16>,
    values: Vec<<V::Physical as DataType>::T>,
}

impl<V: Value> Other<V> {
    fn new(chunk: &ColumnChunkMetaData, pages: Box<dyn PageReader>) -> Other<V> {
        let reader = get_typed_column_reader(get_column_reader(chunk.column_descr_ptr(), pages));
        Other { reader, levels: Vec::new(), values: Vec::new() }
    }

    fn read(&mut self, mut out: &mut [V]) -> Result<(), ChunkError> {
        while !out.is_empty() {
            self.levels.clear();
            self.values.clear();
            let (rows, values, _) =
                self.reader.read_records(out.len(), Some(&mut self.levels), None, &mut self.values)?;
            match rows {
                0 => return Err(Malformed("more values in the column chunk").into()),
                rows if rows != values => return Err(Malformed(NO_NULLS).into()),
                _ => {}
            }
            let (now, later) = out.split_at_mut(values);
            for (value, physical) in now.iter_mut().zip(&self.values) {
                *value = V::of(physical)?;
            }
            out = later;
        }
        Ok(())
    }
}
