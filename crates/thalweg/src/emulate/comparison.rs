//! The table of a sweep: one line per run, or per group of runs that differ only in their seed.

use std::fmt::Write as _;

use thalweg_experiment::results::{QueueUse, Results, SizeClassRow, Summary, SweepResults, SweepRun};
use thalweg_experiment::seeds::{self, Group, Mean};

use super::report::rate;
use crate::figures::{grouped, number};

/// Legend of a comparison.
const LEGEND: &str = "\
queue: queued packets at the port with the longest mean queue, mean and 99th percentile
slowdown: completion time divided by that in an idle network, mean and 99th percentile, of small flows (up to 100 kB)
and large flows (from 10 MB); > marks a lower bound, because some flows did not complete
";

/// Legend of means over seeds.
const SEEDS_LEGEND: &str = "\
± is half the width of the 95 % confidence interval of the mean over the seeds (Student's t); with --output, runs.csv has the single runs
";

/// Formats the runs of a sweep as a table; those that differ only in their seed as one line.
pub fn comparison(results: &SweepResults) -> String {
    let (keys, rows, has_seeds): (Vec<String>, Vec<Vec<String>>, bool) = match seeds::groups(results) {
        None => {
            let row = |run: &SweepRun| {
                let figures = FIGURES.iter().map(|figure| figure.of_run(&run.results));
                run.values.iter().cloned().chain(figures).collect()
            };
            (results.keys.clone(), results.runs.iter().map(row).collect(), false)
        }
        Some((mut keys, groups)) => {
            let row = |group: &Group| {
                let runs: Vec<&Results> = group.runs.iter().map(|&run| &results.runs[run].results).collect();
                let count = [grouped(runs.len() as u64)];
                let figures = FIGURES.iter().map(|figure| figure.of_seeds(&runs));
                group.values.iter().cloned().chain(count).chain(figures).collect()
            };
            keys.push("runs".to_owned());
            (keys, groups.iter().map(row).collect(), true)
        }
    };
    let left = if has_seeds { keys.len() - 1 } else { keys.len() };
    let above = vec![String::new(); keys.len()];
    let above = above.into_iter().chain(FIGURES.iter().map(|figure| figure.above.to_owned()));
    let names = keys.into_iter().chain(FIGURES.iter().map(|figure| figure.name.to_owned()));
    let table: Vec<Vec<String>> = [above.collect(), names.collect()].into_iter().chain(rows).collect();
    let mut text = format!("{}\n", results.experiment);
    text.push_str(&aligned(&table, left));
    text.push_str(LEGEND);
    if has_seeds {
        text.push_str(SEEDS_LEGEND);
    }
    text
}

/// A column of the comparison.
struct Figure {
    /// Its heading, in two lines.
    above: &'static str,
    name: &'static str,
    /// The number; NaN if a run has none.
    value: fn(&Summary) -> f64,
    /// Its text.
    text: fn(f64) -> String,
    /// Whether it is a lower bound, because flows did not complete.
    is_lower_bound: fn(&Summary) -> bool,
}

/// The columns of a comparison after its keys.
const FIGURES: [Figure; 9] = [
    Figure::new("", "throughput", |summary| summary.throughput_bps, rate),
    Figure::new("packets", "dropped", |summary| summary.packets.dropped as f64, whole),
    Figure::new("packets", "marked", |summary| summary.packets.marked as f64, whole),
    Figure::new(
        "queue",
        "mean",
        |summary| longest(summary, |queue| queue.packets.mean),
        |mean| number(mean, 1),
    ),
    Figure::new("queue", "p99", |summary| longest(summary, |queue| queue.packets.p99), whole),
    Figure::slowdown(
        "small mean",
        |summary| slowdown(summary, "small", |class| class.slowdown.mean),
        |summary| is_cut(summary, "small"),
    ),
    Figure::slowdown(
        "small p99",
        |summary| slowdown(summary, "small", |class| class.slowdown.p99),
        |summary| is_cut(summary, "small"),
    ),
    Figure::slowdown(
        "large mean",
        |summary| slowdown(summary, "large", |class| class.slowdown.mean),
        |summary| is_cut(summary, "large"),
    ),
    Figure::new("flows", "unfinished", |summary| summary.flows.unfinished as f64, whole),
];

impl Figure {
    const fn new(
        above: &'static str,
        name: &'static str,
        value: fn(&Summary) -> f64,
        text: fn(f64) -> String,
    ) -> Figure {
        Figure { above, name, value, text, is_lower_bound: |_| false }
    }

    const fn slowdown(
        name: &'static str,
        value: fn(&Summary) -> f64,
        is_lower_bound: fn(&Summary) -> bool,
    ) -> Figure {
        Figure { above: "slowdown", name, value, text: |slowdown| number(slowdown, 2), is_lower_bound }
    }

    fn of_run(&self, run: &Results) -> String {
        let value = (self.value)(&run.summary);
        match value.is_finite() {
            true => format!("{}{}", self.at_least(&[run]), (self.text)(value)),
            false => "-".to_owned(),
        }
    }

    /// The mean over seeds, and half the width of its confidence interval.
    fn of_seeds(&self, runs: &[&Results]) -> String {
        match Mean::of(runs.iter().map(|run| (self.value)(&run.summary))) {
            None => "-".to_owned(),
            Some(Mean { mean, half_width: None }) => (self.text)(mean),
            Some(Mean { mean, half_width: Some(half) }) => {
                format!("{}{} ± {}", self.at_least(runs), (self.text)(mean), (self.text)(half))
            }
        }
    }

    fn at_least(&self, runs: &[&Results]) -> &'static str {
        if runs.iter().any(|run| (self.is_lower_bound)(&run.summary)) { ">" } else { "" }
    }
}

fn whole(value: f64) -> String {
    number(value, 0)
}

fn longest(summary: &Summary, of: fn(&QueueUse) -> f64) -> f64 {
    summary.longest_queues.first().map_or(f64::NAN, of)
}

fn class<'s>(summary: &'s Summary, name: &str) -> Option<&'s SizeClassRow> {
    summary.sizes.iter().find(|class| class.class == name && class.completed > 0)
}

fn slowdown(summary: &Summary, name: &str, of: fn(&SizeClassRow) -> f64) -> f64 {
    class(summary, name).map_or(f64::NAN, of)
}

fn is_cut(summary: &Summary, name: &str) -> bool {
    class(summary, name).is_some_and(|class| class.unfinished > 0)
}

/// Aligns the columns of a table, the first `left` of them to the left.
fn aligned(table: &[Vec<String>], left: usize) -> String {
    let widths: Vec<usize> = (0..table[0].len())
        .map(|column| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in table {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match column < left {
                true => write!(line, "  {cell:<width$}"),
                false => write!(line, "  {cell:>width$}"),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
