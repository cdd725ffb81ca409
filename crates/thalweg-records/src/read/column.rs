//! Reads a column of a row group in steps. Errors state their position.

use std::path::{Path, PathBuf};

use parquet::column::page::PageReader;
use parquet::file::metadata::ColumnChunkMetaData;

use super::ReadError;
use super::chunk::{Chunk, ChunkError};
use super::field::Field;
use super::value::Value;

/// Reads the values of a column in order.
pub(crate) struct Column<V: Value> {
    /// `None` if the file does not have the column.
    chunk: Option<Chunk<V>>,
    field: &'static Field<V>,
    path: PathBuf,
    /// Row of the file at the read position.
    row: u64,
}

impl<V: Value> Column<V> {
    /// Starts at the first value of a column chunk, which belongs to `row`.
    pub(super) fn new(
        path: &Path,
        row: u64,
        field: &'static Field<V>,
        chunk: &ColumnChunkMetaData,
        pages: Box<dyn PageReader>,
    ) -> Column<V> {
        Column { chunk: Some(Chunk::new(chunk, pages)), field, path: path.to_owned(), row }
    }

    /// Returns a column that the file does not have: every value is the default.
    pub(super) fn missing(path: &Path, row: u64, field: &'static Field<V>) -> Column<V> {
        Column { chunk: None, field, path: path.to_owned(), row }
    }

    /// Reads the next `out.len()` values.
    pub(crate) fn read(&mut self, out: &mut [V]) -> Result<(), ReadError> {
        let Some(chunk) = &mut self.chunk else {
            out.fill(V::default());
            return Ok(());
        };
        let outside = chunk.read(out, &self.field.range);
        match outside.map_err(|error| located(&self.path, self.field, self.row, error))? {
            Some(at) => Err(self.outside(at, out[at])),
            None => {
                self.row += out.len() as u64;
                Ok(())
            }
        }
    }

    /// Reads the next `out.len()` values as the numbers that `number` assigns. It is called once per dictionary entry, used or
    /// not, or once per row without a dictionary.
    pub(crate) fn number(
        &mut self,
        number: &mut impl FnMut(V) -> u32,
        out: &mut [u32],
    ) -> Result<(), ReadError> {
        let Some(chunk) = &mut self.chunk else {
            out.fill(number(V::default()));
            return Ok(());
        };
        let mut outside = None;
        let mut checked = |value: V| {
            if V::outside(&[value], &self.field.range).is_some() {
                outside.get_or_insert(value);
            }
            number(value)
        };
        let numbered = chunk.number(&mut checked, out);
        numbered.map_err(|error| located(&self.path, self.field, self.row, error))?;
        match outside {
            Some(value) => Err(self.outside(0, value)),
            None => {
                self.row += out.len() as u64;
                Ok(())
            }
        }
    }

    /// Returns the error for a value out of range, `at` rows ahead.
    fn outside(&self, at: usize, value: V) -> ReadError {
        ReadError::Value {
            path: self.path.clone(),
            column: self.field.name,
            row: self.row + at as u64,
            expected: "a value in the range of this column",
            found: format!("{value:?}"),
        }
    }
}

fn located<V: Value>(path: &Path, field: &Field<V>, row: u64, error: ChunkError) -> ReadError {
    match error {
        ChunkError::Parquet(error) => ReadError::parquet(path)(error),
        ChunkError::Malformed(expected) => ReadError::Value {
            path: path.to_owned(),
            column: field.name,
            row,
            expected: expected.0,
            found: "malformed data".to_owned(),
        },
    }
}
