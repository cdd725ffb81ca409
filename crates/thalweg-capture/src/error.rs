//! Why packets cannot be captured.

use thalweg_linux::NamespaceError;
use thiserror::Error;

use crate::file::FileError;
use crate::filter::{FilterError, FilteredError};
use crate::live::LiveError;

/// Why a source could not be opened, or could not go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// Of a file.
    #[error(transparent)]
    File(#[from] FileError),
    /// Of an interface.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// Of a filter.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// Of the interface's network namespace.
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
