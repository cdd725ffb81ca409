//! What stands between the colons of a task, and why it could not be read.

use thalweg_wire::Nanos;
use thiserror::Error;

use super::key::ParseKeyError;
use super::weight::Share;

/// Why a task could not be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseTaskError {
    /// No task of this name.
    #[error("unknown task `{name}`{}: expected one of {}", hint(*.nearest), known.join(", "))]
    UnknownTask {
        /// What was given.
        name: String,
        /// What may have been meant.
        nearest: Option<&'static str>,
        /// The names that there are.
        known: Vec<&'static str>,
    },
    /// Something that the task cannot do without is missing, or is not as it should be.
    #[error("{task}{}: expected {expected}", what_was(.found))]
    Wrong {
        /// The task.
        task: &'static str,
        /// What was given; empty if nothing was.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// What follows is neither a key nor a weight.
    #[error("{task}: {error}, or packets or bytes")]
    Key {
        /// The task.
        task: &'static str,
        /// What is wrong with it as a key.
        error: ParseKeyError,
    },
    /// The task has no use for this.
    #[error("{task}: `{found}` is not for this task: expected {expected}")]
    Useless {
        /// The task.
        task: &'static str,
        /// What was given.
        found: String,
        /// What may be given.
        expected: &'static str,
    },
    /// A key or a weight was given twice.
    #[error("{task}: `{found}` comes after another of its kind: expected one key and one of packets, bytes")]
    Twice {
        /// The task.
        task: &'static str,
        /// What was given second.
        found: String,
    },
}

fn what_was(found: &str) -> String {
    if found.is_empty() { String::new() } else { format!(" has `{found}`") }
}

/// What is expected where a share is missing.
pub(super) const SHARE: &str = "a share of all traffic above 0 and up to 100%, as in 0.1%";

/// What stands behind the name of a task, between colons.
pub(super) struct Fields<'a> {
    task: &'static str,
    rest: std::str::Split<'a, char>,
}

impl<'a> Fields<'a> {
    /// What stands behind the name of `task`.
    pub(super) fn new(task: &'static str, rest: std::str::Split<'a, char>) -> Fields<'a> {
        Fields { task, rest }
    }

    /// The next field; `None` behind the last.
    pub(super) fn next(&mut self) -> Option<&'a str> {
        self.rest.next().map(str::trim)
    }

    /// The first field, which the task cannot do without.
    ///
    /// # Errors
    /// That something else was expected, if there is none or `read` cannot read it.
    pub(super) fn first<T>(
        &mut self,
        expected: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ParseTaskError> {
        let (task, field) = (self.task, self.next().unwrap_or_default());
        read(field).ok_or_else(|| ParseTaskError::Wrong { task, found: field.to_owned(), expected })
    }
}

/// Reads `0.1%` or `0.001`.
pub(super) fn share(text: &str) -> Option<Share> {
    let number = |text: &str| text.trim_end().parse::<f64>().ok();
    let percent = match text.strip_suffix('%') {
        Some(percent) => number(percent)?,
        None => number(text)? * 100.0,
    };
    Share::from_percent(percent)
}

/// A period in the largest unit of which it is a multiple.
pub(super) fn period_text(period: Nanos) -> String {
    const UNITS: [(u64, &str); 4] =
        [(60_000_000_000, "m"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    match UNITS.iter().find(|(size, _)| period.0.is_multiple_of(*size)) {
        Some((size, unit)) => format!("{}{unit}", period.0 / size),
        None => format!("{}ns", period.0),
    }
}

/// `(did you mean heavy?)`, for an error; nothing if there is no guess.
pub(super) fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean {name}?)"))
}
