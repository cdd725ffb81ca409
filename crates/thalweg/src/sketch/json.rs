//! What `--json` writes: one line a state, or one for a difference.

use std::io::{self, Write};

use serde::Serialize;
use thalweg_sketch::state::KeyBytes;
use thalweg_sketch::{Account, Estimate};

use super::diff::Difference;
use super::file::State;
use super::names::Names;
use super::show::{Quantity, missed_up_to, quantities, size};
use crate::figures::Number;

/// A state.
#[derive(Debug, Serialize)]
pub(super) struct StateLine {
    r#type: &'static str,
    kind: String,
    key_kind: String,
    #[serde(flatten)]
    what: Counted,
    size: String,
    seed: u64,
    memory_bytes: u64,
    file_bytes: u64,
    quantities: Vec<QuantityLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missed_up_to: Option<u64>,
    unlisted: usize,
    keys: Vec<KeyLine>,
}

/// What a state has counted.
#[derive(Debug, Serialize)]
struct Counted {
    file: String,
    label: String,
    start_ns: u64,
    end_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    counted: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<f64>,
    saturations: u64,
}

impl From<&State> for Counted {
    fn from(saved: &State) -> Counted {
        let State { name, meta, state, .. } = saved;
        Counted {
            file: name.clone(),
            label: meta.label.clone(),
            start_ns: meta.start_ns,
            end_ns: meta.end_ns,
            counted: state.account().map(Account::magnitude),
            sampled: state.account().map(|account| account.min_probability().get()),
            saturations: state.saturations(),
        }
    }
}

#[derive(Debug, Serialize)]
struct QuantityLine {
    name: &'static str,
    estimate: Number,
}

#[derive(Debug, Serialize)]
struct KeyLine {
    key: String,
    estimate: Number,
}

impl StateLine {
    pub(super) fn of(saved: &State, top: usize) -> StateLine {
        let State { file_bytes, meta, state, .. } = saved;
        let names = Names::of(&meta.key_kind);
        let quantity = |of: Quantity| QuantityLine { name: of.name, estimate: Number::from(&of.estimate) };
        let largest = state.largest();
        let key = |(key, estimate): &(KeyBytes, Estimate)| KeyLine {
            key: names.name(key),
            estimate: Number::from(estimate),
        };
        StateLine {
            r#type: "sketch",
            kind: state.kind().to_string(),
            key_kind: meta.key_kind.clone(),
            what: Counted::from(saved),
            size: size(state),
            seed: state.hasher().seed(),
            memory_bytes: state.bytes(),
            file_bytes: *file_bytes,
            quantities: quantities(state).into_iter().map(quantity).collect(),
            missed_up_to: missed_up_to(state),
            unlisted: largest.len().saturating_sub(top),
            keys: largest.iter().take(top).map(key).collect(),
        }
    }
}

/// A difference.
#[derive(Debug, Serialize)]
pub(super) struct DifferenceLine {
    r#type: &'static str,
    kind: String,
    key_kind: String,
    before: Counted,
    now: Counted,
    quantities: Vec<ChangedQuantityLine>,
    unlisted: usize,
    keys: Vec<ChangedKeyLine>,
}

#[derive(Debug, Serialize)]
struct ChangedQuantityLine {
    name: &'static str,
    from: Number,
    to: Number,
}

#[derive(Debug, Serialize)]
struct ChangedKeyLine {
    key: String,
    change: Number,
    from: Number,
    to: Number,
}

impl DifferenceLine {
    pub(super) fn of(difference: &Difference<'_>, top: usize) -> DifferenceLine {
        let Difference { before, now, quantities, keys } = difference;
        let quantities = quantities.iter().map(|(from, to)| ChangedQuantityLine {
            name: to.name,
            from: Number::from(&from.estimate),
            to: Number::from(&to.estimate),
        });
        let listed = keys.iter().take(top).map(|key| ChangedKeyLine {
            key: key.name.clone(),
            change: Number::from(&key.change),
            from: Number::from(&key.from),
            to: Number::from(&key.to),
        });
        DifferenceLine {
            r#type: "sketch_difference",
            kind: now.state.kind().to_string(),
            key_kind: now.meta.key_kind.clone(),
            before: Counted::from(*before),
            now: Counted::from(*now),
            quantities: quantities.collect(),
            unlisted: keys.len().saturating_sub(top),
            keys: listed.collect(),
        }
    }
}

pub(super) fn line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}
