//! A column chunk, read in steps of any size.
//!
//! A dictionary's entries are read once, so that an address is parsed once for each of its entries and not for each
//! row. Pages in plain, dictionary or delta encoding are decoded here; chunks with any other by the `parquet` crate.

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::column::reader::{ColumnReaderImpl, get_column_reader, get_typed_column_reader};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;

use super::delta::Delta;
use super::hybrid::{Hybrid, Stretch};
use super::malformed::Malformed;
use super::value::Value;

/// Dictionary indices unpacked at a time.
const INDICES: usize = 1024;
/// Values read at a time to be numbered one by one.
const SPELT_OUT: usize = 256;
/// Most entries of a dictionary that are believed before they are read.
const ENTRIES: usize = 1 << 26;

/// Why a chunk cannot be read on.
#[derive(Debug)]
pub(super) enum ChunkError {
    /// The `parquet` crate says so.
    Parquet(ParquetError),
    /// A value or a page is not as it must be.
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

/// The values of a column chunk in order.
pub(super) enum Chunk<V: Value> {
    Pages(Box<Pages<V>>),
    Decoded(Box<Decoded<V>>),
}

impl<V: Value> Chunk<V> {
    /// A column chunk from its first value on.
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
            false => Chunk::Decoded(Box::new(Decoded::new(chunk, pages))),
        }
    }

    /// The next `out.len()` values; the place of the first that is not in `range`, and none is read after it.
    pub(super) fn read(&mut self, out: &mut [V], range: &V::Range) -> Result<Option<usize>, ChunkError> {
        match self {
            Chunk::Pages(pages) => pages.read(out, range),
            Chunk::Decoded(decoded) => decoded.read(out).map(|()| V::outside(out, range)),
        }
    }

    /// The numbers that `number` gives to the next `out.len()` values.
    pub(super) fn number(
        &mut self,
        number: &mut impl FnMut(V) -> u32,
        out: &mut [u32],
    ) -> Result<(), ChunkError> {
        match self {
            Chunk::Pages(pages) => pages.number(number, out),
            Chunk::Decoded(decoded) => {
                let mut values = vec![V::default(); out.len()];
                decoded.read(&mut values)?;
                out.iter_mut().zip(values).for_each(|(out, value)| *out = number(value));
                Ok(())
            }
        }
    }
}

/// A chunk of plain, dictionary and delta-encoded pages.
pub(super) struct Pages<V> {
    pages: Box<dyn PageReader>,
    nullable: bool,
    dictionary: Vec<V>,
    /// Whether all its entries are in their column's range; unknown until a value is looked up.
    in_range: Option<bool>,
    /// What the caller calls the dictionary's entries; empty until it is asked.
    numbers: Vec<u32>,
    page: Option<Page>,
    left: usize,
    values: Values,
    delta: Delta,
    indices: Box<[u32; INDICES]>,
}

/// Where the next value of a page is.
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
            indices: Box::new([0; INDICES]),
        }
    }

    fn read(&mut self, out: &mut [V], range: &V::Range) -> Result<Option<usize>, ChunkError> {
        let mut done = 0;
        while done < out.len() {
            let count = self.ready(out.len() - done)?;
            let now = &mut out[done..done + count];
            let bytes = self.page.as_ref().expect("a page with values left").buffer();
            let in_range = match &mut self.values {
                Values::Dictionary(indices) => {
                    look_up(&self.dictionary, indices, bytes, &mut *self.indices, now)?;
                    *self.in_range.get_or_insert_with(|| V::outside(&self.dictionary, range).is_none())
                }
                values => {
                    values.spelt_out(&mut self.delta, bytes, now)?;
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
            let count = self.ready(out.len().min(SPELT_OUT))?;
            let (now, later) = out.split_at_mut(count);
            let bytes = self.page.as_ref().expect("a page with values left").buffer();
            match &mut self.values {
                Values::Dictionary(indices) => {
                    if self.numbers.is_empty() {
                        self.numbers.extend(self.dictionary.iter().map(|&value| number(value)));
                    }
                    look_up(&self.numbers, indices, bytes, &mut *self.indices, now)?;
                }
                values => {
                    let mut buffer = [V::default(); SPELT_OUT];
                    values.spelt_out(&mut self.delta, bytes, &mut buffer[..count])?;
                    now.iter_mut().zip(buffer).for_each(|(out, value)| *out = number(value));
                }
            }
            self.left -= count;
            out = later;
        }
        Ok(())
    }

    /// Goes to the next page where one is used up; how many values there are now, at most `most`.
    #[inline]
    fn ready(&mut self, most: usize) -> Result<usize, ChunkError> {
        while self.left == 0 {
            self.next_page()?;
        }
        Ok(self.left.min(most))
    }

    fn next_page(&mut self) -> Result<(), ChunkError> {
        let page = self.pages.get_next_page()?.ok_or(Malformed("more pages in the column chunk"))?;
        let (encoding, values) = match &page {
            Page::DictionaryPage { buf, num_values, .. } => {
                let entries = *num_values as usize;
                if entries > ENTRIES || entries > buf.len() {
                    return Err(Malformed("a dictionary as long as it says").into());
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
                    true => all_there(buf, *num_values as usize)?,
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
    /// The next values of a page that has them without a dictionary.
    fn spelt_out<V: Value>(
        &mut self,
        delta: &mut Delta,
        bytes: &[u8],
        out: &mut [V],
    ) -> Result<(), Malformed> {
        match self {
            Values::Plain(at) => *at = V::plain(bytes, *at, out)?,
            Values::Delta => V::differences(delta, bytes, out)?,
            Values::Dictionary(_) => unreachable!("indices are looked up"),
        }
        Ok(())
    }
}

/// What stands in the dictionary, or in a table beside it, at the indices that come next.
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
        // A run may be longer than the buffer: its values are not spelt out.
        let stretch = indices.next(bytes, &mut buffer[..room])?;
        let count = match stretch {
            Stretch::Same(_, count) | Stretch::Each(count) => count,
        };
        let (now, later) = out.split_at_mut(count);
        match stretch {
            Stretch::Same(index, _) => now.fill(*dictionary.get(index as usize).ok_or(BEYOND)?),
            Stretch::Each(_) => {
                for (value, &index) in now.iter_mut().zip(&*buffer) {
                    *value = *dictionary.get(index as usize).ok_or(BEYOND)?;
                }
            }
        }
        out = later;
    }
    Ok(())
}

/// What a column may not have.
const NO_NULLS: &str = "no nulls";

/// Checks that the definition levels of a page (of version 1) say that all values are there; the byte after them.
fn all_there(bytes: &[u8], count: usize) -> Result<usize, Malformed> {
    let length = bytes.first_chunk().ok_or(Malformed("definition levels"))?;
    let end = 4 + u32::from_le_bytes(*length) as usize;
    let bytes = bytes.get(..end).ok_or(Malformed("definition levels"))?;
    let (mut levels, mut left, mut buffer) = (Hybrid::new(1, 4)?, count, [0; INDICES]);
    while left > 0 {
        let room = left.min(INDICES);
        left -= match levels.next(bytes, &mut buffer[..room])? {
            Stretch::Same(1, count) => count,
            Stretch::Each(count) if buffer[..count].iter().all(|&level| level == 1) => count,
            _ => return Err(Malformed(NO_NULLS)),
        };
    }
    Ok(end)
}

/// A chunk in any encoding that the `parquet` crate knows.
pub(super) struct Decoded<V: Value> {
    reader: ColumnReaderImpl<V::Physical>,
    levels: Vec<i16>,
    values: Vec<<V::Physical as DataType>::T>,
}

impl<V: Value> Decoded<V> {
    fn new(chunk: &ColumnChunkMetaData, pages: Box<dyn PageReader>) -> Decoded<V> {
        let reader = get_typed_column_reader(get_column_reader(chunk.column_descr_ptr(), pages));
        Decoded { reader, levels: Vec::new(), values: Vec::new() }
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
