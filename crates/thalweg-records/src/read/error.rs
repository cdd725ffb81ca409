//! What can be wrong with a file of flow records.

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
        /// What the system said.
        source: io::Error,
    },
    /// It is no Parquet, or its bytes are damaged.
    #[error("{}: {source}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ParquetError,
    },
    /// A column is missing or of another type.
    #[error("{}: column {column}: expected {expected}, found {found}", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// Name of the column.
        column: &'static str,
        /// The type that flow records have.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A value that no flow record can have.
    #[error("{}: column {column}, row {row}: expected {expected}, found {found}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// Name of the column.
        column: &'static str,
        /// Row of the file, from 0; the first of its block where it is not known closer.
        row: u64,
        /// What may be there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
}

impl ReadError {
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

/// What the system said, if that is what it was: a disk that fails or is full is no fault of the format.
pub(crate) fn system_error(error: ParquetError) -> Result<io::Error, ParquetError> {
    match error {
        ParquetError::External(source) => {
            source.downcast().map(|error| *error).map_err(ParquetError::External)
        }
        error => Err(error),
    }
}
