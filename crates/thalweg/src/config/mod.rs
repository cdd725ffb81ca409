//! Configuration of `thalweg watch`: flags and file, merged with defaults and validated as a whole.
//!
//! | file | contents |
//! |---|---|
//! | `settings` | all settings by section, each declared once |
//! | `value` | types of values |
//! | `flags` | command-line flags of the settings |
//! | `resolve` | resolves flags, file and defaults to [`crate::watch::options::WatchOptions`] |
//! | `print` | the default file and the reference |
//!
//! **Precedence.** A flag overrides the file, the file overrides the default. A flag without effect is an error (`--tracks`
//! with the detector `cfinf`). A key without effect is ignored, so that one file can serve many runs. No file is read by
//! default.

mod flags;
mod print;
mod resolve;
pub mod settings;
pub mod value;

#[cfg(test)]
mod tests;

use std::path::Path;

use thalweg_config::Document;
pub use thalweg_config::DocumentError as ConfigError;

pub use flags::Flags;
pub use print::{default_file, reference};
pub use resolve::{OptionsError, Origin, Request, resolve};
use settings::{SCHEMA, keys};

/// A parsed configuration file. The default is empty.
#[derive(Clone, Debug)]
pub struct Config(Document);

impl Config {
    /// Reads and parses a file.
    ///
    /// # Errors
    /// If the file cannot be read, or as [`Config::parse`].
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        Document::load(&SCHEMA, path).map(Config)
    }

    /// Parses the text of a file; `file` is its name for messages.
    ///
    /// # Errors
    /// All unknown sections, unknown keys and invalid values; or the first syntax error.
    pub fn parse(text: &str, file: &str) -> Result<Config, ConfigError> {
        Document::parse(&SCHEMA, text, file).map(Config)
    }

    /// Returns the number of keys set.
    pub fn key_count(&self) -> usize {
        let is_set = |name| self.0.entries().iter().any(|entry| entry.is_set(name));
        keys().filter(|(_, key)| is_set(key.name)).count()
    }
}

impl Default for Config {
    fn default() -> Self {
        Config(Document::empty(&SCHEMA, ""))
    }
}
