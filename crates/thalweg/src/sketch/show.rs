//! What a state says, for people.

use std::io::{self, Write};

use thalweg_sketch::Estimate;
use thalweg_sketch::state::{AnyState, KeyBytes, Linear};
use thalweg_wire::{Bytes, Timestamp};

use super::file::State;
use super::names::Names;
use crate::figures::{bound_in_words, grouped, interval, moment, number, percent};

/// A quantity that a state knows beside its keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantity {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) estimate: Estimate,
    pub(super) decimals: usize,
}

/// What a state can be asked for without naming a key.
pub(super) fn quantities(state: &AnyState<KeyBytes>) -> Vec<Quantity> {
    let distinct = |estimate| Quantity { name: "distinct", unit: "keys", estimate, decimals: 0 };
    let l2 = |f2: Estimate| Quantity { name: "L2", unit: "", estimate: f2.map(f64::sqrt), decimals: 0 };
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

/// `5 x 8192 counters of 32 bits`, `2^12 registers`.
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

/// Writes what a state says; `top` is the length of its list of keys.
pub(super) fn write(out: &mut impl Write, saved: &State, top: usize) -> io::Result<()> {
    let State { path, file_bytes, meta, state } = saved;
    writeln!(out, "{}", path.display())?;
    row(out, "sketch", &format!("{} of {}, {}", state.kind(), of_keys(&meta.key_kind), size(state)))?;
    if !meta.label.is_empty() {
        row(out, "label", &meta.label)?;
    }
    if meta.has_window() {
        let [start, end] = [meta.start_ns, meta.end_ns].map(|time| moment(Timestamp(time)));
        row(out, "window", &format!("{start} to {end}"))?;
    }
    if let Some(account) = state.account() {
        let sampled = match account.is_sampled() {
            true => format!(", sampled with p = {}", account.coarsest()),
            false => String::new(),
        };
        let weight = grouped(account.magnitude());
        row(out, "counted", &format!("{weight}{sampled}"))?;
    }
    if state.saturations() > 0 {
        let saturations = grouped(state.saturations());
        row(out, "saturated", &format!("{saturations} additions beyond a counter's range: no bound holds"))?;
    }
    row(out, "memory", &format!("{}, {} in the file", Bytes(state.bytes()), Bytes(*file_bytes)))?;
    row(out, "hash", &format!("{}, seed {:#x}", thalweg_sketch::HASH_NAME, state.hasher().seed()))?;
    for Quantity { name, unit, estimate, decimals } in quantities(state) {
        let value = format!("{} {unit}", number(estimate.value, decimals));
        row(out, name, &format!("{}{}", value.trim_end(), bound_in_words(&estimate, decimals)))?;
    }
    keys(out, saved, top)
}

fn keys(out: &mut impl Write, saved: &State, top: usize) -> io::Result<()> {
    let largest = saved.state.largest();
    if largest.is_empty() || top == 0 {
        return Ok(());
    }
    let names = Names::of(&saved.meta.key_kind);
    let unit = if matches!(saved.state, AnyState::Spread(_)) { "peers" } else { "count" };
    writeln!(out, "  {unit:>15}  {:>31}  key", "bound")?;
    for (key, estimate) in largest.iter().take(top) {
        let (value, bound) = (number(estimate.value, 0), interval(estimate, 0));
        writeln!(out, "  {value:>15}  {bound:>31}  {}", names.name(key))?;
    }
    if largest.len() > top {
        writeln!(out, "  and {} more (--top shows more)", grouped((largest.len() - top) as u64))?;
    }
    let least = largest.iter().filter_map(|(_, estimate)| estimate.confidence()).min_by(f64::total_cmp);
    match least {
        Some(confidence) => writeln!(out, "  each bound holds with probability {} or more", percent(confidence)),
        None => Ok(()),
    }
}

pub(super) fn row(out: &mut impl Write, name: &str, value: &str) -> io::Result<()> {
    writeln!(out, "  {name:<12} {value}")
}

pub(super) fn of_keys(key_kind: &str) -> &str {
    if key_kind.is_empty() { "unnamed keys" } else { key_kind }
}
