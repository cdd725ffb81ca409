//! Experiment files: TOML that says what is emulated.
//!
//! | file | what it has |
//! |---|---|
//! | `table` | all sections and keys, which make an experiment a kind of [`Document`] |
//! | `print` | the reference |
//!
//! An [`Experiment`] holds what was written, checked value by value. What the values mean together is
//! [`Plan`](super::plan::Plan)'s to say.

mod print;
pub mod table;
#[cfg(test)]
mod tests;

use std::ops::{Deref, DerefMut};
use std::path::Path;

pub use print::reference;
use table::{SECTIONS, Scheme, TRANSPORT};

use thalweg_config::{Declared, Document, Schema, Section};
pub use thalweg_config::{DocumentError as ExperimentError, Entry, Place, Problem, ProblemKind};

/// What an experiment file may say.
pub static SCHEMA: Schema = Schema { default_choice, ..Schema::new("experiment", &SECTIONS) };

/// What an experiment file says.
#[derive(Clone, Debug)]
pub struct Experiment(Document);

impl Experiment {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or as [`Experiment::parse`].
    pub fn load(path: &Path) -> Result<Experiment, ExperimentError> {
        Document::load(&SCHEMA, path).map(Experiment)
    }

    /// Reads the text of a file; `file` is its name for messages.
    ///
    /// # Errors
    /// With every unknown section, unknown key, wrong or missing value; or with the first error of syntax.
    pub fn parse(text: &str, file: &str) -> Result<Experiment, ExperimentError> {
        Document::parse(&SCHEMA, text, file).map(Experiment)
    }
}

impl Deref for Experiment {
    type Target = Document;

    fn deref(&self) -> &Document {
        &self.0
    }
}

impl DerefMut for Experiment {
    fn deref_mut(&mut self) -> &mut Document {
        &mut self.0
    }
}

/// The transport for which a scheme was made.
fn default_choice(experiment: &Document, section: &'static Section) -> &'static str {
    if !std::ptr::eq(section, &TRANSPORT) {
        return "";
    }
    match experiment.chosen(Scheme::section()) {
        "dctcp" | "hull" => "dctcp",
        "pfabric" => "pfabric",
        _ => "cubic",
    }
}
