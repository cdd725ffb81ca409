//! Comparison of two sketches.

use std::io::{self, Write};

use thalweg_sketch::state::{AnyState, CombineError, KeyBytes, Linear, RowState};
use thalweg_sketch::{Bound, Change, Counter, Estimate, Key, RowSketch, UnivMon};

use super::file::State;
use super::names::Names;
use super::show::{Quantity, counted, quantities, row, saturated, title, window};
use super::table;
use crate::figures::{bounds, interval, number};

/// The difference between two sketches.
#[derive(Debug)]
pub(super) struct Difference<'a> {
    pub(super) before: &'a State,
    pub(super) now: &'a State,
    /// Quantities of both sketches, before and now.
    pub(super) quantities: Vec<(Quantity, Quantity)>,
    /// Changed keys, largest absolute change first.
    pub(super) keys: Vec<ChangedKey>,
}

/// A key whose value changed.
#[derive(Clone, Debug)]
pub(super) struct ChangedKey {
    pub(super) name: String,
    pub(super) from: Estimate,
    pub(super) to: Estimate,
    pub(super) change: Estimate,
}

impl Difference<'_> {
    /// Compares two sketches.
    ///
    /// # Errors
    /// If the sketches differ in kind, shape, seed or keys.
    pub(super) fn between<'a>(before: &'a State, now: &'a State) -> Result<Difference<'a>, CombineError> {
        before.meta.check(&now.meta)?;
        // Reports the difference for all kinds of sketches.
        before.state.clone().merge(&now.state)?;
        let names = Names::of(&now.meta.key_kind);
        let mut keys = match (&before.state, &now.state) {
            (AnyState::I32(before), AnyState::I32(now)) => of_linear(before, now, names)?,
            (AnyState::I64(before), AnyState::I64(now)) => of_linear(before, now, names)?,
            (AnyState::Spread(before), AnyState::Spread(now)) => {
                let collisions = [before.collisions(), now.collisions()];
                let candidates = before.candidates().candidates().iter().chain(now.candidates().candidates());
                deduplicate(candidates.map(|candidate| (candidate.key, candidate.digest)).collect())
                    .into_iter()
                    .map(|(key, digest)| {
                        let from = before.estimate(digest, &collisions[0]);
                        let to = now.estimate(digest, &collisions[1]);
                        ChangedKey { name: names.name(&key), from, to, change: to.minus(from) }
                    })
                    .collect()
            }
            _ => Vec::new(),
        };
        keys.retain(|key| key.change.value != 0.0);
        let size = |key: &ChangedKey| key.change.value.abs();
        keys.sort_by(|a, b| size(b).total_cmp(&size(a)).then_with(|| a.name.cmp(&b.name)));
        let quantities = quantities(&before.state).into_iter().zip(quantities(&now.state)).collect();
        Ok(Difference { before, now, quantities, keys })
    }
}

fn of_linear<C: Counter>(
    before: &Linear<KeyBytes, C>,
    now: &Linear<KeyBytes, C>,
    names: Names,
) -> Result<Vec<ChangedKey>, CombineError> {
    match (before, now) {
        (Linear::CountMin(before), Linear::CountMin(now)) => of_rows(before, now, names),
        (Linear::CountSketch(before), Linear::CountSketch(now)) => of_rows(before, now, names),
        (Linear::KAry(before), Linear::KAry(now)) => of_rows(before, now, names),
        (Linear::UnivMon(before), Linear::UnivMon(now)) => Ok(of_univmon(before, now, names)),
        _ => Ok(Vec::new()),
    }
}

fn of_rows<S: RowSketch + Clone>(
    before: &RowState<S, KeyBytes>,
    now: &RowState<S, KeyBytes>,
    names: Names,
) -> Result<Vec<ChangedKey>, CombineError> {
    let change = Change::between(&now.sketch, &before.sketch)?;
    let noises = [before.sketch.noise(), now.sketch.noise()];
    let tops = before.top.iter().chain(&now.top);
    let candidates = tops.flat_map(|top| top.candidates()).map(|candidate| (candidate.key, candidate.digest));
    let changed = |(key, digest): (KeyBytes, _)| ChangedKey {
        name: names.name(&key),
        from: before.sketch.estimate(digest, &noises[0]),
        to: now.sketch.estimate(digest, &noises[1]),
        change: change.estimate(digest),
    };
    Ok(deduplicate(candidates.collect()).into_iter().map(changed).collect())
}

fn of_univmon<C: Counter>(
    before: &UnivMon<KeyBytes, C>,
    now: &UnivMon<KeyBytes, C>,
    names: Names,
) -> Vec<ChangedKey> {
    let largest = before.largest().into_iter().chain(now.largest());
    let changed = |(key, _): (KeyBytes, _)| {
        let [from, to] = [before.estimate_key(&key), now.estimate_key(&key)];
        ChangedKey { name: names.name(&key), from, to, change: to.minus(from) }
    };
    deduplicate(largest.map(|(key, _)| (key, ())).collect()).into_iter().map(changed).collect()
}

/// Sorts keys by their bytes and removes duplicates.
fn deduplicate<T>(mut keys: Vec<(KeyBytes, T)>) -> Vec<(KeyBytes, T)> {
    keys.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
    keys.dedup_by(|a, b| a.0 == b.0);
    keys
}

/// Writes the difference; `top` is the maximum length of the list of keys.
pub(super) fn write(out: &mut impl Write, difference: &Difference<'_>, top: usize) -> io::Result<()> {
    let Difference { before, now, quantities, keys } = difference;
    writeln!(out, "{}", title(now))?;
    for (name, side) in [("before", before), ("now", now)] {
        let window = window(&side.meta).map_or_else(String::new, |window| format!(", {window}"));
        row(out, name, &format!("{}{window}", side.name))?;
    }
    if let (Some(before), Some(now)) = (before.state.statistics(), now.state.statistics()) {
        row(out, "counted", &format!("{} before, {} now", counted(before), counted(now)))?;
    }
    for (name, side) in [("before", before), ("now", now)] {
        if side.state.saturations() > 0 {
            row(out, "saturated", &format!("{name}: {}", saturated(&side.state)))?;
        }
    }
    for (from, to) in quantities {
        row(out, to.name, &format!("{} before, {} now", brief(from), brief(to)))?;
    }
    let rows = keys.iter().map(|ChangedKey { name, from, to, change }| {
        let [lower, upper] = bounds(change, 0);
        let [before, now] = [from, to].map(|estimate| number(estimate.value, 0));
        (*change, [number(change.value, 0), lower, upper, before, now, name.clone()])
    });
    table::write(out, ["change", "lower", "upper", "before", "now", "key"], rows, top)
}

/// Formats a quantity with its bounds: `1,841 keys (1,821 to 1,861)`.
fn brief(quantity: &Quantity) -> String {
    let Quantity { estimate, decimals, .. } = *quantity;
    match estimate.bound {
        Bound::Interval { lower, upper, .. } if lower == upper => quantity.value(),
        _ => format!("{} ({})", quantity.value(), interval(&estimate, decimals)),
    }
}
