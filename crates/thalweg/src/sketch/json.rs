//! JSON lines of `thalweg sketch`: one per sketch, or one for a difference.

use std::io::{self, Write};

use serde::Serialize;
use thalweg_sketch::state::KeyBytes;
use thalweg_sketch::{Estimate, StreamStatistics};

use super::diff::Difference;
use super::file::State;
use super::names::Names;
use super::show::{Quantity, missed_up_to, quantities, size};
use thalweg_api::UtcTime;
use thalweg_watch::json::FlatEstimate;
use thalweg_wire::Timestamp;

/// A saved sketch.
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
    omitted_keys: usize,
    keys: Vec<KeyLine>,
}

/// Window, total and sampling of a saved sketch.
#[derive(Debug, Serialize)]
struct Counted {
    file: String,
    label: String,
    start: Option<UtcTime>,
    end: Option<UtcTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampling_probability: Option<f64>,
    saturations: u64,
}

impl From<&State> for Counted {
    fn from(saved: &State) -> Counted {
        let State { name, meta, state, .. } = saved;
        let time = |time_ns| meta.has_window().then_some(UtcTime(Timestamp(time_ns)));
        Counted {
            file: name.clone(),
            label: meta.label.clone(),
            start: time(meta.start_ns),
            end: time(meta.end_ns),
            total: state.statistics().map(StreamStatistics::magnitude),
            sampling_probability: state.statistics().map(|statistics| statistics.min_probability().get()),
            saturations: state.saturations(),
        }
    }
}

#[derive(Debug, Serialize)]
struct QuantityLine {
    name: &'static str,
    #[serde(flatten)]
    estimate: FlatEstimate,
}

#[derive(Debug, Serialize)]
struct KeyLine {
    key: String,
    #[serde(flatten)]
    estimate: FlatEstimate,
}

impl StateLine {
    pub(super) fn of(saved: &State, top: usize) -> StateLine {
        let State { file_bytes, meta, state, .. } = saved;
        let names = Names::of(&meta.key_kind);
        let quantity = |of: Quantity| QuantityLine {
            name: of.name,
            estimate: FlatEstimate::only("estimate", of.estimate),
        };
        let largest = state.largest();
        let key = |(key, estimate): &(KeyBytes, Estimate)| KeyLine {
            key: names.name(key),
            estimate: FlatEstimate::only("estimate", *estimate),
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
            omitted_keys: largest.len().saturating_sub(top),
            keys: largest.iter().take(top).map(key).collect(),
        }
    }
}

/// The difference of two saved sketches.
#[derive(Debug, Serialize)]
pub(super) struct DifferenceLine {
    r#type: &'static str,
    kind: String,
    key_kind: String,
    before: Counted,
    now: Counted,
    quantities: Vec<ChangedQuantityLine>,
    omitted_keys: usize,
    keys: Vec<ChangedKeyLine>,
}

#[derive(Debug, Serialize)]
struct ChangedQuantityLine {
    name: &'static str,
    #[serde(flatten)]
    before: FlatEstimate,
    #[serde(flatten)]
    now: FlatEstimate,
}

#[derive(Debug, Serialize)]
struct ChangedKeyLine {
    key: String,
    #[serde(flatten)]
    change: FlatEstimate,
    #[serde(flatten)]
    before: FlatEstimate,
    #[serde(flatten)]
    now: FlatEstimate,
}

impl DifferenceLine {
    pub(super) fn of(difference: &Difference<'_>, top: usize) -> DifferenceLine {
        let Difference { before, now, quantities, keys } = difference;
        let quantities = quantities.iter().map(|(from, to)| ChangedQuantityLine {
            name: to.name,
            before: FlatEstimate::one_of_several("before", from.estimate),
            now: FlatEstimate::one_of_several("now", to.estimate),
        });
        let listed = keys.iter().take(top).map(|key| ChangedKeyLine {
            key: key.name.clone(),
            change: FlatEstimate::one_of_several("change", key.change),
            before: FlatEstimate::one_of_several("before", key.from),
            now: FlatEstimate::one_of_several("now", key.to),
        });
        DifferenceLine {
            r#type: "sketch_difference",
            kind: now.state.kind().to_string(),
            key_kind: now.meta.key_kind.clone(),
            before: Counted::from(*before),
            now: Counted::from(*now),
            quantities: quantities.collect(),
            omitted_keys: keys.len().saturating_sub(top),
            keys: listed.collect(),
        }
    }
}

pub(super) fn line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}
