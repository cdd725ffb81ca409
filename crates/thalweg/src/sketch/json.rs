//! What `--json` writes: one line a state, or one for a difference.

use std::io::{self, Write};

use serde::Serialize;

use super::diff::Difference;
use super::file::State;
use super::names::Names;
use super::show::{Quantity, quantities, size};
use crate::figures::Number;

/// A state.
#[derive(Debug, Serialize)]
pub(super) struct StateLine {
    r#type: &'static str,
    file: String,
    kind: String,
    keys_are: String,
    label: String,
    start_ns: u64,
    end_ns: u64,
    size: String,
    seed: u64,
    memory_bytes: u64,
    file_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    counted: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<f64>,
    saturations: u64,
    quantities: Vec<QuantityLine>,
    keys: Vec<KeyLine>,
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
        let State { path, file_bytes, meta, state } = saved;
        let names = Names::of(&meta.key_kind);
        let quantity = |of: Quantity| QuantityLine { name: of.name, estimate: Number::from(&of.estimate) };
        let largest = state.largest().into_iter().take(top);
        StateLine {
            r#type: "sketch",
            file: path.display().to_string(),
            kind: state.kind().to_string(),
            keys_are: meta.key_kind.clone(),
            label: meta.label.clone(),
            start_ns: meta.start_ns,
            end_ns: meta.end_ns,
            size: size(state),
            seed: state.hasher().seed(),
            memory_bytes: state.bytes(),
            file_bytes: *file_bytes,
            counted: state.account().map(|account| account.magnitude()),
            sampled: state.account().map(|account| account.coarsest().get()),
            saturations: state.saturations(),
            quantities: quantities(state).into_iter().map(quantity).collect(),
            keys: largest
                .map(|(key, estimate)| KeyLine { key: names.name(&key), estimate: Number::from(&estimate) })
                .collect(),
        }
    }
}

/// A difference.
#[derive(Debug, Serialize)]
pub(super) struct DifferenceLine {
    r#type: &'static str,
    before: String,
    now: String,
    kind: String,
    keys_are: String,
    quantities: Vec<ChangedQuantityLine>,
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
        let keys = keys.iter().take(top).map(|key| ChangedKeyLine {
            key: key.name.clone(),
            change: Number::from(&key.change),
            from: Number::from(&key.from),
            to: Number::from(&key.to),
        });
        DifferenceLine {
            r#type: "sketch_difference",
            before: before.path.display().to_string(),
            now: now.path.display().to_string(),
            kind: now.state.kind().to_string(),
            keys_are: now.meta.key_kind.clone(),
            quantities: quantities.collect(),
            keys: keys.collect(),
        }
    }
}

pub(super) fn line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}
