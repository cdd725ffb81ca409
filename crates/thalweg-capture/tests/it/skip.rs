//! Skips tests that cannot run everywhere.

use std::fmt::Display;
use std::io::Write as _;

/// Prints why a test is skipped, directly to standard error, because the test runner hides the output of `eprintln!`.
pub(crate) fn skip(reason: impl Display) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    // A failure to print is ignored.
    let _ = std::io::stderr().write_all(format!("skipped: {name}: {reason}\n").as_bytes());
}
