//! Rows of the report.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a name and its value.
pub(super) fn row(out: &mut impl Write, name: &str, value: impl Display) -> io::Result<()> {
    writeln!(out, "  {name:<12} {value}")
}
