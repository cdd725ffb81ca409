//! The colon-separated fields of a task, and the errors of parsing them.

use thalweg_wire::Nanos;
use thiserror::Error;

use super::key::ParseKeyError;
use super::weight::Share;

/// Why a task could not be parsed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseTaskError {
    /// The task name is unknown.
    #[error("unknown task `{name}`{}: expected one of {}", hint(*.nearest), known.join(", "))]
    UnknownTask {
        /// The name.
        name: String,
        /// The most similar name, if any.
        nearest: Option<&'static str>,
        /// All task names.
        known: Vec<&'static str>,
    },
    /// A required parameter is missing or invalid.
    #[error("task {task}: {}: expected {expected}", missing_or_invalid(.found))]
    Wrong {
        /// The task.
        task: &'static str,
        /// The text; empty if the parameter is missing.
        found: String,
        /// The accepted values.
        expected: &'static str,
    },
    /// A further field is neither a key nor a weight.
    #[error("task {task}: {error}{}", weights(error))]
    Key {
        /// The task.
        task: &'static str,
        /// Why it is not a key.
        error: ParseKeyError,
    },
    /// The task does not accept this field.
    #[error("task {task}: unexpected `{found}`: expected {expected}")]
    Useless {
        /// The task.
        task: &'static str,
        /// The text.
        found: String,
        /// The accepted values.
        expected: &'static str,
    },
    /// A key or a weight was given twice.
    #[error("task {task}: unexpected `{found}`: expected at most one key and one of packets or bytes")]
    Twice {
        /// The task.
        task: &'static str,
        /// The second text.
        found: String,
    },
}

/// Completes the accepted values: where a key is unknown, a weight is accepted too.
fn weights(error: &ParseKeyError) -> &'static str {
    match error {
        ParseKeyError::Prefix { .. } => "",
        ParseKeyError::Unknown { .. } => ", packets or bytes",
    }
}

fn missing_or_invalid(found: &str) -> String {
    if found.is_empty() { "missing parameter".into() } else { format!("invalid parameter `{found}`") }
}

/// The expected form of a share.
pub(super) const SHARE: &str = "a share of all traffic above 0 and at most 100%, as in 0.1%";

/// The fields after the name of a task.
pub(super) struct Fields<'a> {
    task: &'static str,
    rest: std::str::Split<'a, char>,
}

impl<'a> Fields<'a> {
    /// Creates the fields after the name of `task`.
    pub(super) fn new(task: &'static str, rest: std::str::Split<'a, char>) -> Fields<'a> {
        Fields { task, rest }
    }

    /// Returns the next field; `None` after the last.
    pub(super) fn next(&mut self) -> Option<&'a str> {
        self.rest.next().map(str::trim)
    }

    /// Parses the first field, which is required.
    ///
    /// # Errors
    /// If the field is missing, or `read` returns `None`.
    pub(super) fn first<T>(
        &mut self,
        expected: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ParseTaskError> {
        let (task, field) = (self.task, self.next().unwrap_or_default());
        read(field).ok_or_else(|| ParseTaskError::Wrong { task, found: field.to_owned(), expected })
    }
}

/// Parses `0.1%` or `0.001`.
pub(super) fn share(text: &str) -> Option<Share> {
    let number = |text: &str| text.trim_end().parse::<f64>().ok();
    let percent = match text.strip_suffix('%') {
        Some(percent) => number(percent)?,
        None => number(text)? * 100.0,
    };
    Share::from_percent(percent)
}

/// Formats a period in the largest unit of which it is a multiple.
pub(super) fn period_text(period: Nanos) -> String {
    const UNITS: [(u64, &str); 4] =
        [(60_000_000_000, "m"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    match UNITS.iter().find(|(size, _)| period.0.is_multiple_of(*size)) {
        Some((size, unit)) => format!("{}{unit}", period.0 / size),
        None => format!("{}ns", period.0),
    }
}

/// Returns ` (did you mean heavy?)` for an error; empty without a suggestion.
pub(super) fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean {name}?)"))
}
