//! Flow records out of Parquet files, in blocks, only the columns that an analysis needs.

mod column;
mod delta;
mod hybrid;
mod value;

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::basic::{LogicalType, TimeUnit};
use parquet::column::page::PageReader;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use thalweg_wire::flow_export::Address;

use super::AnalyseError;
use column::{Column, ColumnError};
use value::Value;

/// Rows of a block: its columns fit into the second-level cache.
pub(super) const BLOCK: usize = 4096;

/// Times lie so close to 1970 that differences cannot overflow (plus or minus 73,000 years).
const TIMES: std::ops::RangeInclusive<i64> = -(1 << 61)..=1 << 61;

/// A file of flow records that was looked at.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    /// Rows of each row group.
    pub(super) row_groups: Vec<u64>,
}

impl Source {
    /// Reads the footer and checks that all columns are there.
    pub(super) fn look(path: &Path) -> Result<Source, AnalyseError> {
        let file = open(path)?;
        Places::find(path, file.metadata())?;
        let rows = |group: &RowGroupMetaData| u64::try_from(group.num_rows()).unwrap_or(0);
        Ok(Source {
            path: path.to_owned(),
            row_groups: file.metadata().row_groups().iter().map(rows).collect(),
        })
    }

    /// Gives the blocks of one row group to `each`, which may stop.
    pub(super) fn read(
        &self,
        row_group: usize,
        block: &mut Block,
        mut each: impl FnMut(&Block) -> Result<(), AnalyseError>,
    ) -> Result<(), AnalyseError> {
        let file = open(&self.path)?;
        let places = Places::find(&self.path, file.metadata())?;
        let group = file.get_row_group(row_group).map_err(AnalyseError::parquet(&self.path))?;
        let mut columns = Columns::open(&self.path, &places, &*group)?;
        let first: u64 = self.row_groups[..row_group].iter().sum();
        let mut done = 0;
        while done < self.row_groups[row_group] {
            block.rows = (self.row_groups[row_group] - done).min(BLOCK as u64) as usize;
            columns.read(&self.path, first + done, block)?;
            each(block)?;
            done += block.rows as u64;
        }
        Ok(())
    }
}

fn open(path: &Path) -> Result<SerializedFileReader<File>, AnalyseError> {
    let file = File::open(path).map_err(AnalyseError::io(path))?;
    SerializedFileReader::new(file).map_err(AnalyseError::parquet(path))
}

/// Declares the columns that are read: where they are in a file, how they are read, what they may have.
macro_rules! columns {
    ($($name:ident: $type:ty, $range:expr;)*) => {
        /// Where a file has the columns.
        struct Places {
            $($name: usize,)*
        }

        impl Places {
            fn find(path: &Path, metadata: &ParquetMetaData) -> Result<Places, AnalyseError> {
                Ok(Places { $($name: find::<$type>(path, metadata, stringify!($name))?,)* })
            }
        }

        /// The columns of a row group, read up to some row.
        struct Columns {
            $($name: Column<$type>,)*
        }

        impl Columns {
            fn open(path: &Path, places: &Places, group: &dyn RowGroupReader) -> Result<Columns, AnalyseError> {
                let pages = |place| -> Result<Box<dyn PageReader>, AnalyseError> {
                    group.get_column_page_reader(place).map_err(AnalyseError::parquet(path))
                };
                let metadata = group.metadata();
                Ok(Columns { $($name: Column::new(metadata.column(places.$name), pages(places.$name)?),)* })
            }

            /// Fills the block, whose first row is `row` of the file.
            fn read(&mut self, path: &Path, row: u64, block: &mut Block) -> Result<(), AnalyseError> {
                $(
                    let values = &mut block.$name[..block.rows];
                    self.$name.read(values).map_err(|error| located(path, stringify!($name), row, error))?;
                    if let Some(at) = <$type>::outside(values, $range) {
                        return Err(AnalyseError::Value {
                            path: path.to_owned(),
                            column: stringify!($name),
                            row: row + at as u64,
                            expected: "a value in the range of this column",
                            found: values[at].to_string(),
                        });
                    }
                )*
                Ok(())
            }
        }

        /// Flow records in columns; of each only the first `rows` count.
        pub(super) struct Block {
            pub(super) rows: usize,
            $(pub(super) $name: Box<[$type]>,)*
        }

        impl Block {
            pub(super) fn new() -> Block {
                Block { rows: 0, $($name: vec![<$type>::default(); BLOCK].into(),)* }
            }
        }
    };
}

columns! {
    exporter: Address, ();
    observation_domain_id: i64, 0..=u32::MAX.into();
    sampling_interval: i64, 0..=u32::MAX.into();
    flow_start: i64, TIMES;
    flow_end: i64, TIMES;
    source_address: Address, ();
    destination_address: Address, ();
    source_port: i32, 0..=u16::MAX.into();
    destination_port: i32, 0..=u16::MAX.into();
    protocol: i32, 0..=u8::MAX.into();
    tcp_flags: i32, 0..=u16::MAX.into();
    octets: i64, 0..=i64::MAX;
    packets: i64, 0..=i64::MAX;
    source_as: i64, 0..=u32::MAX.into();
    destination_as: i64, 0..=u32::MAX.into();
    flow_direction: i32, 0..=u8::MAX.into();
}

/// Values that may lie outside a range.
trait Ranged: Sized {
    type Range;

    /// The first value outside.
    fn outside(values: &[Self], range: Self::Range) -> Option<usize>;
}

macro_rules! ranged {
    ($($type:ty)*) => {
        $(impl Ranged for $type {
            type Range = std::ops::RangeInclusive<$type>;

            #[inline]
            fn outside(values: &[$type], range: Self::Range) -> Option<usize> {
                // Without a branch for each value, which the compiler makes vector instructions of.
                let wrong = values.iter().fold(false, |wrong, value| wrong | !range.contains(value));
                match wrong {
                    true => values.iter().position(|value| !range.contains(value)),
                    false => None,
                }
            }
        })*
    };
}

ranged!(i32 i64);

impl Ranged for Address {
    type Range = ();

    fn outside(_: &[Address], (): ()) -> Option<usize> {
        None
    }
}

/// Finds a column by its name and checks its type.
fn find<V: Value>(
    path: &Path,
    metadata: &ParquetMetaData,
    name: &'static str,
) -> Result<usize, AnalyseError> {
    use parquet::data_type::DataType;
    let timestamp = matches!(name, "flow_start" | "flow_end");
    let wrong = |found: String| AnalyseError::Column {
        path: path.to_owned(),
        column: name,
        expected: if timestamp { "TIMESTAMP in microseconds UTC" } else { V::NAME },
        found,
    };
    let schema = metadata.file_metadata().schema_descr();
    let place = schema.columns().iter().position(|column| column.path().parts() == [name]);
    let place = place.ok_or_else(|| wrong("no such column".to_owned()))?;
    let column = schema.column(place);
    let logical = column.logical_type_ref();
    let utc = matches!(logical, Some(LogicalType::Timestamp(t)) if t.unit == TimeUnit::MICROS && t.is_adjusted_to_u_t_c);
    if column.physical_type() != <V::Physical as DataType>::get_physical_type() || timestamp && !utc {
        return Err(wrong(match logical {
            Some(logical) => format!("{} ({logical:?})", column.physical_type()),
            None => column.physical_type().to_string(),
        }));
    }
    if column.max_rep_level() > 0 || column.max_def_level() > 1 {
        return Err(wrong("a list".to_owned()));
    }
    Ok(place)
}

fn located(path: &Path, column: &'static str, row: u64, error: ColumnError) -> AnalyseError {
    match error {
        ColumnError::Parquet(error) => AnalyseError::parquet(path)(error),
        ColumnError::Malformed(expected) => AnalyseError::Value {
            path: path.to_owned(),
            column,
            row,
            expected: expected.0,
            found: "something else".to_owned(),
        },
    }
}
