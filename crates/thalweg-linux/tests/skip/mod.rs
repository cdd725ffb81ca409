//! For tests that cannot run everywhere.

use std::fmt::Display;
use std::io::Write as _;

/// Says why a test is skipped: on standard error itself, for the test runner hides what `eprintln!` writes.
pub(crate) fn skip(reason: impl Display) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    // Nobody is left to tell.
    let _ = std::io::stderr().write_all(format!("skipped: {name}: {reason}\n").as_bytes());
}
