//! Reads tables of a run again, some columns of them, row by row.
//!
//! **Memory**: a row group of the columns, at most [`MAX_ROWS_PER_GROUP`] rows, and a dictionary of names.

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::basic::Type as PhysicalType;
use parquet::column::reader::{ColumnReader, get_typed_column_reader};
use parquet::data_type::{ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use thiserror::Error;

use super::Format;
use super::columns::{Row, Values};
use super::sweep::{COLUMNS, CSV_FILE};

/// Maximum number of rows of a row group: that of other writers' usual limit.
pub const MAX_ROWS_PER_GROUP: i64 = 1 << 21;

/// Limits of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLimits {
    /// Maximum size of the file.
    pub bytes: u64,
    /// Maximum number of rows.
    pub rows: u64,
}

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Text.
    Name(&'a str),
    /// A number.
    Count(u64),
    /// A ratio.
    Ratio(f64),
    /// No value.
    Missing,
}

impl<'a> Cell<'a> {
    /// Returns the text; empty for a number.
    pub fn name(self) -> &'a str {
        match self {
            Cell::Name(name) => name,
            _ => "",
        }
    }

    /// Returns the number; 0 for anything else.
    pub fn count(self) -> u64 {
        match self {
            Cell::Count(count) => count,
            _ => 0,
        }
    }

    /// Returns the ratio; not a number for anything else.
    pub fn ratio(self) -> f64 {
        match self {
            Cell::Ratio(ratio) => ratio,
            _ => f64::NAN,
        }
    }
}

/// Why a table cannot be read.
#[derive(Debug, Error)]
#[error("cannot read {}: {problem}", path.display())]
pub struct TableError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub problem: String,
}

/// Returns the path and the format of a table in a folder; `None` if there is none.
pub fn table<R: Row>(folder: &Path) -> Option<(PathBuf, Format)> {
    [Format::Parquet, Format::Csv].into_iter().find_map(|format| {
        let path = folder.join(R::FILE).with_extension(format.extension());
        // Links may lead anywhere.
        let is_file = path.symlink_metadata().is_ok_and(|file| file.is_file());
        is_file.then_some((path, format))
    })
}

/// Passes these columns of each row to `each`, in order.
///
/// # Errors
/// If the file cannot be read, exceeds a limit, or is not a table of `R`.
///
/// # Panics
/// If `R` has no such column.
pub fn read_rows<R: Row>(
    (path, format): (&Path, Format),
    columns: &[&str],
    limits: TableLimits,
    each: &mut dyn FnMut(&[Cell<'_>]),
) -> Result<(), TableError> {
    let failed = |problem: String| TableError { path: path.to_owned(), problem };
    let bytes = path.metadata().map_err(|error| failed(error.to_string()))?.len();
    if bytes > limits.bytes {
        let most = limits.bytes;
        return Err(failed(format!("the file has {bytes} bytes, at most {most} are read")));
    }
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    let values = |name: &&str| {
        let column = R::COLUMNS.iter().find(|column| column.name == *name);
        &column.expect("a column of this table").values
    };
    let kinds: Vec<Kind> = columns.iter().map(|name| Kind::of(values(name))).collect();
    match format {
        Format::Parquet => read_parquet(file, columns, &kinds, limits, each),
        Format::Csv => read_csv(file, columns, &kinds, limits, each),
    }
    .map_err(failed)
}

/// What the table of a sweep says about its runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepIndex {
    /// The swept keys.
    pub keys: Vec<String>,
    /// The folder of each run.
    pub folders: Vec<String>,
}

/// Reads the swept keys and the folders from the table of a sweep; empty without a table.
///
/// # Errors
/// If the file exceeds the limit or is invalid.
pub fn read_sweep(folder: &Path, max_bytes: u64) -> Result<SweepIndex, TableError> {
    let path = folder.join(CSV_FILE);
    let failed = |problem: String| TableError { path: path.clone(), problem };
    let Ok(metadata) = path.symlink_metadata() else { return Ok(SweepIndex::default()) };
    if !metadata.is_file() || metadata.len() > max_bytes {
        let bytes = metadata.len();
        return Err(failed(format!("expected a file of at most {max_bytes} bytes, found {bytes}")));
    }
    let mut reader = csv::Reader::from_path(&path).map_err(|error| failed(error.to_string()))?;
    let header = reader.headers().map_err(|error| failed(error.to_string()))?.clone();
    let is_folder = |column: &str| column == COLUMNS[0].name;
    let at = header.iter().position(is_folder).ok_or_else(|| failed("no column of folders".to_owned()))?;
    let folder = |record: Result<csv::StringRecord, csv::Error>| {
        record.map(|record| record[at].to_owned()).map_err(|error| failed(error.to_string()))
    };
    let folders = reader.records().map(folder).collect::<Result<_, _>>()?;
    Ok(SweepIndex { keys: header.iter().take(at).map(str::to_owned).collect(), folders })
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Name,
    Number,
    Count,
    OptionalCount,
    Ratio,
}

impl Kind {
    fn of<R>(values: &Values<R>) -> Kind {
        match values {
            Values::Name(_) => Kind::Name,
            Values::Number(_) => Kind::Number,
            Values::Count(_) => Kind::Count,
            Values::OptionalCount(_) => Kind::OptionalCount,
            Values::Ratio(_) => Kind::Ratio,
        }
    }

    fn physical(self) -> PhysicalType {
        match self {
            Kind::Name => PhysicalType::BYTE_ARRAY,
            Kind::Number => PhysicalType::INT32,
            Kind::Count | Kind::OptionalCount => PhysicalType::INT64,
            Kind::Ratio => PhysicalType::DOUBLE,
        }
    }
}

fn too_many_rows(limits: TableLimits) -> String {
    format!("the table has more than {} rows", limits.rows)
}

/// The values of a column in a row group.
enum Cells {
    Names(Vec<parquet::data_type::ByteArray>),
    Numbers(Vec<i32>),
    Counts(Vec<i64>),
    /// By row, whether there is a value, and the place of the next one.
    OptionalCounts(Vec<(bool, usize)>, Vec<i64>),
    Ratios(Vec<f64>),
}

impl Cells {
    fn at(&self, row: usize) -> Cell<'_> {
        match self {
            // Invalid text, which this program does not write, is as good as none.
            Cells::Names(values) => Cell::Name(std::str::from_utf8(values[row].data()).unwrap_or_default()),
            Cells::Numbers(values) => Cell::Count(u64::try_from(values[row]).unwrap_or(0)),
            Cells::Counts(values) => Cell::Count(u64::try_from(values[row]).unwrap_or(0)),
            Cells::OptionalCounts(places, values) => match places[row] {
                (true, place) => Cell::Count(u64::try_from(values[place]).unwrap_or(0)),
                (false, _) => Cell::Missing,
            },
            Cells::Ratios(values) => Cell::Ratio(values[row]),
        }
    }
}

fn read_parquet(
    file: File,
    columns: &[&str],
    kinds: &[Kind],
    limits: TableLimits,
    each: &mut dyn FnMut(&[Cell<'_>]),
) -> Result<(), String> {
    let reader = SerializedFileReader::new(file).map_err(|error| error.to_string())?;
    let metadata = reader.metadata();
    if u64::try_from(metadata.file_metadata().num_rows()).is_ok_and(|rows| rows > limits.rows) {
        return Err(too_many_rows(limits));
    }
    let schema = metadata.file_metadata().schema_descr();
    let index = |(name, kind): (&&str, &Kind)| {
        let index = schema.columns().iter().position(|column| column.path().parts() == [*name]);
        let index = index.ok_or_else(|| format!("column {name} is missing"))?;
        let column = schema.column(index);
        let levels = i16::from(*kind == Kind::OptionalCount);
        match column.physical_type() == kind.physical() && column.max_def_level() == levels {
            true => Ok(index),
            false => Err(format!("column {name} has another type")),
        }
    };
    let indices = columns.iter().zip(kinds).map(index).collect::<Result<Vec<usize>, String>>()?;
    let mut rows_read = 0;
    for number in 0..reader.num_row_groups() {
        let group = reader.get_row_group(number).map_err(|error| error.to_string())?;
        let rows = group.metadata().num_rows();
        rows_read += rows.unsigned_abs();
        if !(0..=MAX_ROWS_PER_GROUP).contains(&rows) || rows_read > limits.rows {
            return Err(too_many_rows(TableLimits {
                rows: limits.rows.min(MAX_ROWS_PER_GROUP as u64),
                ..limits
            }));
        }
        let rows = rows as usize;
        let cells = indices.iter().zip(kinds).map(|(&index, kind)| cells(&*group, index, *kind, rows));
        let cells = cells.collect::<Result<Vec<Cells>, String>>()?;
        let mut row_of_cells = Vec::with_capacity(columns.len());
        for row in 0..rows {
            row_of_cells.clear();
            row_of_cells.extend(cells.iter().map(|cells| cells.at(row)));
            each(&row_of_cells);
        }
    }
    Ok(())
}

fn cells(group: &dyn RowGroupReader, index: usize, kind: Kind, rows: usize) -> Result<Cells, String> {
    fn read<D: DataType>(column: ColumnReader, rows: usize) -> Result<Vec<D::T>, String> {
        let mut values = Vec::new();
        let mut column = get_typed_column_reader::<D>(column);
        while values.len() < rows {
            let left = rows - values.len();
            let read =
                column.read_records(left, None, None, &mut values).map_err(|error| error.to_string())?;
            if read.0 == 0 {
                return Err("a column is shorter than the others".to_owned());
            }
        }
        Ok(values)
    }
    let column = group.get_column_reader(index).map_err(|error| error.to_string())?;
    Ok(match kind {
        Kind::Name => Cells::Names(read::<ByteArrayType>(column, rows)?),
        Kind::Number => Cells::Numbers(read::<Int32Type>(column, rows)?),
        Kind::Count => Cells::Counts(read::<Int64Type>(column, rows)?),
        Kind::OptionalCount => optional_counts(column, rows)?,
        Kind::Ratio => Cells::Ratios(read::<DoubleType>(column, rows)?),
    })
}

fn optional_counts(column: ColumnReader, rows: usize) -> Result<Cells, String> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let mut column = get_typed_column_reader::<Int64Type>(column);
    while levels.len() < rows {
        let left = rows - levels.len();
        let read = column.read_records(left, Some(&mut levels), None, &mut values);
        if read.map_err(|error| error.to_string())?.0 == 0 {
            return Err("a column is shorter than the others".to_owned());
        }
    }
    let mut next = 0;
    let place = |level: i16| {
        let place = next;
        next += usize::from(level > 0);
        (level > 0, place)
    };
    Ok(Cells::OptionalCounts(levels.into_iter().map(place).collect(), values))
}

fn read_csv(
    file: File,
    columns: &[&str],
    kinds: &[Kind],
    limits: TableLimits,
    each: &mut dyn FnMut(&[Cell<'_>]),
) -> Result<(), String> {
    let mut reader = csv::Reader::from_reader(file);
    let header = reader.headers().map_err(|error| error.to_string())?;
    let index = |name: &&str| {
        header.iter().position(|column| column == *name).ok_or_else(|| format!("column {name} is missing"))
    };
    let indices = columns.iter().map(index).collect::<Result<Vec<usize>, String>>()?;
    let mut record = csv::StringRecord::new();
    let mut rows = 0;
    while reader.read_record(&mut record).map_err(|error| error.to_string())? {
        rows += 1;
        if rows > limits.rows {
            return Err(too_many_rows(limits));
        }
        let cell = |(&index, (kind, name)): (&usize, (&Kind, &&str))| {
            let text = record.get(index).unwrap_or_default();
            let invalid = || format!("row {rows}, column {name}: expected a number, found {text:?}");
            Ok(match kind {
                Kind::Name => Cell::Name(text),
                Kind::OptionalCount if text.is_empty() => Cell::Missing,
                Kind::Number | Kind::Count | Kind::OptionalCount => {
                    Cell::Count(text.parse().map_err(|_| invalid())?)
                }
                Kind::Ratio => Cell::Ratio(text.parse().map_err(|_| invalid())?),
            })
        };
        let cells = indices.iter().zip(kinds.iter().zip(columns)).map(cell);
        each(&cells.collect::<Result<Vec<Cell<'_>>, String>>()?);
    }
    Ok(())
}
