//! Reads flow records from Parquet files in blocks, column by column; each analysis reads the columns that it needs.
//!
//! Values are read directly, or as numbers that the caller assigns (see `Column::number`). The distinct values of a
//! dictionary are numbered once; each row then costs one lookup in a small table of integers.

mod address;
mod chunk;
mod column;
mod delta;
mod error;
pub(crate) mod field;
mod hybrid;
mod malformed;
mod rows;
pub(crate) mod scan;
mod value;

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::basic::{LogicalType, TimeUnit};
use parquet::data_type::DataType;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::schema::types::SchemaDescriptor;

pub(crate) use column::Column;
pub use error::ReadError;
pub(crate) use error::system_error;
use field::Field;
pub(crate) use rows::{GroupRows, RowSet};
use value::Value;

/// Rows per block: its columns fit the second-level cache.
pub(crate) const BLOCK: usize = 4096;

/// A file of flow records whose footer was read.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    /// Number of rows of each row group.
    pub(crate) row_groups: Vec<u64>,
    /// Row groups that are not read; empty: all are.
    pub(crate) skipped: Vec<bool>,
    /// Number of rows of all files before this one.
    first_row: u64,
}

/// The smallest and the largest value of a column in each row group, if the file says so.
pub(crate) type Bounds = Vec<Option<(i64, i64)>>;

impl Source {
    /// Reads the footers of files. `check` checks for the columns needed, before any work is done.
    pub(crate) fn read_footers(
        paths: &[PathBuf],
        check: impl Fn(&Schema<'_>) -> Result<(), ReadError>,
    ) -> Result<Vec<Source>, ReadError> {
        let read = |path: &PathBuf| {
            let file = open(path)?;
            check(&Schema { path, columns: file.metadata().file_metadata().schema_descr() })?;
            Ok(Source::of(path, &file))
        };
        let mut sources = paths.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        Source::number(&mut sources);
        Ok(sources)
    }

    /// Reads the footer of a file, with the bounds of a column.
    pub(crate) fn read_bounds(
        path: &Path,
        field: &'static Field<i64>,
    ) -> Result<(Source, Bounds), ReadError> {
        let file = open(path)?;
        let column = Schema { path, columns: file.metadata().file_metadata().schema_descr() }.find(field)?;
        let bounds = |group: &RowGroupMetaData| match column.and_then(|at| group.column(at).statistics()) {
            Some(Statistics::Int64(bounds)) => Some((*bounds.min_opt()?, *bounds.max_opt()?)),
            _ => None,
        };
        let bounds = file.metadata().row_groups().iter().map(bounds).collect();
        Ok((Source::of(path, &file), bounds))
    }

    fn of(path: &Path, file: &SerializedFileReader<File>) -> Source {
        let rows = |group: &RowGroupMetaData| u64::try_from(group.num_rows()).unwrap_or(0);
        let row_groups = file.metadata().row_groups().iter().map(rows).collect();
        Source { path: path.to_owned(), row_groups, skipped: Vec::new(), first_row: 0 }
    }

    /// Numbers the rows of all files, the skipped ones included.
    pub(crate) fn number(sources: &mut [Source]) {
        let mut rows = 0;
        for source in sources {
            source.first_row = rows;
            rows = source.end_row();
        }
    }

    /// Returns the row groups to read.
    pub(crate) fn groups(&self) -> impl Iterator<Item = usize> {
        (0..self.row_groups.len()).filter(|&group| self.skipped.get(group) != Some(&true))
    }

    /// Returns the number of rows to read.
    pub(crate) fn rows(&self) -> u64 {
        self.groups().map(|group| self.row_groups[group]).sum()
    }

    /// Returns the number of the first row of a row group in all files.
    pub(crate) fn first_row(&self, group: usize) -> u64 {
        self.first_row + self.row_groups[..group].iter().sum::<u64>()
    }

    /// Returns the number of the row after the last one, in all files.
    pub(crate) fn end_row(&self) -> u64 {
        self.first_row(self.row_groups.len())
    }

    /// Opens a row group.
    pub(crate) fn open(&self, row_group: usize) -> Result<RowGroup<'_>, ReadError> {
        Ok(RowGroup {
            path: &self.path,
            file: open(&self.path)?,
            number: row_group,
            first: self.row_groups[..row_group].iter().sum(),
            rows: self.row_groups[row_group],
        })
    }
}

fn open(path: &Path) -> Result<SerializedFileReader<File>, ReadError> {
    let file = File::open(path).map_err(ReadError::io(path))?;
    SerializedFileReader::new(file).map_err(ReadError::parquet(path))
}

/// A row group of a file.
pub(crate) struct RowGroup<'a> {
    path: &'a Path,
    file: SerializedFileReader<File>,
    number: usize,
    /// Number of rows of the file before it.
    first: u64,
    pub(crate) rows: u64,
}

impl RowGroup<'_> {
    /// Returns a column from the first row on.
    pub(crate) fn column<V: Value>(&self, field: &'static Field<V>) -> Result<Column<V>, ReadError> {
        let schema = Schema { path: self.path, columns: self.file.metadata().file_metadata().schema_descr() };
        let Some(index) = schema.find(field)? else {
            return Ok(Column::missing(self.path, self.first, field));
        };
        let failed = || ReadError::parquet(self.path);
        let group = self.file.get_row_group(self.number).map_err(failed())?;
        let pages = group.get_column_page_reader(index).map_err(failed())?;
        Ok(Column::new(self.path, self.first, field, group.metadata().column(index), pages))
    }
}

/// The columns of a file.
pub(crate) struct Schema<'a> {
    path: &'a Path,
    columns: &'a SchemaDescriptor,
}

impl Schema<'_> {
    /// Finds a column by name and checks its type. `None` if the file is of a version without it.
    pub(crate) fn find<V: Value>(&self, field: &Field<V>) -> Result<Option<usize>, ReadError> {
        let wrong = |found: String| ReadError::Column {
            path: self.path.to_owned(),
            column: field.name,
            expected: if field.timestamp { "TIMESTAMP in microseconds UTC" } else { V::NAME },
            found,
        };
        let index = self.columns.columns().iter().position(|column| column.path().parts() == [field.name]);
        let index = match index {
            Some(index) => index,
            None if field.optional => return Ok(None),
            None => return Err(wrong("no such column".to_owned())),
        };
        let column = self.columns.column(index);
        let logical = column.logical_type_ref();
        let utc = matches!(logical, Some(LogicalType::Timestamp(t)) if t.unit == TimeUnit::MICROS && t.is_adjusted_to_u_t_c);
        let physical = <V::Physical as DataType>::get_physical_type();
        if column.physical_type() != physical || field.timestamp && !utc {
            return Err(wrong(match logical {
                Some(logical) => format!("{} ({logical:?})", column.physical_type()),
                None => column.physical_type().to_string(),
            }));
        }
        if column.max_rep_level() > 0 || column.max_def_level() > 1 {
            return Err(wrong("a list".to_owned()));
        }
        Ok(Some(index))
    }
}
