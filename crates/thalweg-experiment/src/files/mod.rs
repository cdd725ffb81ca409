//! The tables of a run: `flows`, `queues`, `links` and `drops`, as Parquet or CSV, and its summary as JSON.
//!
//! [`columns`] defines the columns, [`reference()`] describes them. Equal rows give equal bytes. A file gets its name
//! when it is complete.

pub mod columns;
mod csv;
pub mod marker;
mod parquet;
pub mod read;
mod reference;
mod sweep;

#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::json;
use super::results::Results;

pub use columns::{Column, Row, Values};
pub use reference::reference;
pub use sweep::{JSON_FILE as SWEEP_FILE, write_sweep};

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

/// Writes all rows and the summary of a run to `folder`, which is created if missing. Returns the paths of the files.
///
/// # Errors
/// If the directory cannot be created or a file cannot be written.
pub fn write(folder: &Path, format: Format, results: &Results) -> Result<Vec<PathBuf>, WriteError> {
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
    fs::create_dir_all(folder).map_err(|source| WriteError::Folder { folder: folder.to_owned(), source })?;
    let path = folder.join(R::FILE).with_extension(format.extension());
    let unfinished = path.with_extension(format!("{}.unfinished", format.extension()));
    write_whole(&unfinished, &path, format, rows).inspect_err(|_| {
        // The file may not exist; the first error is the one to report.
        let _ = fs::remove_file(&unfinished);
    })?;
    Ok(path)
}

fn write_whole<R: Row>(unfinished: &Path, path: &Path, format: Format, rows: &[R]) -> Result<(), WriteError> {
    let file_error = |source| WriteError::File { path: path.to_owned(), source };
    let mut out = BufWriter::new(File::create(unfinished).map_err(file_error)?);
    match format {
        Format::Parquet => parquet::write(&mut out, rows, parquet::ROWS_PER_GROUP)
            .map_err(|source| WriteError::Parquet { path: path.to_owned(), source })?,
        Format::Csv => {
            csv::write(&mut out, rows).map_err(|source| WriteError::Csv { path: path.to_owned(), source })?
        }
    }
    out.flush().map_err(file_error)?;
    fs::rename(unfinished, path).map_err(file_error)
}
