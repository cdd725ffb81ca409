//! Experiment files: TOML that describes an emulated experiment.
//!
//! | module | contents |
//! |---|---|
//! | `table` | all sections and keys |
//! | `schemes` | the section of the emulator's schemes |
//! | `own_scheme` | schemes that a program adds |
//! | `print` | the reference |
//!
//! An [`Experiment`] has the values in the file, each checked on its own. [`Plan`](super::plan::Plan) checks what they
//! mean together.

pub mod own_scheme;
mod print;
pub mod schemes;
pub mod table;
#[cfg(test)]
mod tests;

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::LazyLock;

use own_scheme::Scheme;
pub use print::reference;
use table::{SECTIONS, TRANSPORT};

use thalweg_config::{Declared, Document, Schema, Section};
pub use thalweg_config::{DocumentError as ExperimentError, Entry, Place, Problem, ProblemKind};

/// The sections of experiment files.
pub static SCHEMA: LazyLock<Schema> =
    LazyLock::new(|| Schema { default_choice, ..Schema::new("experiment", &*SECTIONS) });

/// A parsed experiment file.
#[derive(Clone, Debug)]
pub struct Experiment(Document);

impl Experiment {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, and as [`Experiment::parse`].
    pub fn load(path: &Path) -> Result<Experiment, ExperimentError> {
        Document::load(&SCHEMA, path).map(Experiment)
    }

    /// Parses the text of a file; `file` is its name for messages.
    ///
    /// # Errors
    /// All unknown sections and keys, and invalid or missing values; or the first syntax error.
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

/// The transport that a scheme was designed for.
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
