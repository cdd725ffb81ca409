//! `thalweg sketch`: shows, merges and compares saved sketches.
//!
//! Reads the files of `thalweg watch --save-sketches`, or of any program that writes the format of
//! `docs/reference/sketch-state.md`. Known kinds of keys are shown by name, others in hexadecimal.

mod diff;
mod file;
mod json;
mod names;
mod show;
mod table;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use thalweg_sketch::state::CombineError;

use file::State;

/// Output options.
#[derive(Clone, Copy, Debug)]
pub struct Listing {
    /// Maximum rows of lists of keys.
    pub top: usize,
    /// Whether to write JSON lines instead of text.
    pub json: bool,
}

/// Shows the contents of each file.
///
/// # Errors
/// If a file cannot be read, is not a sketch, or `out` cannot be written.
pub fn show(files: &[PathBuf], listing: Listing, out: &mut impl Write) -> anyhow::Result<()> {
    for (number, file) in files.iter().enumerate() {
        let state = State::read(file)?;
        match listing.json {
            true => json::line(out, &json::StateLine::of(&state, listing.top)),
            false => {
                let between = if number > 0 { writeln!(out) } else { Ok(()) };
                between.and_then(|()| show::write(out, &state, listing.top))
            }
        }
        .context("cannot write to standard output")?;
    }
    Ok(())
}

/// Merges all files into `output`; `label` replaces their labels.
///
/// # Errors
/// If a file cannot be read, is not a sketch, cannot be merged with the previous ones, or `output` cannot be written.
pub fn merge(files: &[PathBuf], output: &Path, label: Option<String>) -> anyhow::Result<()> {
    let [first, rest @ ..] = files else { anyhow::bail!("nothing to merge") };
    let mut whole = State::read(first)?;
    for file in rest {
        let part = State::read(file)?;
        whole.merge(&part).map_err(|error| unlike("merge", &whole, &part, &error))?;
    }
    if let Some(label) = label {
        whole.meta.label = label;
    }
    whole.write(output)
}

/// Returns the error for two sketches that cannot be combined.
fn unlike(verb: &str, one: &State, other: &State, error: &CombineError) -> anyhow::Error {
    let (one, other) = (&one.name, &other.name);
    anyhow!(
        "cannot {verb} {one} and {other}: {error}; expected sketches of the same task, written with the same --memory, \
         --threads, --keep-windows and --seed"
    )
}

/// Shows what changed between two sketches.
///
/// # Errors
/// If a file cannot be read, is not a sketch, the two cannot be compared, or `out` cannot be written.
pub fn diff(before: &Path, now: &Path, listing: Listing, out: &mut impl Write) -> anyhow::Result<()> {
    let (earlier, later) = (State::read(before)?, State::read(now)?);
    let difference = diff::Difference::between(&earlier, &later)
        .map_err(|error| unlike("compare", &earlier, &later, &error))?;
    match listing.json {
        true => json::line(out, &json::DifferenceLine::of(&difference, listing.top)),
        false => diff::write(out, &difference, listing.top),
    }
    .context("cannot write to standard output")
}
