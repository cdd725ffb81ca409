//! Converts Rust errors to Python exceptions.

use std::io;
use std::path::Path;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use thalweg_records::read::ReadError;

/// Returns an `OSError`, or its subclass for the error number.
pub(crate) fn os_error(path: &Path, error: &io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, error.to_string(), path.to_owned())),
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}

/// Returns the exception for a file that cannot be read: `ValueError` for unexpected contents, else `OSError`.
pub(crate) fn read_error(error: &ReadError) -> PyErr {
    match error {
        ReadError::Io { path, source } => os_error(path, source),
        _ => PyValueError::new_err(error.to_string()),
    }
}
