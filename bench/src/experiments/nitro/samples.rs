//! The measurements of an experiment, and their medians or means over seeds as tables and lines.

use std::collections::BTreeMap;

use crate::results::Table;
use crate::statistics::{mean, median};

/// Number of columns that identify a row's case.
const CASE_COLUMNS: usize = 4;

/// One measured value.
#[derive(Clone, Debug, PartialEq)]
struct Sample {
    /// Name of the stream.
    stream: String,
    /// Position on the horizontal axis.
    place: String,
    /// Measured method.
    method: String,
    /// Seed of the hash and the draws.
    seed: u64,
    /// Name of the measure.
    measure: &'static str,
    value: f64,
}

/// All measured values of an experiment, in order.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    /// Name of the horizontal axis.
    axis: &'static str,
    /// Summary over seeds.
    typical: fn(&[f64]) -> f64,
    samples: Vec<Sample>,
}

/// The case in which values are measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case<'a> {
    pub(super) stream: &'a str,
    pub(super) place: &'a str,
    pub(super) method: &'a str,
    pub(super) seed: u64,
}

impl Samples {
    /// Creates an empty set that is summarised by medians; `axis` names the horizontal axis.
    pub(super) fn over(axis: &'static str) -> Samples {
        Samples { axis, typical: median, samples: Vec::new() }
    }

    /// Creates an empty set that is summarised by means, for counts of failures.
    pub(super) fn means_over(axis: &'static str) -> Samples {
        Samples { typical: mean, ..Samples::over(axis) }
    }

    /// Adds the values of one case.
    pub(super) fn add(&mut self, case: Case<'_>, measured: &[(&'static str, f64)]) {
        let Case { stream, place, method, seed } = case;
        self.samples.extend(measured.iter().map(|&(measure, value)| Sample {
            stream: stream.to_owned(),
            place: place.to_owned(),
            method: method.to_owned(),
            seed,
            measure,
            value,
        }));
    }

    /// Returns the raw table: a row per case, a column per measure.
    pub(super) fn table(&self) -> Table {
        let mut measures: Vec<&str> = Vec::new();
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut row_of = BTreeMap::new();
        for Sample { stream, place, method, seed, measure, value } in &self.samples {
            let row = *row_of.entry((stream, place, method, seed)).or_insert_with(|| {
                rows.push(vec![stream.clone(), place.clone(), method.clone(), seed.to_string()]);
                rows.len() - 1
            });
            let column = measures.iter().position(|known| known == measure).unwrap_or_else(|| {
                measures.push(measure);
                measures.len() - 1
            });
            let cells = &mut rows[row];
            cells.resize(cells.len().max(CASE_COLUMNS + column + 1), String::new());
            cells[CASE_COLUMNS + column] = shortest(*value);
        }
        let case: [&str; CASE_COLUMNS] = ["stream", self.axis, "method", "seed"];
        let header: Vec<String> = case.into_iter().chain(measures).map(str::to_owned).collect();
        let mut table = Table::with_header(header.clone());
        for mut row in rows {
            row.resize(header.len(), String::new());
            table.push(row);
        }
        table
    }

    /// Returns the summary over all seeds with a value; NaN if there is none.
    fn typical(&self, stream: &str, place: &str, method: &str, measure: &str) -> f64 {
        let is_it = |sample: &&Sample| {
            (&*sample.stream, &*sample.place, &*sample.method, sample.measure)
                == (stream, place, method, measure)
        };
        let values = self.samples.iter().filter(is_it).map(|sample| sample.value);
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        if values.is_empty() { f64::NAN } else { (self.typical)(&values) }
    }

    /// Returns the summaries at each position, by method.
    pub(super) fn lines<M: AsRef<str>>(
        &self,
        stream: &str,
        measure: &str,
        places: &[String],
        methods: &[M],
    ) -> Vec<Vec<f64>> {
        let line = |method: &M| {
            places.iter().map(|place| self.typical(stream, place, method.as_ref(), measure)).collect()
        };
        methods.iter().map(line).collect()
    }

    /// Returns one measure as a table: a row per position, a column per method with values.
    pub(super) fn pivot<M: AsRef<str>>(
        &self,
        stream: &str,
        measure: &str,
        places: &[String],
        methods: &[M],
        shown: impl Fn(f64) -> String,
    ) -> Table {
        let lines = self.lines(stream, measure, places, methods);
        let has_some = |line: &&Vec<f64>| line.iter().any(|value| value.is_finite());
        let named = methods.iter().zip(&lines).filter(|(_, line)| has_some(line));
        let names = named.clone().map(|(method, _)| method.as_ref().to_owned());
        let mut table = Table::with_header([self.axis.to_owned()].into_iter().chain(names).collect());
        for (number, place) in places.iter().enumerate() {
            let cells = named.clone().map(|(_, line)| shown(line[number]));
            table.push([place.clone()].into_iter().chain(cells).collect());
        }
        table
    }
}

/// Formats a value with at most six decimals; empty if NaN.
fn shortest(value: f64) -> String {
    if value.is_finite() { ((value * 1e6).round() / 1e6).to_string() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_medians_and_methods_without_values_have_no_column() {
        let mut samples = Samples::over("p");
        for (seed, value) in [(1, 1.0), (2, 5.0), (3, 2.0)] {
            let case = Case { stream: "s", place: "1", method: "a", seed };
            samples.add(case, &[("error", value), ("recall", 1.0)]);
        }
        let places = ["1".to_owned()];
        let table = samples.pivot("s", "error", &places, &["b", "a"], |value| value.to_string());
        assert_eq!(table.csv(), "p,a\n1,2\n");
        let csv = samples.table().csv();
        assert_eq!(
            csv.lines().take(2).collect::<Vec<_>>(),
            ["stream,p,method,seed,error,recall", "s,1,a,1,1,1"]
        );
        assert_eq!(csv.lines().count(), 1 + 3, "a row for each case");
        assert!(samples.lines("other", "error", &places, &["a"])[0][0].is_nan());
    }
}
