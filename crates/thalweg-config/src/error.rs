//! Errors of configuration files.

use std::fmt;
use std::io;

use thiserror::Error;

use super::text::{Hint, Name, SafeText};

/// The maximum number of problems reported per file.
const MAX_REPORTED: usize = 32;

/// The reason why a file or a key is rejected.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The file cannot be read.
    #[error("cannot read the {file_kind} file {file}")]
    Unreadable {
        /// The kind of file.
        file_kind: &'static str,
        /// The name of the file.
        file: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is invalid.
    #[error(transparent)]
    Invalid(#[from] Problems),
    /// A key set on the command line is invalid.
    #[error("{flag}: {kind}")]
    Override {
        /// The text that the user typed.
        flag: String,
        /// The problem.
        kind: Box<ProblemKind>,
    },
}

/// The problems of a file. Displayed as one line per problem, `FILE:LINE: PROBLEM`.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}", lines_of(self))]
#[non_exhaustive]
pub struct Problems {
    /// The name of the file.
    pub file: String,
    /// The first problems in line order; at least one.
    pub problems: Vec<Problem>,
    /// The number of further problems.
    pub omitted: usize,
}

/// One problem of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The place of the problem.
    pub place: Place,
    /// The problem.
    pub kind: ProblemKind,
}

/// The place of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A line of the file, from 1.
    Line(usize),
    /// A flag of the command line, as typed.
    Flag(String),
}

/// A kind of problem. Names are as written in the file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProblemKind {
    /// Not valid TOML. Nothing after it was validated.
    #[error("invalid TOML: {message}")]
    Syntax {
        /// The message of the parser.
        message: SafeText,
    },
    /// Not valid JSON, or a duplicate key. Nothing else was validated.
    #[error("invalid JSON: {message}")]
    JsonSyntax {
        /// The message of the parser.
        message: SafeText,
    },
    /// An unknown section.
    #[error("unknown section \"{name}\"{hint}")]
    UnknownSection {
        /// The name in the file.
        name: Name,
        /// A suggestion.
        hint: Hint,
    },
    /// An unknown key.
    #[error("unknown key \"{name}\"{}{hint}", section.map(|section| format!(" in {section}")).unwrap_or_default())]
    UnknownKey {
        /// The name in the file.
        name: Name,
        /// The section, in files that may be JSON: there the line alone does not show it.
        section: Option<&'static str>,
        /// A suggestion.
        hint: Hint,
    },
    /// A key name that several sections share.
    #[error("\"{name}\" is ambiguous: write {}", choices.join(" or "))]
    Ambiguous {
        /// The name in the file.
        name: Name,
        /// The paths that it can mean.
        choices: Vec<String>,
    },
    /// A key name that several sections accept, none of which is in the file.
    #[error("\"{name}\" does not apply to {file}: {}", choices.join(", "))]
    NoSection {
        /// The name of the file.
        file: String,
        /// The name of the key.
        name: Name,
        /// What each key with this name requires.
        choices: Vec<String>,
    },
    /// A section written as a value.
    #[error("\"{section}\" is a section: write {heading} on its own line, and its keys below")]
    NotASection {
        /// The name of the section.
        section: &'static str,
        /// The correct heading.
        heading: String,
    },
    /// A section that repeats is not written as a list, in a file that may be JSON.
    #[error(
        "\"{section}\" is a list: write [[{section}]] on its own line for each element, and its keys below"
    )]
    NotAList {
        /// The name of the section.
        section: &'static str,
    },
    /// Too many sections of one name.
    #[error("{count} {heading} sections: at most {max} are allowed")]
    TooMany {
        /// The section.
        heading: String,
        /// The number of sections in the file.
        count: usize,
        /// The maximum.
        max: usize,
    },
    /// A required key is missing.
    #[error("missing key \"{key}\"{}: expected {expected}", section.as_ref().map(|section| format!(" in {section}")).unwrap_or_default())]
    MissingKey {
        /// The section, unless the key stands above all sections.
        section: Option<String>,
        /// The key.
        key: &'static str,
        /// The expected value.
        expected: String,
    },
    /// A key that does not apply to the selected choice.
    #[error("\"{key}\" does not apply to {what} \"{chosen}\", only to {}", choices.join(", "))]
    NotFor {
        /// The key.
        key: &'static str,
        /// What is chosen, such as `scheme`.
        what: &'static str,
        /// The selected choice.
        chosen: String,
        /// The choices to which the key applies.
        choices: Vec<&'static str>,
    },
    /// A value of the wrong type or out of range.
    #[error("{key} is {found}: expected {expected}{hint}")]
    WrongValue {
        /// The key.
        key: &'static str,
        /// The value in the file.
        found: Name,
        /// The expected value.
        expected: String,
        /// A suggestion.
        hint: Hint,
    },
    /// A selector that is none of the choices.
    #[error("unknown {what} \"{found}\": expected {expected}{hint}")]
    UnknownChoice {
        /// What is chosen, such as `scheme`.
        what: &'static str,
        /// The name in the file.
        found: Name,
        /// The known names.
        expected: String,
        /// A suggestion.
        hint: Hint,
    },
    /// A value rejected with its own reason.
    #[error("{}{reason}", if key.is_empty() { String::new() } else { format!("{key}: ") })]
    Refused {
        /// The key or section; empty if the reason stands alone.
        key: &'static str,
        /// The reason.
        reason: SafeText,
    },
}

impl Problems {
    /// Sorts the problems of a file by line, and keeps the first ones.
    pub(crate) fn new(file: &str, mut problems: Vec<Problem>) -> Problems {
        problems.sort_by(|a, b| a.place.cmp(&b.place));
        let omitted = problems.len().saturating_sub(MAX_REPORTED);
        problems.truncate(MAX_REPORTED);
        Problems { file: file.to_owned(), problems, omitted }
    }
}

impl Problem {
    /// Returns the line in the file, from 1; `None` for a problem of the command line.
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

fn lines_of(error: &Problems) -> String {
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
