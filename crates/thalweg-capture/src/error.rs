//! The error of all packet sources.

use thalweg_linux::NamespaceError;
use thiserror::Error;

use crate::dpdk::DpdkError;
use crate::file::FileError;
use crate::filter::{FilterError, FilteredError};
use crate::live::LiveError;

/// Why a source could not be opened or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// An error of a file.
    #[error(transparent)]
    File(#[from] FileError),
    /// An error of an interface.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// An error of a DPDK port.
    #[error(transparent)]
    Dpdk(#[from] DpdkError),
    /// An error of a filter.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// An error of the interface's network namespace.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
}

impl From<FilteredError<FileError>> for CaptureError {
    fn from(error: FilteredError<FileError>) -> CaptureError {
        match error {
            FilteredError::Source(error) => CaptureError::File(error),
            FilteredError::Filter(error) => CaptureError::Filter(error),
        }
    }
}
