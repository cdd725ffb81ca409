//! What can go wrong in an analysis.

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

use crate::read::{ReadError, system_error};

/// Why an analysis stopped. What it had written is removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalyseError {
    /// A file of records cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file cannot be written or renamed, or what was spilled not be read again.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Results cannot be encoded.
    #[error("{}: {source}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ParquetError,
    },
    /// The system has no memory for records.
    #[error("no memory for records: {0}")]
    Memory(#[source] io::Error),
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
        move |source| match system_error(source) {
            Ok(source) => AnalyseError::Io { path: path.to_owned(), source },
            Err(source) => AnalyseError::Parquet { path: path.to_owned(), source },
        }
    }
}
