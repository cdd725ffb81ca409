//! The layout of a sweep's runs: which of its keys is the horizontal axis, and what the lines are.
//!
//! The horizontal axis is the key with the most numeric values; if no key is numeric, the one with the most values,
//! side by side. Each combination of the other keys' values is a line. Runs that differ only in their seed become their
//! mean, with a bar for its 95 % confidence interval.

use thalweg_plot::axis::Axis;
use thalweg_plot::page::shortened;
use thalweg_plot::panel::Line;
use thalweg_plot::quantity::number;

use crate::results::SweepResults;
use crate::seeds::Mean;

/// Characters of a name that fit.
const MAX_NAME: usize = 40;
/// A key whose numbers spread by more than this has a logarithmic axis.
const LINEAR_SPREAD: f64 = 100.0;

/// The place of each run.
pub(super) struct Grid {
    /// The key on the horizontal axis.
    pub(super) x_name: String,
    pub(super) x: Axis,
    /// Whether the horizontal axis is numeric.
    pub(super) is_numeric: bool,
    /// Names of the lines; one empty name if there is no other key.
    pub(super) lines: Vec<String>,
    /// Names of the other keys.
    pub(super) line_keys: String,
    /// The line and place of each run.
    places: Vec<(usize, f64)>,
    /// Whether some runs differ only in their seed.
    has_seeds: bool,
    /// Keys with a single value, and the value.
    constants: Vec<String>,
}

impl Grid {
    /// The layout; `None` if nothing was swept.
    pub(super) fn of(results: &SweepResults) -> Option<Grid> {
        let keys: Vec<Key> = (0..results.keys.len()).map(|index| Key::of(results, index)).collect();
        let x_key = keys.iter().max_by_key(|key| key.rank())?;
        let others: Vec<&Key> =
            keys.iter().filter(|key| key.index != x_key.index && key.varies() && !key.is_seed()).collect();
        let mut lines = Vec::new();
        let places = results.runs.iter().map(|run| {
            let named = others.iter().map(|key| key.value_in_line(&run.values[key.index], others.len()));
            let name = named.collect::<Vec<_>>().join(", ");
            let line = position_or_push(&mut lines, name);
            (line, x_key.place(&run.values[x_key.index]))
        });
        let places = places.collect();
        let constant = |key: &&Key| key.index != x_key.index && !key.varies();
        let constants = keys
            .iter()
            .filter(constant)
            .filter_map(|key| Some(format!("{} {}", key.name, key.values.first()?)));
        let line_keys = others.iter().map(|key| key.name.as_str()).collect::<Vec<_>>().join(", ");
        Some(Grid {
            x_name: x_key.name.clone(),
            x: x_key.axis(),
            is_numeric: x_key.is_numeric,
            lines,
            line_keys,
            constants: constants.collect(),
            places,
            has_seeds: keys.iter().any(|key| key.is_seed() && key.index != x_key.index && key.varies()),
        })
    }

    /// Describes the runs in one line.
    pub(super) fn subtitle(&self, results: &SweepResults) -> String {
        let seeds = "means over seeds, bars are 95 % confidence intervals".to_owned();
        let runs = format!("{} runs", number(results.runs.len() as f64));
        let seeds = self.has_seeds.then_some(seeds);
        [runs].into_iter().chain(self.constants.iter().cloned()).chain(seeds).collect::<Vec<_>>().join("; ")
    }

    /// A line through the `values` of the runs, in their order.
    pub(super) fn line(&self, line: usize, values: &[f64]) -> Line {
        let placed =
            self.places.iter().zip(values).filter(|((of, _), value)| *of == line && value.is_finite());
        let mut placed: Vec<(f64, f64)> = placed.map(|((_, x), value)| (*x, *value)).collect();
        placed.sort_by(|left, right| left.0.total_cmp(&right.0).then(left.1.total_cmp(&right.1)));
        let mut drawn = Line { style: line, ..Line::default() };
        for runs in placed.chunk_by(|left, right| left.0 == right.0) {
            let (x, mean) = (runs[0].0, Mean::of(runs.iter().map(|run| run.1)));
            let Some(Mean { mean, half_width }) = mean else { continue };
            drawn.points.push((x, mean));
            drawn.bars.extend(half_width.map(|half| (x, mean - half, mean + half)));
        }
        drawn
    }
}

/// A swept key.
struct Key {
    index: usize,
    name: String,
    /// The distinct values in order of appearance.
    values: Vec<String>,
    is_numeric: bool,
}

impl Key {
    fn of(results: &SweepResults, index: usize) -> Key {
        let path = &results.keys[index];
        let mut values = Vec::new();
        for run in &results.runs {
            position_or_push(&mut values, run.values[index].clone());
        }
        let is_numeric = !values.is_empty() && values.iter().all(|value| parsed(value).is_some());
        Key { index, name: key_name(path).to_owned(), values, is_numeric }
    }

    fn is_seed(&self) -> bool {
        self.name == "seed"
    }

    fn varies(&self) -> bool {
        self.values.len() > 1
    }

    /// How suitable the key is for the horizontal axis.
    fn rank(&self) -> (bool, bool, usize) {
        (self.varies() && !self.is_seed(), self.is_numeric && self.varies(), self.values.len())
    }

    /// A value in the name of a line; a number gets its key's name if there are other keys.
    fn value_in_line(&self, value: &str, keys: usize) -> String {
        match self.is_numeric && keys > 1 {
            true => format!("{} {value}", self.name),
            false => value.to_owned(),
        }
    }

    fn place(&self, value: &str) -> f64 {
        match self.is_numeric {
            true => parsed(value).unwrap_or(f64::NAN),
            false => self.values.iter().position(|other| other == value).unwrap_or(0) as f64,
        }
    }

    fn axis(&self) -> Axis {
        if !self.is_numeric {
            return Axis::places(&self.values.iter().map(|name| shown(name)).collect::<Vec<_>>());
        }
        let numbers: Vec<f64> = self.values.iter().filter_map(|value| parsed(value)).collect();
        let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if least > 0.0 && most >= LINEAR_SPREAD * least {
            return Axis::logarithmic(least, most, number);
        }
        // Margins beside the first and last place, so that dots are not clipped.
        let room = 0.04 * if most > least { most - least } else { 1.0 };
        Axis::linear(least - room, most + room, 8, number)
    }
}

/// The last meaningful part of a key's path: `scheme` for `scheme.name`.
fn key_name(path: &str) -> &str {
    let path = path.strip_suffix(".name").unwrap_or(path);
    path.rsplit('.').next().unwrap_or(path)
}

fn parsed(value: &str) -> Option<f64> {
    value.parse().ok().filter(|number: &f64| number.is_finite())
}

fn position_or_push(names: &mut Vec<String>, name: String) -> usize {
    names.iter().position(|other| *other == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

/// The part of a name that is shown.
fn shown(name: &str) -> String {
    shortened(name, MAX_NAME)
}
