//! Reading a task: its name, what it cannot do without, and then what it may have, in any order.

use thalweg_wire::Nanos;
use thiserror::Error;

use super::{Share, TaskSpec, Weight};
use crate::tasks::key::{KeyDefinition, ParseKeyError, Side, hint};
use thalweg_wire::nearest::nearest;

const NAMES: [&str; 7] = ["heavy", "change", "distinct", "entropy", "spread", "moments", "hhh"];

/// Why a task could not be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseTaskError {
    /// No task of this name.
    #[error("unknown task `{name}`{}: expected one of {}", hint(*.nearest), NAMES.join(", "))]
    UnknownTask {
        /// What was given.
        name: String,
        /// What may have been meant.
        nearest: Option<&'static str>,
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

const SHARE: &str = "a share of all traffic above 0 and up to 100%, as in 0.1%";
const PERIOD: &str =
    "a length of time, and after > the least share if you wish, as in change:30s or change:30s>5%";
const SPREAD: &str = "src or dst, or a prefix of them, and after > a number of peers, as in spread:dst>1000";

pub(super) fn task(text: &str) -> Result<TaskSpec, ParseTaskError> {
    let mut fields = text.trim().split(':').map(str::trim);
    let name = fields.next().unwrap_or_default();
    let Some(&task) = NAMES.iter().find(|known| **known == name) else {
        return Err(ParseTaskError::UnknownTask { name: name.to_owned(), nearest: nearest(name, NAMES) });
    };
    let mut first = |expected, read: fn(&str) -> Option<TaskSpec>| {
        let field = fields.next().unwrap_or_default();
        read(field).ok_or_else(|| ParseTaskError::Wrong { task, found: field.to_owned(), expected })
    };
    let (key, weight) = (KeyDefinition::default(), Weight::default());
    let mut spec = match task {
        "heavy" => first(SHARE, |text| {
            let (key, weight) = Default::default();
            Some(TaskSpec::Heavy { share: share(text)?, key, weight })
        })?,
        "change" => first(PERIOD, change)?,
        "spread" => first(SPREAD, spread)?,
        "hhh" => first(SHARE, |text| {
            let (side, weight) = (Side::Source, Weight::default());
            Some(TaskSpec::Hierarchy { share: share(text)?, side, weight })
        })?,
        "distinct" => TaskSpec::Distinct { key },
        "entropy" => TaskSpec::Entropy { key },
        _ => TaskSpec::Moments { key, weight },
    };
    let mut is_given = Given::default();
    fields.try_for_each(|field| refine(&mut spec, field, &mut is_given))?;
    Ok(spec)
}

/// What was given already.
#[derive(Default)]
struct Given {
    key: bool,
    weight: bool,
}

/// Takes in a key or a weight.
fn refine(spec: &mut TaskSpec, field: &str, is_given: &mut Given) -> Result<(), ParseTaskError> {
    let task = spec.name();
    let useless = |expected| ParseTaskError::Useless { task, found: field.to_owned(), expected };
    let once = |is_given: &mut bool| match std::mem::replace(is_given, true) {
        true => Err(ParseTaskError::Twice { task, found: field.to_owned() }),
        false => Ok(()),
    };
    if let Some(given) = weight(field) {
        once(&mut is_given.weight)?;
        match spec {
            TaskSpec::Heavy { weight, .. }
            | TaskSpec::Change { weight, .. }
            | TaskSpec::Moments { weight, .. }
            | TaskSpec::Hierarchy { weight, .. } => *weight = given,
            TaskSpec::Distinct { .. } | TaskSpec::Entropy { .. } => return Err(useless("a flow key")),
            TaskSpec::Spread { .. } => return Err(useless("nothing more")),
        }
        return Ok(());
    }
    let given: KeyDefinition = field.parse().map_err(|error| ParseTaskError::Key { task, error })?;
    once(&mut is_given.key)?;
    match spec {
        TaskSpec::Heavy { key, .. }
        | TaskSpec::Change { key, .. }
        | TaskSpec::Distinct { key }
        | TaskSpec::Entropy { key }
        | TaskSpec::Moments { key, .. } => *key = given,
        TaskSpec::Spread { .. } => return Err(useless("nothing more")),
        TaskSpec::Hierarchy { side, .. } => match given {
            KeyDefinition::Address(given) => *side = given,
            _ => return Err(useless("src or dst, packets or bytes")),
        },
    }
    Ok(())
}

fn weight(text: &str) -> Option<Weight> {
    [Weight::Packets, Weight::Bytes].into_iter().find(|weight| weight.to_string() == text)
}

/// Reads `0.1%` or `0.001`.
fn share(text: &str) -> Option<Share> {
    let number = |text: &str| text.trim_end().parse::<f64>().ok();
    let percent = match text.strip_suffix('%') {
        Some(percent) => number(percent)?,
        None => number(text)? * 100.0,
    };
    Share::from_percent(percent)
}

/// Reads `30s` or `30s>5%`.
fn change(text: &str) -> Option<TaskSpec> {
    let (period, share) = match text.split_once('>') {
        Some((period, least)) => (period, share(least.trim())?),
        None => (text, TaskSpec::DEFAULT_CHANGE),
    };
    let period: Nanos = period.parse().ok().filter(|&period| period > Nanos::ZERO)?;
    Some(TaskSpec::Change { period, share, key: KeyDefinition::default(), weight: Weight::default() })
}

/// Reads `dst` or `src/24>1000`.
fn spread(text: &str) -> Option<TaskSpec> {
    let (key, threshold) = match text.split_once('>') {
        Some((key, threshold)) => (key, threshold.trim().parse().ok()?),
        None => (text, TaskSpec::DEFAULT_SPREAD),
    };
    let key: KeyDefinition = key.trim().parse().ok()?;
    Some(TaskSpec::Spread { key, side: key.side()?, threshold })
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
