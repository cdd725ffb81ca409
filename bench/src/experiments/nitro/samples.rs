//! What an experiment measured, and its medians or means over seeds as tables and lines.

use std::collections::BTreeMap;

use crate::results::Table;
use crate::statistics::{mean, median};

/// Columns of a table that say which case a row is.
const CASE_COLUMNS: usize = 4;

/// One number.
#[derive(Clone, Debug, PartialEq)]
struct Sample {
    /// What the stream was.
    stream: String,
    /// Where on the horizontal axis.
    place: String,
    /// Who was measured.
    method: String,
    /// Of the hash and the draws.
    seed: u64,
    /// What was measured.
    measure: &'static str,
    value: f64,
}

/// All numbers of an experiment, in the order in which they came.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    /// What the horizontal axis is.
    axis: &'static str,
    /// What stands for the values of all seeds.
    typical: fn(&[f64]) -> f64,
    samples: Vec<Sample>,
}

/// Under what circumstances numbers are measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case<'a> {
    pub(super) stream: &'a str,
    pub(super) place: &'a str,
    pub(super) method: &'a str,
    pub(super) seed: u64,
}

impl Samples {
    /// None yet; `axis` names the column of places, and the median stands for all seeds.
    pub(super) fn over(axis: &'static str) -> Samples {
        Samples { axis, typical: median, samples: Vec::new() }
    }

    /// None yet; the mean stands for all seeds, as it should where failures are counted.
    pub(super) fn means_over(axis: &'static str) -> Samples {
        Samples { typical: mean, ..Samples::over(axis) }
    }

    /// Adds what was measured in one case.
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

    /// All of them: a row for each case, a column for each measure.
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

    /// Over all seeds that have a number; no number if none has.
    fn typical(&self, stream: &str, place: &str, method: &str, measure: &str) -> f64 {
        let is_it = |sample: &&Sample| {
            (&*sample.stream, &*sample.place, &*sample.method, sample.measure)
                == (stream, place, method, measure)
        };
        let values = self.samples.iter().filter(is_it).map(|sample| sample.value);
        let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        if values.is_empty() { f64::NAN } else { (self.typical)(&values) }
    }

    /// For each method what is typical at each place.
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

    /// One measure as a table: a row for each place, a column for each method that has some.
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

/// With six decimals at most; nothing if it is no number.
fn shortest(value: f64) -> String {
    if value.is_finite() { ((value * 1e6).round() / 1e6).to_string() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_the_median_over_seeds_and_who_has_none_has_no_column() {
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
