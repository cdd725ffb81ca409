//! Encodes columns as Parquet files.
//!
//! Pages are encoded here; the `parquet` crate writes their headers and the footer. Its own column writers look up each
//! value in a dictionary, and allocate each string. Here a constant page costs one comparison, and an address is formatted
//! once per row group.
//!
//! | module | contents |
//! |---|---|
//! | `chunk` | a column chunk, page by page |
//! | `pages` | its encoded pages |
//! | `dictionary` | its distinct values |
//! | `table` | hash table that numbers distinct values |
//! | `text` | formats addresses |
//! | `hybrid` | run lengths and bit packing |
//! | `delta` | bit-packed deltas |
//! | `pack` | bit packing |
//! | `compress` | zstd |

pub(crate) mod chunk;
pub(crate) mod compress;
pub(crate) mod delta;
pub(crate) mod dictionary;
pub(crate) mod hybrid;
pub(crate) mod pack;
pub(crate) mod pages;
mod table;
#[cfg(test)]
mod tests;
pub(crate) mod text;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use crate::schema::{Column, Dataset, Kind};

use chunk::{Chunk, Scratch};

/// Rows per page: few enough to be encoded in the cache, many enough to make page headers negligible.
pub const PAGE_ROWS: usize = 1 << 15;

/// Maximum encoded size of a row group: dictionaries are long if all addresses are distinct.
const MAX_ROW_GROUP_BYTES: usize = 64 << 20;

/// Value of `created_by` in the footer.
const CREATED_BY: &str = concat!("thalweg version ", env!("CARGO_PKG_VERSION"));

/// Writes a Parquet file, which is invalid until [`finish`](FileWriter::finish).
pub struct FileWriter<D: Dataset, W: Write + Send> {
    file: SerializedFileWriter<W>,
    chunks: Vec<Chunk>,
    scratch: Scratch,
    /// Rows of the partial page.
    partial: D,
    /// Rows in the chunks.
    group_rows: usize,
    row_group_rows: usize,
    rows: u64,
    saturated: u64,
}

impl<D: Dataset, W: Write + Send> FileWriter<D, W> {
    /// Starts a file with this number of rows per row group (exceeded by at most a page) and this zstd level.
    ///
    /// # Errors
    /// If `out` cannot be written, or zstd has no such level.
    pub fn new(out: W, row_group_rows: usize, compression_level: i32) -> io::Result<Self> {
        let properties = WriterProperties::builder()
            .set_created_by(CREATED_BY.to_owned())
            .set_offset_index_disabled(true)
            .build();
        let file =
            SerializedFileWriter::new(out, schema(D::columns()).map_err(io_error)?, Arc::new(properties))
                .map_err(io_error)?;
        let chunks = D::columns().iter().enumerate();
        let chunks =
            chunks.map(|(number, column)| Chunk::new(column.kind, file.schema_descr().column(number)));
        Ok(FileWriter {
            chunks: chunks.collect(),
            file,
            scratch: Scratch::new(compression_level)?,
            partial: D::default(),
            group_rows: 0,
            row_group_rows,
            rows: 0,
            saturated: 0,
        })
    }

    /// Adds rows. Batches of about [`PAGE_ROWS`] are encoded directly; smaller ones are collected first.
    ///
    /// # Errors
    /// If a row group cannot be written.
    pub fn push(&mut self, batch: &D) -> io::Result<()> {
        let rows = batch.rows();
        self.rows += rows as u64;
        if self.partial.rows() == 0 && (PAGE_ROWS / 2..=PAGE_ROWS).contains(&rows) {
            return self.page(batch);
        }
        let mut from = 0;
        while from < rows {
            let to = rows.min(from + PAGE_ROWS - self.partial.rows());
            self.partial.append_rows(batch, from..to);
            from = to;
            if self.partial.rows() == PAGE_ROWS {
                self.partial_page()?;
            }
        }
        Ok(())
    }

    /// Returns the number of rows added.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the number of bytes written or encoded so far.
    pub fn bytes(&self) -> u64 {
        self.file.bytes_written() as u64 + self.chunks.iter().map(|chunk| chunk.bytes() as u64).sum::<u64>()
    }

    /// Writes the remaining rows and the footer. Returns how many values exceeded the range of `INT64` and were clamped.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        self.partial_page()?;
        self.row_group()?;
        Ok((self.file.into_inner().map_err(io_error)?, self.saturated))
    }

    fn partial_page(&mut self) -> io::Result<()> {
        if self.partial.rows() == 0 {
            return Ok(());
        }
        let page = std::mem::take(&mut self.partial);
        self.page(&page)?;
        self.partial = page;
        self.partial.truncate_rows(0);
        Ok(())
    }

    fn page(&mut self, batch: &D) -> io::Result<()> {
        for (number, chunk) in self.chunks.iter_mut().enumerate() {
            self.saturated += chunk.page(batch.values(number), &mut self.scratch).map_err(io_error)?;
        }
        self.group_rows += batch.rows();
        let bytes: usize = self.chunks.iter().map(Chunk::bytes).sum();
        match self.group_rows >= self.row_group_rows || bytes >= MAX_ROW_GROUP_BYTES {
            true => self.row_group(),
            false => Ok(()),
        }
    }

    fn row_group(&mut self) -> io::Result<()> {
        if self.group_rows == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group().map_err(io_error)?;
        for chunk in &mut self.chunks {
            let close = chunk.close(&mut self.scratch).map_err(io_error)?;
            group.append_column(&chunk.encoded(), close).map_err(io_error)?;
            chunk.begin().map_err(io_error)?;
        }
        group.close().map_err(io_error)?;
        self.group_rows = 0;
        Ok(())
    }
}

/// Writes batches to a file, which appears under its name when it is complete and durable.
///
/// # Errors
/// If writing fails. Then an existing file of this name is unchanged, and no new one is left.
pub fn write_file<'a, D: Dataset>(
    path: &Path,
    batches: impl IntoIterator<Item = &'a D>,
    row_group_rows: usize,
    compression_level: i32,
) -> io::Result<u64> {
    let part = temporary_path(path);
    let write = || {
        let mut writer = FileWriter::new(File::create(&part)?, row_group_rows, compression_level)?;
        for batch in batches {
            writer.push(batch)?;
        }
        let rows = writer.rows();
        publish(&writer.finish()?.0, &part, path)?;
        Ok(rows)
    };
    write().inspect_err(|_| {
        let _ = std::fs::remove_file(&part);
    })
}

/// Returns the temporary name of a file. It starts with a dot and does not match `*.parquet`.
pub(super) fn temporary_path(path: &Path) -> std::path::PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.part"))
}

/// Flushes a complete file to the disk, then renames it.
pub(crate) fn publish(file: &File, part: &Path, path: &Path) -> io::Result<()> {
    file.sync_all()?;
    std::fs::rename(part, path)?;
    sync_directory(path.parent().unwrap_or(Path::new(".")))
}

/// Flushes a directory's entries to the disk.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    File::open(directory)?.sync_all()
}

/// Converts an error, unwrapping I/O errors that the crate only passes on.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}

fn schema(columns: &[Column]) -> Result<TypePtr, ParquetError> {
    let fields = columns.iter().map(|column| {
        let (physical, logical) = match column.kind {
            Kind::Timestamp => (PhysicalType::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
            Kind::Address | Kind::Format | Kind::Text | Kind::Name | Kind::Mac | Kind::Labels => {
                (PhysicalType::BYTE_ARRAY, Some(LogicalType::String))
            }
            Kind::U8 | Kind::U16 => (PhysicalType::INT32, None),
            Kind::U32 | Kind::U64 => (PhysicalType::INT64, None),
        };
        Type::primitive_type_builder(column.name, physical)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    });
    Type::group_type_builder("records").with_fields(fields.collect::<Result<_, _>>()?).build().map(Arc::new)
}
