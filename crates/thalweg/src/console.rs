//! Global output options: colours, progress bars and messages on standard error.

use std::ffi::OsStr;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use clap::ColorChoice;

/// How much to write to standard error. Errors and warnings are always written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// No progress bars and no notes.
    Quiet,
    /// Progress bars on a terminal, and notes.
    #[default]
    Normal,
    /// The logs of all parts as well.
    Verbose,
}

static PROGRAM: OnceLock<&'static str> = OnceLock::new();
static COLOR: OnceLock<ColorChoice> = OnceLock::new();
static VERBOSITY: OnceLock<Verbosity> = OnceLock::new();

/// Sets the options of this process, once.
pub(crate) fn set(color: ColorChoice, verbosity: Verbosity) {
    let _ = COLOR.set(color);
    let _ = VERBOSITY.set(verbosity);
}

/// Sets the name of the program in messages, once; it is `thalweg` otherwise.
pub(crate) fn set_program(name: &'static str) {
    let _ = PROGRAM.set(name);
}

fn program() -> &'static str {
    PROGRAM.get().copied().unwrap_or("thalweg")
}

/// Whether to use colours. `--color` overrides the environment variable `NO_COLOR` (no-color.org).
pub(crate) fn has_colors() -> bool {
    has_colors_with(COLOR.get().copied().unwrap_or_default(), std::env::var_os("NO_COLOR").as_deref())
}

fn has_colors_with(color: ColorChoice, no_color: Option<&OsStr>) -> bool {
    match color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => no_color.is_none_or(OsStr::is_empty),
    }
}

fn verbosity() -> Verbosity {
    VERBOSITY.get().copied().unwrap_or_default()
}

/// Whether to show progress bars: on a terminal, unless quiet.
pub(crate) fn shows_progress() -> bool {
    verbosity() != Verbosity::Quiet && io::stderr().is_terminal()
}

/// Writes an error to standard error.
pub(crate) fn error(text: impl Display) {
    write_line(format_args!("{}: {text}", program()));
}

/// Writes a warning to standard error.
pub(crate) fn warn(text: impl Display) {
    write_line(format_args!("{}: warning: {text}", program()));
}

/// Writes a note to standard error, unless quiet.
pub(crate) fn note(text: impl Display) {
    if verbosity() != Verbosity::Quiet {
        write_line(text);
    }
}

/// Ignores errors: `eprintln!` panics if the reader of a pipe is gone.
fn write_line(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_color_option_overrides_no_color() {
        let empty = Some(OsStr::new(""));
        let set = Some(OsStr::new("1"));
        assert!(has_colors_with(ColorChoice::Auto, None) && has_colors_with(ColorChoice::Auto, empty));
        assert!(!has_colors_with(ColorChoice::Auto, set));
        assert!(has_colors_with(ColorChoice::Always, set) && !has_colors_with(ColorChoice::Never, None));
    }
}
