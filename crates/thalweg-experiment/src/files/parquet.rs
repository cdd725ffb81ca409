//! Parquet: required columns, or optional ones where values may be missing, names in dictionaries, pages compressed with zstd.
//!
//! Equal rows give equal bytes: the format has no date, and the writer is the version of this program.

use std::io::Write;
use std::marker::PhantomData;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use super::columns::{Row, Values, signed};

/// The file's `created_by`.
const CREATED_BY: &str = concat!("thalweg version ", env!("CARGO_PKG_VERSION"));
/// Rows that are compressed and skipped together. Readers split a file by them; DuckDB recommends 100,000 to a million.
pub(super) const ROWS_PER_GROUP: usize = 1 << 17;
/// At this level zstd is about as fast as its readers.
const ZSTD_LEVEL: i32 = 3;

/// Writes a table of rows `R`.
pub(super) struct Writer<R, W: Write + Send>(SerializedFileWriter<W>, PhantomData<fn(&R)>);

impl<R: Row, W: Write + Send> Writer<R, W> {
    /// Starts a file.
    pub(super) fn new(out: W) -> Result<Writer<R, W>, ParquetError> {
        let writer = SerializedFileWriter::new(out, schema::<R>()?, properties::<R>()?)?;
        Ok(Writer(writer, PhantomData))
    }

    /// Writes rows as a group.
    pub(super) fn group(&mut self, rows: &[R]) -> Result<(), ParquetError> {
        let mut group = self.0.next_row_group()?;
        for column in R::COLUMNS {
            let mut chunk = group.next_column()?.expect("as many columns as in the schema");
            write_column(&mut chunk, rows, &column.values)?;
            chunk.close()?;
        }
        group.close().map(drop)
    }

    /// Completes the file.
    pub(super) fn close(self) -> Result<(), ParquetError> {
        let mut out = self.0.into_inner()?;
        Ok(out.flush()?)
    }
}

fn write_column<R>(
    chunk: &mut SerializedColumnWriter<'_>,
    rows: &[R],
    values: &Values<R>,
) -> Result<usize, ParquetError> {
    match values {
        Values::Name(get) => {
            let values: Vec<ByteArray> = rows.iter().map(|row| get(row).into()).collect();
            chunk.typed::<ByteArrayType>().write_batch(&values, None, None)
        }
        Values::Number(get) => {
            let values: Vec<i32> = rows.iter().map(|row| get(row).into()).collect();
            chunk.typed::<Int32Type>().write_batch(&values, None, None)
        }
        Values::Count(get) => {
            let values: Vec<i64> = rows.iter().map(|row| signed(get(row))).collect();
            chunk.typed::<Int64Type>().write_batch(&values, None, None)
        }
        Values::OptionalCount(get) => {
            let present: Vec<i16> = rows.iter().map(|row| get(row).is_some().into()).collect();
            let values: Vec<i64> = rows.iter().filter_map(get).map(signed).collect();
            chunk.typed::<Int64Type>().write_batch(&values, Some(&present), None)
        }
        Values::Ratio(get) => {
            let values: Vec<f64> = rows.iter().map(get).collect();
            chunk.typed::<DoubleType>().write_batch(&values, None, None)
        }
    }
}

fn schema<R: Row>() -> Result<TypePtr, ParquetError> {
    let fields = R::COLUMNS.iter().map(|column| {
        let (physical, logical) = match column.values {
            Values::Name(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            Values::Number(_) => (PhysicalType::INT32, Some(LogicalType::integer(16, false))),
            Values::Count(_) | Values::OptionalCount(_) => (PhysicalType::INT64, None),
            Values::Ratio(_) => (PhysicalType::DOUBLE, None),
        };
        let repetition = match column.values {
            Values::OptionalCount(_) => Repetition::OPTIONAL,
            _ => Repetition::REQUIRED,
        };
        Type::primitive_type_builder(column.name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder(R::FILE).with_fields(fields).build().map(Arc::new)
}

fn properties<R: Row>() -> Result<WriterPropertiesPtr, ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_created_by(CREATED_BY.to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?));
    for column in R::COLUMNS {
        if let Values::Count(_) | Values::OptionalCount(_) = column.values {
            // Times increase in even steps and counts are small: their differences take a few bits.
            let path = ColumnPath::from(column.name);
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Ok(Arc::new(properties.build()))
}
