//! What can go wrong in an analysis.

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

/// Why an analysis stopped. What it had written is removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalyseError {
    /// A file cannot be opened, read, written or renamed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is no Parquet, or its bytes are damaged.
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
    /// More observation points than there can be routers.
    #[error("{}: more than {limit} observation points (exporter, domain, direction)", path.display())]
    ObservationPoints {
        /// The file with one too many.
        path: PathBuf,
        /// How many may be.
        limit: usize,
    },
    /// A parameter out of range.
    #[error("{option}: expected {expected}, found {found}")]
    Option {
        /// Its name.
        option: &'static str,
        /// Its range.
        expected: &'static str,
        /// What was given.
        found: String,
    },
    /// The caller's progress function said stop.
    #[error("interrupted")]
    Interrupted,
}

impl AnalyseError {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> AnalyseError {
        move |source| AnalyseError::Io { path: path.to_owned(), source }
    }

    pub(super) fn parquet(path: &Path) -> impl FnOnce(ParquetError) -> AnalyseError {
        move |source| match source {
            // A full disk is no fault of the format.
            ParquetError::External(source) if source.is::<io::Error>() => {
                let source = *source.downcast().expect("an error of input or output");
                AnalyseError::Io { path: path.to_owned(), source }
            }
            source => AnalyseError::Parquet { path: path.to_owned(), source },
        }
    }
}
