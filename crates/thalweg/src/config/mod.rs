//! What is meant by `thalweg watch`: flags and configuration file, merged over the defaults and validated whole.
//!
//! | file | what it has |
//! |---|---|
//! | `settings` | what can be set, by flag or by file: all sections, each declared once |
//! | `value` | values that have a type of their own |
//! | `flags` | the flags that set the same |
//! | `resolve` | flags over file over defaults to [`crate::watch::options::WatchOptions`] |
//! | `print` | the default file and the reference |
//!
//! **Precedence.** A flag overrides the file, the file overrides the default. A flag that has no effect is
//! refused (`--tracks` with the detector `cfinf`); a key of the file waits until it is needed, so that one file
//! can serve many runs. No file is read unless it is named.

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

/// What a configuration file sets. The default is that of no file: nothing.
#[derive(Clone, Debug)]
pub struct Config(Document);

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or as [`Config::parse`].
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        Document::load(&SCHEMA, path).map(Config)
    }

    /// Reads the text of a file; `file` is its name for messages.
    ///
    /// # Errors
    /// With every unknown section, unknown key and wrong value; or with the first error of syntax.
    pub fn parse(text: &str, file: &str) -> Result<Config, ConfigError> {
        Document::parse(&SCHEMA, text, file).map(Config)
    }

    /// Number of keys that it sets.
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
