//! What can be wrong with a document.

use std::fmt;
use std::io;

use thiserror::Error;

use super::text::{Hint, Name, Words};

/// Most problems that are told of one file.
const MOST_TOLD: usize = 32;

/// Why a document is refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// Its file could not be read.
    #[error("cannot read the {what} file {file}")]
    Unreadable {
        /// What kind of file.
        what: &'static str,
        /// Its name.
        file: String,
        /// The system's answer.
        source: io::Error,
    },
    /// It was read, and is wrong. Shown a line a problem, `FILE:LINE: what`.
    #[error("{}", listed(file, problems))]
    Wrong {
        /// Name of the file.
        file: String,
        /// Everything that is wrong with it, in the order of lines; at least one.
        problems: Vec<Problem>,
    },
    /// A key that is set from outside is wrong.
    #[error("{flag}: {kind}")]
    Override {
        /// What was typed.
        flag: String,
        /// What is wrong with it.
        kind: ProblemKind,
    },
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it was written.
    pub place: Place,
    /// What it is.
    pub kind: ProblemKind,
}

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// On a line of the file, counted from 1.
    Line(usize),
    /// On the command line.
    Flag(String),
}

/// What is wrong. Names are as the file has them.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProblemKind {
    /// Not TOML; nothing after it was looked at.
    #[error("not valid TOML: {message} (text stands in quotes)")]
    Syntax {
        /// The parser's message.
        message: Words,
    },
    /// No such section.
    #[error("unknown section {name}{hint}")]
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
    /// A key name that several sections have.
    #[error("{name} may be {}: write one of them", choices.join(" or "))]
    Ambiguous {
        /// What was written.
        name: Name,
        /// What it may be.
        choices: Vec<String>,
    },
    /// A section that is written as something else.
    #[error("{section} is a section: write {heading} on a line of its own, and its keys below it")]
    NotASection {
        /// Its name.
        section: &'static str,
        /// As it is to be written.
        heading: String,
    },
    /// A key that must be there and is not.
    #[error("{heading} has no {key}: expected {expected}")]
    MissingKey {
        /// The section.
        heading: String,
        /// The key.
        key: &'static str,
        /// What was expected.
        expected: String,
    },
    /// A key of another thing than the one that is selected.
    #[error("{key} is not for {chosen}: it is for {}", of.join(", "))]
    NotFor {
        /// The key.
        key: &'static str,
        /// What is selected.
        chosen: String,
        /// What it is for.
        of: Vec<&'static str>,
    },
    /// A value of the wrong type, or out of its range.
    #[error("{key} is {found}: expected {expected}{hint}")]
    WrongValue {
        /// The key.
        key: &'static str,
        /// What was written.
        found: Name,
        /// What was expected.
        expected: String,
        /// What may have been meant.
        hint: Hint,
    },
    /// A value that has words of its own for what is wrong with it.
    #[error("{}{reason}", if key.is_empty() { String::new() } else { format!("{key}: ") })]
    Refused {
        /// The key or section; empty if it is about the whole.
        key: &'static str,
        /// What is wrong.
        reason: Words,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Line(line) => write!(f, "{line}: {}", self.kind),
            Place::Flag(flag) => write!(f, "{}: {}", Name(flag.clone()), self.kind),
        }
    }
}

fn listed(file: &str, problems: &[Problem]) -> String {
    let of_file = |problem: &Problem| match problem.place {
        Place::Line(_) => format!("{file}:{problem}"),
        Place::Flag(_) => problem.to_string(),
    };
    let mut lines: Vec<String> = problems.iter().take(MOST_TOLD).map(of_file).collect();
    if problems.len() > MOST_TOLD {
        lines.push(format!("and {} more", problems.len() - MOST_TOLD));
    }
    lines.join("\n")
}
