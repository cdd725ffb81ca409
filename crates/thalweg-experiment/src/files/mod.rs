//! The tables of a run: `flows`, `queues`, `links` and `drops`, as Parquet or CSV, its time series, and its summary as JSON.
//!
//! [`columns`] defines the columns, [`reference()`] describes them. Equal rows give equal bytes. A file gets its name
//! when it is complete.

pub mod columns;
mod csv;
pub mod marker;
mod parquet;
pub mod read;
mod reference;
mod series_columns;
mod sweep;
mod writer;

#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::json;
use super::results::Results;
use super::results::series_rows::{ClassSeriesRow, FlowSeriesRow, QueueSeriesRow};

pub use columns::{Column, Row, Values};
pub use reference::reference;
pub use sweep::{JSON_FILE as SWEEP_FILE, write_sweep};
pub use writer::{Output, RowWriter};

/// Name of the summary of a run. It is written last.
pub const SUMMARY_FILE: &str = "summary.json";

/// The file format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Compressed Parquet: small, typed, and readable by DuckDB, pandas and Polars.
    #[default]
    Parquet,
    /// Comma-separated text with a header.
    Csv,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 2] = [Format::Parquet, Format::Csv];

    /// The file name extension.
    pub const fn extension(self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Csv => "csv",
        }
    }
}

/// Why a file was not written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The directory cannot be created.
    #[error("cannot create the directory {}", folder.display())]
    Folder {
        /// The directory.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A Parquet file cannot be written.
    #[error("cannot write {}", path.display())]
    Parquet {
        /// Its path.
        path: PathBuf,
        /// The encoder's error.
        source: ::parquet::errors::ParquetError,
    },
    /// A CSV file cannot be written.
    #[error("cannot write {}", path.display())]
    Csv {
        /// Its path.
        path: PathBuf,
        /// The encoder's error.
        source: ::csv::Error,
    },
}

/// Writes all rows and the summary of a run to `folder`, which is created if missing. Returns the paths of the files. Time series
/// have been written by the run; those of an earlier run are removed.
///
/// # Errors
/// If the directory cannot be created, a file cannot be written, or an old one cannot be removed.
pub fn write(folder: &Path, format: Format, results: &Results) -> Result<Vec<PathBuf>, WriteError> {
    let output = Output { folder, format };
    let is_new = |table| results.summary.series.iter().any(|series| series.table == table);
    output.remove_old::<FlowSeriesRow>(is_new(FlowSeriesRow::FILE))?;
    output.remove_old::<QueueSeriesRow>(is_new(QueueSeriesRow::FILE))?;
    output.remove_old::<ClassSeriesRow>(is_new(ClassSeriesRow::FILE))?;
    Ok(vec![
        write_rows(folder, format, &results.flows)?,
        write_rows(folder, format, &results.queues)?,
        write_rows(folder, format, &results.links)?,
        write_rows(folder, format, &results.drops)?,
        write_text(folder, SUMMARY_FILE, json::summary(results))?,
    ])
}

/// Writes a text. It gets its name when it is complete.
fn write_text(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> Result<PathBuf, WriteError> {
    let path = folder.join(name);
    let unfinished = path.with_added_extension("unfinished");
    fs::write(&unfinished, text)
        .and_then(|()| fs::rename(&unfinished, &path))
        .map_err(|source| WriteError::File { path: path.clone(), source })?;
    Ok(path)
}

/// Writes `rows` to `folder`, which is created if missing. Returns the path of the file.
///
/// # Errors
/// If the directory cannot be created or the file cannot be written. An existing file then stays.
pub fn write_rows<R: Row>(folder: &Path, format: Format, rows: &[R]) -> Result<PathBuf, WriteError> {
    let mut writer = RowWriter::create(Output { folder, format })?;
    writer.write_all(rows)?;
    writer.finish()
}
