//! What can be wrong with a file.

use std::fmt;
use std::io;

use thiserror::Error;

use super::text::{Hint, Name, Words};

/// Most problems that are reported of one file.
const MAX_REPORTED: usize = 32;

/// Why a file is refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// It could not be read.
    #[error("cannot read the {what} file {file}")]
    Unreadable {
        /// What kind of file.
        what: &'static str,
        /// Its name.
        file: String,
        /// The system's answer.
        source: io::Error,
    },
    /// It was read, and is wrong.
    #[error(transparent)]
    Wrong(#[from] Problems),
    /// A key that is set from outside is wrong.
    #[error("{flag}: {kind}")]
    Override {
        /// What was typed.
        flag: String,
        /// What is wrong with it.
        kind: ProblemKind,
    },
}

/// What is wrong with a file. Shown a line a problem, `FILE:LINE: what`.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}", listed(self))]
#[non_exhaustive]
pub struct Problems {
    /// Name of the file.
    pub file: String,
    /// The first problems, in the order of lines; at least one.
    pub problems: Vec<Problem>,
    /// How many more problems there are.
    pub omitted: usize,
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
    /// Not JSON, or a key that is there twice; nothing else was looked at.
    #[error("not valid JSON: {message}")]
    JsonSyntax {
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
    #[error("unknown key {name}{}{hint}", of.map(|of| format!(" of {of}")).unwrap_or_default())]
    UnknownKey {
        /// What was written.
        name: Name,
        /// The section, in files that may be JSON, where lines alone do not show it.
        of: Option<&'static str>,
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
    /// A section of which there may be several is written otherwise, in a file that may be JSON.
    #[error("{section} is a list: write [[{section}]] on a line of its own for each, and its keys below it")]
    NotAList {
        /// Its name.
        section: &'static str,
    },
    /// More sections of one name than there may be.
    #[error("there are {count} {heading}: {most} are the most")]
    TooMany {
        /// The section.
        heading: String,
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
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

impl Problems {
    /// Those of a file, which are put in order.
    pub(crate) fn new(file: &str, mut problems: Vec<Problem>) -> Problems {
        problems.sort_by(|a, b| a.place.cmp(&b.place));
        let omitted = problems.len().saturating_sub(MAX_REPORTED);
        problems.truncate(MAX_REPORTED);
        Problems { file: file.to_owned(), problems, omitted }
    }
}

impl Problem {
    /// The line of the file, from 1; `None` if it is about the command line.
    pub fn line(&self) -> Option<usize> {
        match self.place {
            Place::Line(line) => Some(line),
            Place::Flag(_) => None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Line(line) => write!(f, "{line}: {}", self.kind),
            Place::Flag(flag) => write!(f, "{}: {}", Name(flag.clone()), self.kind),
        }
    }
}

fn listed(error: &Problems) -> String {
    let Problems { file, problems, omitted } = error;
    let of_file = |problem: &Problem| match problem.place {
        Place::Line(_) => format!("{file}:{problem}"),
        Place::Flag(_) => problem.to_string(),
    };
    let mut lines: Vec<String> = problems.iter().map(of_file).collect();
    if *omitted > 0 {
        lines.push(format!("{file}: and {omitted} more"));
    }
    lines.join("\n")
}
