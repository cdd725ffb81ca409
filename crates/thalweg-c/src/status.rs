//! What a function returns, and the text of the last error.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use thalweg_sketch::any::AnyError;
use thiserror::Error;

/// What a function returns.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// An argument is null, out of range, or contradicts another.
    InvalidArgument = 1,
    /// This kind of sketch does not answer the question.
    Unanswered = 2,
    /// Two sketches differ in kind, shape, counters, seed or candidates, so they cannot be combined.
    Mismatch = 3,
    /// The bytes are not the state of a sketch with counters.
    InvalidState = 4,
    /// A defect of the library. Free the sketch: its counts may be wrong.
    Defect = 5,
    /// The system does not give that much memory.
    OutOfMemory = 6,
}

/// Why a call failed.
#[derive(Debug, Error)]
pub(crate) enum CallError {
    /// A pointer is null.
    #[error("`{0}` is null")]
    Null(&'static str),
    /// A field of the options is out of range.
    #[error("{name} = {value}: expected {expected}")]
    Option {
        /// The field.
        name: &'static str,
        /// Its value.
        value: u64,
        /// What it may be.
        expected: &'static str,
    },
    /// Text is not UTF-8.
    #[error("`{0}` is not UTF-8")]
    NotText(&'static str),
    /// One sketch twice.
    #[error("a sketch cannot be {action} itself")]
    Same {
        /// What was asked for.
        action: &'static str,
    },
    /// A product of counts and lengths exceeds the address space.
    #[error("{count} keys of {key_bytes} bytes: more than the address space")]
    TooLong {
        /// The number of keys.
        count: usize,
        /// The length of each.
        key_bytes: usize,
    },
    /// The sketch refuses.
    #[error(transparent)]
    Sketch(#[from] AnyError),
}

impl CallError {
    fn status(&self) -> Status {
        match self {
            CallError::Sketch(AnyError::Unanswered { .. }) => Status::Unanswered,
            CallError::Sketch(AnyError::Combine(_)) => Status::Mismatch,
            CallError::Sketch(AnyError::OutOfMemory { .. }) => Status::OutOfMemory,
            CallError::Sketch(AnyError::State(_) | AnyError::NotLinear { .. }) => Status::InvalidState,
            _ => Status::InvalidArgument,
        }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs the body of a function: its error becomes a status and the thread's last text.
pub(crate) fn guarded(body: impl FnOnce() -> Result<(), CallError>) -> Status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(error)) => {
            remember(&error.to_string());
            error.status()
        }
        Err(_) => {
            remember("a defect of the library: the sketch must not be used again");
            Status::Defect
        }
    }
}

fn remember(text: &str) {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // A thread that ends has no last error.
    let _ = LAST.try_with(|last| *last.borrow_mut() = text);
}

/// Returns the text of the last failure of this thread, empty if there was none. It is valid until the thread's next call
/// that fails.
#[unsafe(no_mangle)]
pub extern "C" fn thalweg_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Returns the version of the library, such as "0.1.0". Symbols have versions of their own, THALWEG_1 and later, so a program
/// runs with every later library of the same major version.
#[unsafe(no_mangle)]
pub extern "C" fn thalweg_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    match CStr::from_bytes_with_nul(VERSION.as_bytes()) {
        Ok(version) => version.as_ptr(),
        Err(_) => c"".as_ptr(),
    }
}
