//! What is meant: flags and configuration file, merged over the defaults and validated whole.
//!
//! | file | what it has |
//! |---|---|
//! | `settings` | what can be set, by flag or by file, every value optional |
//! | `value` | how each kind of value is written |
//! | `key` | the table of all keys, which drives everything below |
//! | `parse` | a configuration file to [`Config`] |
//! | `error` | what can be wrong with one |
//! | `resolve` | flags over file over defaults to [`crate::watch::options::WatchOptions`] |
//! | `print` | the default file and the reference |
//!
//! **Precedence.** A flag overrides the file, the file overrides the default. A flag that has no effect is
//! refused (`--tracks` with the detector `cfinf`); a key of the file waits until it is needed, so that one file
//! can serve many runs. No file is read unless it is named.

mod error;
pub mod key;
mod parse;
pub(crate) mod print;
mod resolve;
pub mod settings;
pub mod value;

#[cfg(test)]
mod tests;

pub use error::{ConfigError, Hint, Name, Problem, ProblemKind, Words};
pub use parse::Config;
pub use print::{default_file, reference};
pub use resolve::{OptionsError, Origin, Request, resolve};
