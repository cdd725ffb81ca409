//! The contents of a sketch as text.

use std::io::{self, Write};

use thalweg_sketch::state::{AnyState, KeyBytes, Linear, Meta};
use thalweg_sketch::{Estimate, StreamStatistics};
use thalweg_wire::{Bytes, Timestamp};

use super::file::State;
use super::names::{Names, visible};
use super::table;
use crate::figures::{bound_in_words, bounds, date_time, grouped, number};

/// A quantity of a sketch besides its keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantity {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) estimate: Estimate,
    pub(super) decimals: usize,
}

impl Quantity {
    /// Formats the value with its unit: `1,841 keys`.
    pub(super) fn value(&self) -> String {
        let value = number(self.estimate.value, self.decimals);
        match (value.as_str(), self.unit) {
            (_, "") => value,
            ("1", unit) => format!("1 {}", unit.trim_end_matches('s')),
            (_, unit) => format!("{value} {unit}"),
        }
    }
}

/// Returns the quantities that a sketch estimates.
pub(super) fn quantities(state: &AnyState<KeyBytes>) -> Vec<Quantity> {
    let distinct = |estimate| Quantity { name: "distinct", unit: "keys", estimate, decimals: 0 };
    let l2 = |f2: Estimate| Quantity { name: "L2", unit: "", estimate: f2.map(f64::sqrt), decimals: 1 };
    let of_linear = |f2: Option<Estimate>, univmon: Option<[Estimate; 2]>| {
        let more = univmon.map_or_else(Vec::new, |[keys, bits]| {
            vec![distinct(keys), Quantity { name: "entropy", unit: "bits", estimate: bits, decimals: 3 }]
        });
        f2.map(l2).into_iter().chain(more).collect()
    };
    macro_rules! of {
        ($linear:expr) => {
            match $linear {
                Linear::CountSketch(rows) => of_linear(Some(rows.sketch.f2()), None),
                Linear::KAry(rows) => of_linear(Some(rows.sketch.f2()), None),
                Linear::UnivMon(univmon) => {
                    of_linear(Some(univmon.f2()), Some([univmon.distinct(), univmon.entropy()]))
                }
                _ => Vec::new(),
            }
        };
    }
    match state {
        AnyState::I32(linear) => of!(linear),
        AnyState::I64(linear) => of!(linear),
        AnyState::HyperLogLog(counter) => vec![distinct(counter.estimate())],
        _ => Vec::new(),
    }
}

/// Formats the size of a sketch: `5 x 8192 counters of 32 bits`, `2^12 registers`.
pub(super) fn size(state: &AnyState<KeyBytes>) -> String {
    match state {
        AnyState::HyperLogLog(counter) => format!("2^{} registers", counter.precision()),
        AnyState::Spread(spread) => {
            format!("{} cells of 2^{} registers", spread.shape(), spread.cell_precision())
        }
        _ => {
            let levels = match state {
                AnyState::I32(Linear::UnivMon(univmon)) => Some(univmon.shape().levels()),
                AnyState::I64(Linear::UnivMon(univmon)) => Some(univmon.shape().levels()),
                _ => None,
            };
            let levels = levels.map_or_else(String::new, |levels| format!("{levels} levels of "));
            let shape = state.shape().map_or_else(String::new, |shape| shape.to_string());
            let bits = state.counter_bits().unwrap_or_default();
            format!("{levels}{shape} counters of {bits} bits")
        }
    }
}

/// Writes the contents of a sketch; `top` is the maximum length of the list of keys.
pub(super) fn write(out: &mut impl Write, saved: &State, top: usize) -> io::Result<()> {
    let State { name, file_bytes, meta, state } = saved;
    writeln!(out, "{name}")?;
    row(out, "sketch", &title(saved))?;
    if !meta.label.is_empty() {
        row(out, "label", &visible(&meta.label))?;
    }
    if let Some(window) = window(meta) {
        row(out, "window", &window)?;
    }
    if let Some(statistics) = state.statistics() {
        row(out, "counted", &counted(statistics))?;
    }
    if state.saturations() > 0 {
        row(out, "saturated", &saturated(state))?;
    }
    row(out, "memory", &format!("{}, {} in the file", Bytes(state.bytes()), Bytes(*file_bytes)))?;
    row(out, "hash", &format!("{}, seed {}", thalweg_sketch::HASH_NAME, state.hasher().seed()))?;
    for quantity in quantities(state) {
        let bound = bound_in_words(&quantity.estimate, quantity.decimals);
        row(out, quantity.name, &format!("{}{bound}", quantity.value()))?;
    }
    if let Some(peers) = missed_up_to(state).filter(|&peers| peers > 0) {
        row(out, "incomplete", &format!("keys with up to {} peers may be missing", grouped(peers)))?;
    }
    let names = Names::of(&meta.key_kind);
    let of_keys = if matches!(state, AnyState::Spread(_)) { "peers" } else { "count" };
    let rows = state.largest().into_iter().map(|(key, estimate)| {
        let [lower, upper] = bounds(&estimate, 0);
        (estimate, [number(estimate.value, 0), lower, upper, names.name(&key)])
    });
    table::write(out, [of_keys, "lower", "upper", "key"], rows, top)
}

pub(super) fn row(out: &mut impl Write, name: &str, value: &str) -> io::Result<()> {
    writeln!(out, "  {name:<12} {value}")
}

/// Formats kind, keys and size: `Count Sketch of src, 5 x 8192 counters of 32 bits`.
pub(super) fn title(saved: &State) -> String {
    let keys = match saved.meta.key_kind.as_str() {
        "" => "unnamed keys".to_owned(),
        key_kind => visible(key_kind),
    };
    format!("{} of {keys}, {}", saved.state.kind(), size(&saved.state))
}

/// Formats the window, if known: `2014-06-19 13:00:00.000 to 2014-06-19 13:00:10.000 UTC`.
pub(super) fn window(meta: &Meta) -> Option<String> {
    let [start, end] = [meta.start_ns, meta.end_ns].map(|time| date_time(Timestamp(time)));
    meta.has_window().then(|| format!("{start} to {end} UTC"))
}

/// Formats the counted weight and sampling: `17,945, sampled with p = 1/16`.
pub(super) fn counted(statistics: &StreamStatistics) -> String {
    let weight = grouped(statistics.magnitude());
    match statistics.is_sampled() {
        true => format!("{weight}, sampled with p = {}", statistics.min_probability()),
        false => weight,
    }
}

/// Formats the number of counter overflows.
pub(super) fn saturated(state: &AnyState<KeyBytes>) -> String {
    let (count, noun) =
        (state.saturations(), if state.saturations() == 1 { "overflow" } else { "overflows" });
    format!("{} counter {noun}: bounds do not hold", grouped(count))
}

/// Returns the number of peers up to which keys may be missing, for spread sketches.
pub(super) fn missed_up_to(state: &AnyState<KeyBytes>) -> Option<u64> {
    match state {
        AnyState::Spread(spread) => Some(spread.missed_up_to()),
        _ => None,
    }
}
