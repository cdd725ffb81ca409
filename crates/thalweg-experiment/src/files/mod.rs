//! What a run leaves in its folder for other programs: `flows`, `queues`, `links` and `drops`, as Parquet or
//! CSV.
//!
//! The columns are those of [`columns`]; [`reference()`] describes them. Equal rows give equal bytes. A file takes its
//! name only when all of it is written, so that there is never half of one under it.

pub mod columns;
mod csv;
mod parquet;
mod reference;

#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::results::Results;

pub use columns::{Column, Row, Values};
pub use reference::reference;

/// How files are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Parquet, compressed: small, typed, and read at once by DuckDB, pandas and polars.
    #[default]
    Parquet,
    /// Comma-separated text with a header.
    Csv,
}

impl Format {
    /// The ending of a file's name.
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
    /// The folder cannot be made.
    #[error("cannot make the folder {}", folder.display())]
    Folder {
        /// Of the results.
        folder: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A Parquet file cannot be written.
    #[error("cannot write {}", path.display())]
    Parquet {
        /// Its path.
        path: PathBuf,
        /// What the encoder says.
        source: ::parquet::errors::ParquetError,
    },
    /// A CSV file cannot be written.
    #[error("cannot write {}", path.display())]
    Csv {
        /// Its path.
        path: PathBuf,
        /// What the encoder says.
        source: ::csv::Error,
    },
}

/// Writes all rows of a run into `folder`, which is made if it is not there, and returns the paths of the files.
///
/// # Errors
/// If the folder cannot be made or a file cannot be written.
pub fn write(folder: &Path, format: Format, results: &Results) -> Result<Vec<PathBuf>, WriteError> {
    Ok(vec![
        write_rows(folder, format, &results.flows)?,
        write_rows(folder, format, &results.queues)?,
        write_rows(folder, format, &results.links)?,
        write_rows(folder, format, &results.drops)?,
    ])
}

/// Writes `rows` into `folder`, which is made if it is not there, and returns the path of the file.
///
/// # Errors
/// If the folder cannot be made or the file cannot be written; what was there under its name then stays.
pub fn write_rows<R: Row>(folder: &Path, format: Format, rows: &[R]) -> Result<PathBuf, WriteError> {
    fs::create_dir_all(folder).map_err(|source| WriteError::Folder { folder: folder.to_owned(), source })?;
    let path = folder.join(R::FILE).with_extension(format.extension());
    let unfinished = path.with_extension(format!("{}.unfinished", format.extension()));
    write_whole(&unfinished, &path, format, rows).inspect_err(|_| {
        // There may be none; the first error is the one to tell.
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
