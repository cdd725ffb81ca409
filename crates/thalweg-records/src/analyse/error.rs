//! Errors of an analysis.

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

use crate::read::{ReadError, system_error};

/// Why an analysis failed. Partial results are removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalyseError {
    /// A file of records cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file cannot be written or renamed, or a spill file cannot be read back.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Results cannot be encoded.
    #[error("{}: {source}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Error of the encoder.
        source: ParquetError,
    },
    /// The kernel provided no memory for records.
    #[error("cannot allocate memory for records: {0}")]
    Memory(#[source] io::Error),
    /// More observation points than plausible.
    #[error("{}: too many observation points (exporter, domain, direction): more than {limit}", path.display())]
    ObservationPoints {
        /// The file that exceeds the limit.
        path: PathBuf,
        /// The limit.
        limit: usize,
    },
    /// An option is out of range.
    #[error("{option}: expected {expected}, found {found}")]
    Option {
        /// Name of the option.
        option: &'static str,
        /// Accepted range.
        expected: &'static str,
        /// Value that was given.
        found: String,
    },
    /// The progress callback stopped the analysis.
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
