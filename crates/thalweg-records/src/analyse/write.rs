//! A table as a Parquet file: row groups of one size, pages compressed with zstd, renamed into place when complete.

use std::fs::{self, File};
use std::io::BufWriter;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use super::AnalyseError;
use super::table::{Table, Values};

/// Rows of a row group.
pub(super) const ROWS: usize = 1 << 18;

/// A file that is being written; without a path, rows are let go.
pub(super) struct TableFile<T> {
    file: Option<Open>,
    rows: T,
    table: PhantomData<T>,
}

struct Open {
    path: PathBuf,
    partial: PathBuf,
    writer: Option<SerializedFileWriter<BufWriter<File>>>,
}

impl Drop for Open {
    /// Takes back what is not complete.
    fn drop(&mut self) {
        if self.writer.is_some() {
            // Nobody can be told any more that it is still there.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

impl<T: Table> TableFile<T> {
    /// Begins a file beside the path that it will have.
    pub(super) fn create(path: Option<&Path>) -> Result<TableFile<T>, AnalyseError> {
        let file = path.map(Open::create::<T>).transpose()?;
        Ok(TableFile { file, rows: T::default(), table: PhantomData })
    }

    /// Whether rows go anywhere.
    pub(super) fn is_wanted(&self) -> bool {
        self.file.is_some()
    }

    /// Adds rows, and takes them away from `rows`.
    pub(super) fn append(&mut self, rows: &mut T) -> Result<(), AnalyseError> {
        self.rows.append(rows);
        if self.rows.len() >= ROWS {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), AnalyseError> {
        if let Some(open) = &mut self.file {
            let writer = open.writer.as_mut().expect("not finished");
            row_group(writer, &self.rows).map_err(AnalyseError::parquet(&open.partial))?;
        }
        self.rows.clear();
        Ok(())
    }

    /// Completes the file and gives it its name.
    pub(super) fn finish(mut self) -> Result<(), AnalyseError> {
        if self.rows.len() > 0 {
            self.write()?;
        }
        let Some(mut open) = self.file else { return Ok(()) };
        let writer = open.writer.take().expect("not finished");
        let file = writer.into_inner().map_err(AnalyseError::parquet(&open.partial))?;
        let file = file.into_inner().map_err(|error| AnalyseError::io(&open.partial)(error.into_error()))?;
        file.sync_all().map_err(AnalyseError::io(&open.partial))?;
        fs::rename(&open.partial, &open.path).map_err(AnalyseError::io(&open.path))
    }
}

impl Open {
    fn create<T: Table>(path: &Path) -> Result<Open, AnalyseError> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let file = File::create(&partial).map_err(AnalyseError::io(&partial))?;
        let properties = WriterProperties::builder()
            .set_created_by(concat!("thalweg version ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        let writer = SerializedFileWriter::new(BufWriter::new(file), schema::<T>(), Arc::new(properties))
            .map_err(AnalyseError::parquet(&partial))?;
        Ok(Open { path: path.to_owned(), partial, writer: Some(writer) })
    }
}

fn schema<T: Table>() -> TypePtr {
    let column = |(name, values): (&str, Values<'_>)| {
        let (physical, logical) = match values {
            Values::Address(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            Values::Number(_) => (PhysicalType::INT32, None),
            Values::Count(_) => (PhysicalType::INT64, None),
            Values::Time(_) => (PhysicalType::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
            Values::Flag(_) => (PhysicalType::BOOLEAN, None),
            Values::Ratio(_) => (PhysicalType::DOUBLE, None),
        };
        let repetition = match values {
            Values::Ratio(_) => Repetition::OPTIONAL,
            _ => Repetition::REQUIRED,
        };
        let column = Type::primitive_type_builder(name, physical).with_logical_type(logical);
        Arc::new(column.with_repetition(repetition).build().expect("a type for each kind of value"))
    };
    let columns = T::default().columns().into_iter().map(column).collect();
    Arc::new(Type::group_type_builder("schema").with_fields(columns).build().expect("columns have types"))
}

fn row_group<T: Table>(writer: &mut SerializedFileWriter<BufWriter<File>>, rows: &T) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for (_, values) in rows.columns() {
        let mut chunk = group.next_column()?.expect("as many columns as in the schema");
        write_column(&mut chunk, &values)?;
        chunk.close()?;
    }
    group.close().map(drop)
}

fn write_column(chunk: &mut SerializedColumnWriter<'_>, values: &Values<'_>) -> Result<usize, ParquetError> {
    match values {
        Values::Address(addresses) => {
            let texts: Vec<ByteArray> = addresses.iter().map(|address| address.to_string().as_str().into()).collect();
            chunk.typed::<ByteArrayType>().write_batch(&texts, None, None)
        }
        Values::Number(numbers) => chunk.typed::<Int32Type>().write_batch(numbers, None, None),
        Values::Count(counts) | Values::Time(counts) => chunk.typed::<Int64Type>().write_batch(counts, None, None),
        Values::Flag(flags) => chunk.typed::<BoolType>().write_batch(flags, None, None),
        Values::Ratio(ratios) => {
            let there: Vec<f64> = ratios.iter().flatten().copied().collect();
            let levels: Vec<i16> = ratios.iter().map(|ratio| ratio.is_some().into()).collect();
            chunk.typed::<DoubleType>().write_batch(&there, Some(&levels), None)
        }
    }
}
