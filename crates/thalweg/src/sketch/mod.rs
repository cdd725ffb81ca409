//! `thalweg sketch`: saved states, shown, put together and compared.
//!
//! States are those of `thalweg watch --save-states`, or of any program that writes the format of
//! `docs/reference/sketch-state.md`. What the keys are is read off the state: those of our own definitions are shown as
//! people write them, others in hexadecimal.

mod diff;
mod file;
mod json;
mod names;
mod show;
mod table;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;

use file::State;

/// What is said of states, and how.
#[derive(Clone, Copy, Debug)]
pub struct Listing {
    /// Rows of lists of keys.
    pub top: usize,
    /// JSON, one line a state, instead of text.
    pub json: bool,
}

/// Tells what is in each file.
///
/// # Errors
/// If a file cannot be read, is no state, or `out` cannot be written to.
pub fn show(files: &[PathBuf], telling: Listing, out: &mut impl Write) -> anyhow::Result<()> {
    for (number, file) in files.iter().enumerate() {
        let state = State::read(file)?;
        match telling.json {
            true => json::line(out, &json::StateLine::of(&state, telling.top)),
            false => {
                let between = if number > 0 { writeln!(out) } else { Ok(()) };
                between.and_then(|()| show::write(out, &state, telling.top))
            }
        }
        .context("cannot write to standard output")?;
    }
    Ok(())
}

/// Writes the state of all files together to `output`; `label` takes the place of theirs.
///
/// # Errors
/// If a file cannot be read, is no state, or cannot be merged with those before, or `output` cannot be written.
pub fn merge(files: &[PathBuf], output: &Path, label: Option<String>) -> anyhow::Result<()> {
    let [first, rest @ ..] = files else { anyhow::bail!("nothing to merge") };
    let mut whole = State::read(first)?;
    for file in rest {
        let part = State::read(file)?;
        whole.merge(&part).with_context(|| format!("{} and {} cannot be merged", whole.name, part.name))?;
    }
    if let Some(label) = label {
        whole.meta.label = label;
    }
    whole.write(output)
}

/// Tells what changed from one state to another.
///
/// # Errors
/// If a file cannot be read, is no state, the two cannot be compared, or `out` cannot be written to.
pub fn diff(before: &Path, now: &Path, telling: Listing, out: &mut impl Write) -> anyhow::Result<()> {
    let (earlier, later) = (State::read(before)?, State::read(now)?);
    let difference = diff::Difference::between(&earlier, &later)
        .with_context(|| format!("{} and {} cannot be compared", earlier.name, later.name))?;
    match telling.json {
        true => json::line(out, &json::DifferenceLine::of(&difference, telling.top)),
        false => diff::write(out, &difference, telling.top),
    }
    .context("cannot write to standard output")
}
