//! What can be wrong with a configuration file.

use std::fmt;
use std::io;

use thiserror::Error;

/// Why a configuration file is refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It could not be read.
    #[error("cannot read the configuration file {file}")]
    Unreadable {
        /// Its name.
        file: String,
        /// The system's answer.
        source: io::Error,
    },
    /// It was read, and is wrong. Shown a line a problem, `FILE:LINE: what`.
    #[error("{}", listed(file, problems))]
    Wrong {
        /// Its name.
        file: String,
        /// Everything that is wrong with it, in the order of lines; at least one.
        problems: Vec<Problem>,
    },
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line of the file, from 1.
    pub line: usize,
    /// What it is.
    pub kind: ProblemKind,
}

/// What is wrong. Names are as the file has them.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProblemKind {
    /// Not TOML; nothing after it was looked at.
    #[error("not valid TOML: {message} (text stands in quotes)")]
    Syntax {
        /// The parser's message.
        message: String,
    },
    /// No such section.
    #[error("unknown section [{name}]{hint}")]
    UnknownSection {
        /// What was written.
        name: Name,
        /// What may have been meant.
        hint: Hint,
    },
    /// No such key in this section, or in any.
    #[error("unknown key {name}{hint}")]
    UnknownKey {
        /// What was written.
        name: Name,
        /// What may have been meant.
        hint: Hint,
    },
    /// A section's name with a value instead of keys.
    #[error("{section} is a section: write [{section}] on a line of its own, and its keys below it")]
    NotASection {
        /// The section.
        section: &'static str,
    },
    /// A value of the wrong type, or out of its range.
    #[error("{key} is {found}: expected {expected}")]
    WrongValue {
        /// The key.
        key: &'static str,
        /// What was written.
        found: Name,
        /// What was expected.
        expected: String,
    },
    /// A value that has words of its own for what is wrong with it.
    #[error("{key}: {reason}")]
    Refused {
        /// The key.
        key: &'static str,
        /// What is wrong.
        reason: Words,
    },
}

/// Text from the file, shown shortened and without control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(pub String);

/// A sentence that quotes the file, shown as a [`Name`] is but longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words(pub String);

/// What may have been meant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// Nothing known comes near.
    Nothing,
    /// A known name is written much the same.
    Nearest(&'static str),
    /// The key exists, in another section.
    BelongsIn(&'static str),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_harmless(f, &self.0, 40)
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_harmless(f, &self.0, 240)
    }
}

fn write_harmless(f: &mut fmt::Formatter<'_>, text: &str, longest: usize) -> fmt::Result {
    let mut characters = text.chars();
    for character in characters.by_ref().take(longest) {
        match character.is_control() {
            true => write!(f, "{}", character.escape_default())?,
            false => write!(f, "{character}")?,
        }
    }
    if characters.next().is_some() { f.write_str("...") } else { Ok(()) }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hint::Nothing => Ok(()),
            Hint::Nearest(name) => write!(f, "; did you mean {name}?"),
            Hint::BelongsIn(section) => write!(f, "; it belongs in [{section}]"),
        }
    }
}

fn listed(file: &str, problems: &[Problem]) -> String {
    let lines: Vec<String> =
        problems.iter().map(|problem| format!("{file}:{}: {}", problem.line, problem.kind)).collect();
    lines.join("\n")
}
