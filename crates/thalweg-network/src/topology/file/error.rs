//! What can be wrong with a topology file.

use std::fmt;

use thiserror::Error;

use crate::state::{EntryError, StateError};
use crate::topology::TopologyError;

/// Most characters of a file that a message repeats.
const MAX_EXCERPT: usize = 80;

/// Why a file of a topology or a state is refused. Shown a line a problem, `FILE:LINE: what`.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}", listed(self))]
#[non_exhaustive]
pub struct TopologyFileError {
    /// Its name.
    pub file: String,
    /// What is wrong with it, in the order of lines; at least one.
    pub problems: Vec<Problem>,
    /// How many more problems there are.
    pub omitted: usize,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line of the file, from 1.
    pub line: usize,
    /// What it is.
    pub kind: ProblemKind,
}

/// What is wrong.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProblemKind {
    /// Not TOML; nothing after it was looked at.
    #[error("not valid TOML: {message} (text stands in quotes)")]
    Syntax {
        /// The parser's message.
        message: Excerpt,
    },
    /// Not JSON, or a key that is there twice; nothing else was looked at.
    #[error("not valid JSON: {message}")]
    JsonSyntax {
        /// The parser's message.
        message: Excerpt,
    },
    /// A section without which the rest says too little is not there.
    #[error("there is no section {section}: {purpose}")]
    MissingSection {
        /// The section.
        section: &'static str,
        /// What it says.
        purpose: &'static str,
    },
    /// No such section.
    #[error("unknown section {name}{hint}")]
    UnknownSection {
        /// What was written.
        name: Excerpt,
        /// What may have been meant.
        hint: Hint,
    },
    /// A section of which there is one is written otherwise.
    #[error("{section} is a section: write [{section}] on a line of its own, and its keys below it")]
    NotASection {
        /// The section.
        section: &'static str,
    },
    /// A section of which there may be several is written otherwise.
    #[error("{section} is a list: write [[{section}]] on a line of its own for each, and its keys below it")]
    NotAList {
        /// The section.
        section: &'static str,
    },
    /// No such key in this section.
    #[error("unknown key {key} of {section}{hint}")]
    UnknownKey {
        /// The section.
        section: &'static str,
        /// What was written.
        key: Excerpt,
        /// What may have been meant.
        hint: Hint,
    },
    /// A key that has no default is not there.
    #[error("{section} has no {key}: expected {key} = ...")]
    MissingKey {
        /// The section.
        section: &'static str,
        /// The key.
        key: &'static str,
    },
    /// A value that cannot be read.
    #[error("{key} is {found}: expected {expected}")]
    WrongValue {
        /// The key.
        key: &'static str,
        /// What was written.
        found: Excerpt,
        /// What was expected.
        expected: &'static str,
    },
    /// No router has this name.
    #[error("there is no router {name}{hint}")]
    UnknownRouter {
        /// What was written.
        name: Excerpt,
        /// What may have been meant.
        hint: Hint,
    },
    /// Read, but there is no such topology.
    #[error(transparent)]
    Refused(TopologyError),
    /// Read, but there can be no such entry of a forwarding table.
    #[error(transparent)]
    RefusedEntry(EntryError),
    /// Read, but there is no such state.
    #[error(transparent)]
    RefusedState(StateError),
}

/// Text from the file, shown shortened and with control characters escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt(pub String);

/// What may have been meant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// Nothing known comes near.
    Nothing,
    /// A known name is written much the same.
    Nearest(String),
    /// An endpoint has this name. Its link is written with the endpoint.
    IsEndpoint,
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut characters = self.0.chars();
        for character in characters.by_ref().take(MAX_EXCERPT) {
            match character.is_control() {
                true => write!(f, "{}", character.escape_default())?,
                false => write!(f, "{character}")?,
            }
        }
        if characters.next().is_some() { f.write_str("...") } else { Ok(()) }
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hint::Nothing => Ok(()),
            Hint::Nearest(name) => write!(f, "; did you mean {name}?"),
            Hint::IsEndpoint => f.write_str("; it is an endpoint, whose link is said by its key router"),
        }
    }
}

fn listed(error: &TopologyFileError) -> String {
    let TopologyFileError { file, problems, omitted } = error;
    let mut lines: Vec<String> =
        problems.iter().map(|problem| format!("{file}:{}: {}", problem.line, problem.kind)).collect();
    if *omitted > 0 {
        lines.push(format!("{file}: and {omitted} more"));
    }
    lines.join("\n")
}
