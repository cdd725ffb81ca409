//! Skips tests that cannot run on this machine.

use std::fmt::Display;
use std::io::Write as _;

/// Reports a skipped test on standard error directly, because the test runner captures `eprintln!`.
pub(crate) fn skip(reason: impl Display) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    // Standard error is closed: nowhere to report.
    let _ = std::io::stderr().write_all(format!("skipped: {name}: {reason}\n").as_bytes());
}
