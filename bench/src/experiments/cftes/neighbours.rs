//! Whether runs are long enough to tell neighbouring points of a curve apart.

use crate::results::Table;
use crate::row;
use crate::statistics::{half_interval, mean};

/// Losses that matter: points with less are not compared.
const LEAST_LOSS: f64 = 1e-4;

/// Whether the runs of two points with the same seed have the same background traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seeds {
    /// The interval is that of the differences between runs of the same seed.
    Same,
    /// The interval is that of the difference between two independent means.
    Independent,
}

/// A line with losses by place and run.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) losses: Vec<Vec<f64>>,
}

/// The half of the 95 % interval of the difference between the means of two samples.
fn half_of_difference(seeds: Seeds, one: &[f64], other: &[f64]) -> f64 {
    match seeds {
        Seeds::Same => {
            half_interval(&one.iter().zip(other).map(|(one, other)| other - one).collect::<Vec<f64>>())
        }
        Seeds::Independent => half_interval(one).hypot(half_interval(other)),
    }
}

/// Makes a table of the neighbours on each line, of which at least one has a loss above [`LEAST_LOSS`], and which of them do
/// not differ by more than their 95 % interval.
pub(super) fn table(seeds: Seeds, places: &[String], lines: &[Line]) -> Table {
    let mut table =
        Table::new(["line", "neighbours with losses above 0.01 %", "told apart", "not told apart"]);
    for Line { name, losses } in lines {
        let pairs = losses.windows(2).zip(places.windows(2));
        let pairs: Vec<_> =
            pairs.filter(|(losses, _)| losses.iter().any(|sample| mean(sample) > LEAST_LOSS)).collect();
        let is_apart = |losses: &[Vec<f64>]| {
            (mean(&losses[0]) - mean(&losses[1])).abs() > half_of_difference(seeds, &losses[0], &losses[1])
        };
        let alike = pairs.iter().filter(|(losses, _)| !is_apart(losses));
        let alike: Vec<String> =
            alike.map(|(_, places)| format!("{} and {}", places[0], places[1])).collect();
        let names = if alike.is_empty() { "-".to_owned() } else { alike.join(", ") };
        row!(table, name, pairs.len(), pairs.len() - alike.len(), names);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_that_differ_by_more_than_their_interval_are_told_apart() {
        let losses =
            |base: f64, noise: f64| (0..60).map(|run| base + noise * (f64::from(run % 7) - 3.0)).collect();
        let line = Line {
            name: "a line".to_owned(),
            // Nothing is lost, then a step, then less than the noise, of which all runs have the same.
            losses: vec![losses(0.0, 0.0), losses(1e-5, 0.0), losses(1e-3, 2e-4), losses(1.01e-3, 2e-4)],
        };
        let places = ["w", "x", "y", "z"].map(str::to_owned);
        let rows = |seeds| table(seeds, &places, std::slice::from_ref(&line)).csv();
        let rows =
            [Seeds::Independent, Seeds::Same].map(|seeds| rows(seeds).lines().nth(1).unwrap().to_owned());
        assert_eq!(rows, ["a line,2,1,y and z", "a line,2,2,-"]);
    }
}
