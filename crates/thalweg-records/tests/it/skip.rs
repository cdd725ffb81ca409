//! Skips tests that cannot run everywhere.

use std::fmt::Display;
use std::io::Write as _;

/// Reports why a test is skipped, on standard error itself, because the test runner captures `eprintln!`.
pub(crate) fn skip(reason: impl Display) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    // Nothing else can be done if standard error is closed.
    let _ = std::io::stderr().write_all(format!("skipped: {name}: {reason}\n").as_bytes());
}
