//! Writes a table as a Parquet file, which is renamed when complete.

mod encode;

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use super::AnalyseError;
use super::table::{Table, Values};
use crate::store::parquet::publish;
use encode::{Chunk, Scratch};

/// Rows per row group, exceeded by at most a page.
const ROW_GROUP_ROWS: usize = 1 << 17;
/// Minimum number of rows per page, except for the last: few enough for the second-level cache, many enough to make page
/// headers negligible.
pub(super) const MIN_PAGE_ROWS: usize = 1 << 12;
/// Size of the write buffer: the `parquet` crate copies column chunks in small steps.
const WRITE_BUFFER: usize = 256 << 10;

/// A file being written; without a path, rows are discarded.
pub(super) struct TableFile<T> {
    file: Option<OpenFile>,
    rows: T,
}

struct OpenFile {
    path: PathBuf,
    partial: PathBuf,
    writer: Option<SerializedFileWriter<BufWriter<File>>>,
    chunks: Vec<Chunk>,
    scratch: Scratch,
    /// Rows in the chunks.
    rows: usize,
}

impl Drop for OpenFile {
    /// Removes an incomplete file.
    fn drop(&mut self) {
        if self.writer.is_some() {
            // An error cannot be reported here.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

impl<T: Table> TableFile<T> {
    /// Creates a file under a temporary name.
    pub(super) fn create(path: Option<&Path>) -> Result<TableFile<T>, AnalyseError> {
        let file = path.map(OpenFile::create::<T>).transpose()?;
        Ok(TableFile { file, rows: T::default() })
    }

    /// Returns whether rows are written.
    pub(super) fn is_wanted(&self) -> bool {
        self.file.is_some()
    }

    /// Moves rows to the file.
    pub(super) fn append(&mut self, rows: &mut T) -> Result<(), AnalyseError> {
        match self.rows.len() {
            0 => std::mem::swap(&mut self.rows, rows),
            _ => self.rows.append(rows),
        }
        if self.rows.len() >= MIN_PAGE_ROWS {
            self.write_rows()?;
        }
        Ok(())
    }

    fn write_rows(&mut self) -> Result<(), AnalyseError> {
        if let Some(open) = &mut self.file {
            open.write_pages(&self.rows).map_err(AnalyseError::parquet(&open.partial))?;
        }
        self.rows.clear();
        Ok(())
    }

    /// Completes and renames the file.
    pub(super) fn finish(mut self) -> Result<(), AnalyseError> {
        if self.rows.len() > 0 {
            self.write_rows()?;
        }
        let Some(mut open) = self.file else { return Ok(()) };
        open.write_row_group().map_err(AnalyseError::parquet(&open.partial))?;
        let writer = open.writer.take().expect("not finished");
        let file = writer.into_inner().map_err(AnalyseError::parquet(&open.partial))?;
        let file = file.into_inner().map_err(|error| AnalyseError::io(&open.partial)(error.into_error()))?;
        publish(&file, &open.partial, &open.path).map_err(AnalyseError::io(&open.path))
    }
}

impl OpenFile {
    fn create<T: Table>(path: &Path) -> Result<OpenFile, AnalyseError> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let file = File::create(&partial).map_err(AnalyseError::io(&partial))?;
        let properties = WriterProperties::builder()
            .set_created_by(concat!("thalweg version ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let scratch = Scratch::new().map_err(AnalyseError::parquet(&partial))?;
        let writer = SerializedFileWriter::new(
            BufWriter::with_capacity(WRITE_BUFFER, file),
            schema::<T>(),
            Arc::new(properties),
        )
        .map_err(AnalyseError::parquet(&partial))?;
        let rows = T::default();
        let chunks = writer.schema_descr().columns().iter().zip(rows.columns());
        let chunks = chunks.map(|(column, (_, values))| Chunk::new(column.clone(), &values)).collect();
        Ok(OpenFile { path: path.to_owned(), partial, writer: Some(writer), chunks, scratch, rows: 0 })
    }

    /// Adds the rows to the row group.
    fn write_pages<T: Table>(&mut self, rows: &T) -> Result<(), ParquetError> {
        for (chunk, (_, values)) in self.chunks.iter_mut().zip(rows.columns()) {
            chunk.add(&values, &mut self.scratch)?;
        }
        self.rows += rows.len();
        if self.rows >= ROW_GROUP_ROWS { self.write_row_group() } else { Ok(()) }
    }

    fn write_row_group(&mut self) -> Result<(), ParquetError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.as_mut().expect("not finished").next_row_group()?;
        for chunk in &mut self.chunks {
            let close = chunk.close(&mut self.scratch)?;
            group.append_column(&chunk.encoded(), close)?;
            chunk.begin()?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
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
        Arc::new(column.with_repetition(repetition).build().expect("each kind of value has a type"))
    };
    let columns = T::default().columns().into_iter().map(column).collect();
    Arc::new(Type::group_type_builder("schema").with_fields(columns).build().expect("columns have types"))
}
