//! What goes wrong in Rust as what Python knows.

use std::io;
use std::path::Path;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use thalweg_records::read::ReadError;

/// `OSError`, or the kind of it that the number says, for what the system refused.
pub(crate) fn refused(path: &Path, error: &io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, error.to_string(), path.to_owned())),
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}

/// A file of records that cannot be read: `ValueError` where it is not as expected.
pub(crate) fn reading(error: &ReadError) -> PyErr {
    match error {
        ReadError::Io { path, source } => refused(path, source),
        _ => PyValueError::new_err(error.to_string()),
    }
}
