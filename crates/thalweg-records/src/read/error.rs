//! Errors of reading flow records.

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

/// Why a file of flow records cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It cannot be opened or read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// It is not a Parquet file, or is damaged.
    #[error("{}: {source}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Error of the decoder.
        source: ParquetError,
    },
    /// A column is missing or has another type.
    #[error("{}: column {column}: expected {expected}, found {found}", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// Name of the column.
        column: &'static str,
        /// The type that flow records have.
        expected: &'static str,
        /// The type found.
        found: String,
    },
    /// A value that no flow record can have, or malformed data.
    #[error("{}: column {column}, row {row}: expected {expected}, found {found}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// Name of the column.
        column: &'static str,
        /// Row of the file, from 0; if unknown, the first row of its block.
        row: u64,
        /// What is accepted.
        expected: &'static str,
        /// What was found.
        found: String,
    },
}

impl ReadError {
    /// Returns the file.
    pub fn path(&self) -> &Path {
        match self {
            ReadError::Io { path, .. }
            | ReadError::Parquet { path, .. }
            | ReadError::Column { path, .. }
            | ReadError::Value { path, .. } => path,
        }
    }

    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> ReadError {
        move |source| ReadError::Io { path: path.to_owned(), source }
    }

    pub(super) fn parquet(path: &Path) -> impl FnOnce(ParquetError) -> ReadError {
        move |source| match system_error(source) {
            Ok(source) => ReadError::Io { path: path.to_owned(), source },
            Err(source) => ReadError::Parquet { path: path.to_owned(), source },
        }
    }
}

/// Returns the contained I/O error, if any: a failing or full disk is not a format error.
pub(crate) fn system_error(error: ParquetError) -> Result<io::Error, ParquetError> {
    match error {
        ParquetError::External(source) => {
            source.downcast().map(|error| *error).map_err(ParquetError::External)
        }
        error => Err(error),
    }
}
