//! Errors of a filter, with line and column.

use thiserror::Error;

use super::{MAX_DEPTH, MAX_LENGTH};

/// Maximum length of a quoted word in a message, in characters.
const MAX_QUOTED: usize = 40;

/// A syntax error, or a term that the view does not have.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("filter, {}", self.message())]
pub struct FilterError {
    /// The line, from 1; `None` if the filter has one line.
    pub line: Option<usize>,
    /// The column, in characters from 1.
    pub column: usize,
    /// The kind of error.
    pub kind: FilterErrorKind,
}

/// The kind of a filter error.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterErrorKind {
    /// A character that starts no word.
    #[error("unexpected '{character}'")]
    Character {
        /// The character.
        character: char,
    },
    /// A word that cannot stand here.
    #[error("expected {what}, found {found}{}", suggestion(*nearest))]
    Expected {
        /// What the parser expected.
        what: String,
        /// What it found: a word in quotes, or `the end`.
        found: String,
        /// The most similar known word.
        nearest: Option<&'static str>,
    },
    /// A number beyond the range of its field.
    #[error("{number} is above the maximum of {max}")]
    TooLarge {
        /// The number as written.
        number: String,
        /// The largest value of the field.
        max: u64,
    },
    /// A list without elements.
    #[error("the list is empty")]
    EmptyList,
    /// More nesting than [`MAX_DEPTH`].
    #[error("more than {MAX_DEPTH} nested parentheses and negations")]
    TooDeep,
    /// More text than [`MAX_LENGTH`].
    #[error("the filter is longer than {MAX_LENGTH} characters")]
    TooLong,
    /// A term of the language that this view does not have.
    #[error("'{term}' is not known here; known: {known}")]
    NotKnownHere {
        /// The term.
        term: String,
        /// The terms of the view.
        known: String,
    },
}

impl FilterError {
    /// Creates an error at a position in `text`, in characters from 0.
    pub(super) fn at(text: &str, place: usize, kind: FilterErrorKind) -> FilterError {
        let (mut line, mut line_start) = (1, 0);
        for (index, character) in text.chars().enumerate().take(place) {
            if character == '\n' {
                (line, line_start) = (line + 1, index + 1);
            }
        }
        FilterError { line: text.contains('\n').then_some(line), column: place - line_start + 1, kind }
    }

    /// Returns the position and the error, for a message that already names the filter.
    pub fn message(&self) -> String {
        match self.line {
            Some(line) => format!("line {line}, column {}: {}", self.column, self.kind),
            None => format!("column {}: {}", self.column, self.kind),
        }
    }

    /// Returns the erroneous line of `text` and a mark under the column, each indented by two blanks.
    pub fn excerpt(&self, text: &str) -> String {
        let line = text.split('\n').nth(self.line.unwrap_or(1) - 1).unwrap_or_default();
        format!("  {line}\n  {}^", " ".repeat(self.column - 1))
    }
}

impl FilterErrorKind {
    /// Returns the name of the kind in `tests/filter-cases.toml`.
    pub const fn name(&self) -> &'static str {
        match self {
            FilterErrorKind::Character { .. } => "character",
            FilterErrorKind::Expected { .. } => "expected",
            FilterErrorKind::TooLarge { .. } => "too_large",
            FilterErrorKind::EmptyList => "empty_list",
            FilterErrorKind::TooDeep => "too_deep",
            FilterErrorKind::TooLong => "too_long",
            FilterErrorKind::NotKnownHere { .. } => "not_known_here",
        }
    }
}

fn suggestion(nearest: Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |known| format!("; did you mean '{known}'?"))
}

/// Returns a word as messages show it: without control characters, cut after [`MAX_QUOTED`] characters.
pub(super) fn shown(word: &str) -> String {
    let plain = |character: char| if character.is_control() { '?' } else { character };
    let mut text: String = word.chars().take(MAX_QUOTED).map(plain).collect();
    if word.chars().nth(MAX_QUOTED).is_some() {
        text.push_str("...");
    }
    text
}
