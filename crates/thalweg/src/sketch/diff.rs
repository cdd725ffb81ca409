//! What changed from one state to another, for people.

use std::io::{self, Write};

use thalweg_sketch::state::{AnyState, CombineError, KeyBytes, Linear, RowState};
use thalweg_sketch::{Change, Counter, Estimate, Key, RowSketch, UnivMon};

use super::file::State;
use super::names::Names;
use super::show::{Quantity, of_keys, quantities, row};
use crate::figures::{grouped, interval, number, percent};

/// What changed.
#[derive(Debug)]
pub(super) struct Difference<'a> {
    pub(super) before: &'a State,
    pub(super) now: &'a State,
    /// What both can be asked for, before and now.
    pub(super) quantities: Vec<(Quantity, Quantity)>,
    /// Largest change first, whatever its sign.
    pub(super) keys: Vec<ChangedKey>,
}

/// A key whose weight changed.
#[derive(Clone, Debug)]
pub(super) struct ChangedKey {
    pub(super) name: String,
    pub(super) from: Estimate,
    pub(super) to: Estimate,
    pub(super) change: Estimate,
}

impl Difference<'_> {
    /// What changed from `before` to `now`.
    ///
    /// # Errors
    /// If they differ in anything but what they counted.
    pub(super) fn between<'a>(before: &'a State, now: &'a State) -> Result<Difference<'a>, CombineError> {
        now.meta.check(&before.meta)?;
        // Says what differs, for all kinds alike.
        now.state.clone().merge(&before.state)?;
        let names = Names::of(&now.meta.key_kind);
        let mut keys = match (&before.state, &now.state) {
            (AnyState::I32(before), AnyState::I32(now)) => of_linear(before, now, names)?,
            (AnyState::I64(before), AnyState::I64(now)) => of_linear(before, now, names)?,
            (AnyState::Spread(before), AnyState::Spread(now)) => {
                let collisions = [before.collisions(), now.collisions()];
                let candidates = before.candidates().candidates().iter().chain(now.candidates().candidates());
                each_once(candidates.map(|candidate| (candidate.key, candidate.digest)).collect())
                    .into_iter()
                    .map(|(key, digest)| {
                        let from = before.estimate(digest, &collisions[0]);
                        let to = now.estimate(digest, &collisions[1]);
                        ChangedKey { name: names.name(&key), from, to, change: to.less(from) }
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
    Ok(each_once(candidates.collect()).into_iter().map(changed).collect())
}

fn of_univmon<C: Counter>(
    before: &UnivMon<KeyBytes, C>,
    now: &UnivMon<KeyBytes, C>,
    names: Names,
) -> Vec<ChangedKey> {
    let largest = before.largest().into_iter().chain(now.largest());
    let changed = |(key, _): (KeyBytes, _)| {
        let [from, to] = [before.estimate_key(&key), now.estimate_key(&key)];
        ChangedKey { name: names.name(&key), from, to, change: to.less(from) }
    };
    each_once(largest.map(|(key, _)| (key, ())).collect()).into_iter().map(changed).collect()
}

/// The keys, in the order of their bytes, each once.
fn each_once<T>(mut keys: Vec<(KeyBytes, T)>) -> Vec<(KeyBytes, T)> {
    keys.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
    keys.dedup_by(|a, b| a.0 == b.0);
    keys
}

/// Writes it; `top` is the length of its list of keys.
pub(super) fn write(out: &mut impl Write, difference: &Difference<'_>, top: usize) -> io::Result<()> {
    let Difference { before, now, quantities, keys } = difference;
    let key_kind = of_keys(&now.meta.key_kind);
    writeln!(out, "{} of {key_kind}: from {} to {}", now.state.kind(), before.path.display(), now.path.display())?;
    if let (Some(before), Some(now)) = (before.state.account(), now.state.account()) {
        let [from, to] = [before, now].map(|account| grouped(account.magnitude()));
        row(out, "counted", &format!("{from}, then {to}"))?;
    }
    for (from, to) in quantities {
        let Quantity { name, unit, decimals, .. } = *to;
        let [from, to] = [from, to].map(|quantity| {
            let bound = interval(&quantity.estimate, decimals);
            format!("{} ({bound})", number(quantity.estimate.value, decimals))
        });
        row(out, name, format!("{from}, then {to} {unit}").trim_end())?;
    }
    if keys.is_empty() {
        return Ok(());
    }
    writeln!(out, "  {:>15}  {:>31}  {:>31}  key", "change", "bound", "from > to")?;
    for ChangedKey { name, from, to, change } in keys.iter().take(top) {
        let from_to = format!("{} > {}", number(from.value, 0), number(to.value, 0));
        let (value, bound) = (number(change.value, 0), interval(change, 0));
        writeln!(out, "  {value:>15}  {bound:>31}  {from_to:>31}  {name}")?;
    }
    if keys.len() > top {
        writeln!(out, "  and {} more (--top shows more)", grouped((keys.len() - top) as u64))?;
    }
    let least = keys.iter().filter_map(|key| key.change.confidence()).min_by(f64::total_cmp);
    match least {
        Some(confidence) => writeln!(out, "  each bound holds with probability {} or more", percent(confidence)),
        None => Ok(()),
    }
}
