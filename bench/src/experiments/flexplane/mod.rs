//! Claims of Flexplane (Ousterhout et al., NSDI 2017, section 5), in virtual time: one module per experiment.
//!
//! Each sweeps the `experiment.toml` in its folder, which `thalweg emulate` also runs, over schemes, loads and seeds on
//! all cores, and checks the paper's statements. The same seeds give the same numbers.
//!
//! | module | figure or section |
//! |---|---|
//! | [`queues`] | table 2: throughput and queue of DropTail, RED and DCTCP |
//! | [`completion`] | figures 4 and 7: completion times of a web search workload |
//! | [`trade_off`] | figure 6: trade-off between short and long flows |
//! | [`hull_threshold`] | section 5.2: HULL's marking threshold |
//! | [`schemes_lines`] | table 3: lines of code per scheme |
//! | [`cross_check`] | none: the same small scenarios in ns-3 |

pub(super) mod completion;
pub(super) mod cross_check;
pub(super) mod hull_threshold;
pub(super) mod queues;
pub(super) mod schemes_lines;
pub(super) mod trade_off;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread::available_parallelism;

use anyhow::Context;
use thalweg_experiment::Experiment;
use thalweg_experiment::experiment::table::{Limits, Top, Workload};
use thalweg_experiment::files::{Format, Output};
use thalweg_experiment::results::{FlowRow, LinkUse, Results, SweepRun};
use thalweg_experiment::sweep::{Axis, Sweep};

use crate::results::Table;
use crate::row;

/// The settings of all experiments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Study<'a> {
    /// Folder with the experiment file.
    pub(super) folder: &'a Path,
    pub(super) seeds: u64,
    /// Emulated seconds per run; `None`: as in the file.
    pub(super) seconds: Option<f64>,
    /// Build folder of the ns-3 programs.
    pub(super) build: &'a Path,
    pub(super) command: &'a str,
    pub(super) plot: &'a Path,
}

impl Study<'_> {
    /// Loads an experiment of the folder. With another duration, all its times scale in proportion.
    fn experiment(&self, file: &str) -> anyhow::Result<Experiment> {
        let mut experiment = Experiment::load(&self.folder.join(file))?;
        if let Some(seconds) = self.seconds {
            let Top { duration, warm_up, .. } = experiment.one::<Top>().into_value();
            let (duration, warm_up) = (duration.as_secs_f64(), warm_up.as_secs_f64());
            let until = experiment.all::<Workload>().find_map(|workload| workload.keys::<Limits>().until);
            let in_proportion = |time: f64| format!("{:.0}ns", time * seconds / duration * 1e9);
            experiment.set("duration", &in_proportion(duration), "--seconds")?;
            experiment.set("warm_up", &in_proportion(warm_up), "--seconds")?;
            if let Some(until) = until {
                experiment.set("until", &in_proportion(until.as_secs_f64()), "--seconds")?;
            }
        }
        Ok(experiment)
    }

    fn seeds(&self) -> Vec<String> {
        (1..=self.seeds).map(|seed| seed.to_string()).collect()
    }
}

/// Settings to compare, with their name in tables.
#[derive(Clone, Copy, Debug)]
struct Contender {
    name: &'static str,
    settings: &'static [(&'static str, &'static str)],
}

impl Contender {
    const fn new(name: &'static str, settings: &'static [(&'static str, &'static str)]) -> Contender {
        Contender { name, settings }
    }

    /// Returns the experiment with these settings.
    fn of(&self, experiment: &Experiment) -> anyhow::Result<Experiment> {
        with(experiment, self.settings)
    }
}

/// Returns an experiment with other settings, applied in order.
fn with(experiment: &Experiment, settings: &[(&str, &str)]) -> anyhow::Result<Experiment> {
    let mut experiment = experiment.clone();
    for (key, value) in settings {
        experiment.set(key, value, key)?;
    }
    Ok(experiment)
}

/// The data that a sweep keeps of each run in addition to its summary and flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    Summary,
    /// Queue samples.
    Queues,
}

/// Runs all combinations on all cores.
fn sweep(
    name: &str,
    experiment: &Experiment,
    axes: &[(&str, Vec<String>)],
    keep: Keep,
) -> anyhow::Result<Vec<SweepRun>> {
    let axes = axes.iter().map(|(key, values)| Axis { key: (*key).to_owned(), values: values.clone() });
    let sweep = Sweep::new(experiment, axes.collect())?;
    eprintln!("{name}: {} runs", sweep.runs());
    let cores = available_parallelism().map_or(1, Into::into);
    // Rows require a folder, which would contain captures of monitor ports; there are none.
    let output = Output { folder: Path::new(""), format: Format::default() };
    let output = (keep == Keep::Queues).then_some(output);
    let take = |_, results: Results| anyhow::Ok(results);
    Ok(sweep.run(cores, output, &AtomicBool::new(false), &|_, _| (), &take)?.runs)
}

/// Statements of the paper, and whether they hold here.
#[derive(Clone, Debug)]
pub(super) struct Trends(pub(super) Table);

impl Trends {
    pub(super) fn new() -> Trends {
        Trends::with_header("what the paper says")
    }

    /// Creates checks of other statements than the paper's.
    pub(super) fn with_header(header: &str) -> Trends {
        Trends(Table::new([header, "here", "numbers"]))
    }

    pub(super) fn check(&mut self, says: &str, holds: bool, numbers: &str) {
        row!(self.0, says, if holds { "pass" } else { "**fail**" }, numbers);
    }
}

/// Returns the directed link to the receiver of all flows.
fn link_to<'r>(results: &'r Results, receiver: &str) -> Option<&'r LinkUse> {
    results.summary.busiest_links.iter().find(|link| link.to == receiver)
}

/// Returns the flows that started after the warm-up.
fn flows_of(results: &Results) -> impl Iterator<Item = &FlowRow> {
    results.flows.iter().filter(|flow| flow.start_ns >= results.warm_up_ns)
}

/// Returns the idle one-way delay of a full-size segment in microseconds.
fn idle_one_way_us(experiment: &Experiment) -> anyhow::Result<f64> {
    let one_segment = [
        ("pattern", "incast"),
        ("sizes", "1448B"),
        ("rounds", "1"),
        ("warm_up", "0ns"),
        ("duration", "2ms"),
        ("queue_interval", "1ms"),
    ];
    let runs = sweep("an idle network", &with(experiment, &one_segment)?, &[], Keep::Summary)?;
    let flow = runs.first().and_then(|run| run.results.flows.first()).context("one segment arrives")?;
    Ok(flow.fct_ns as f64 / 1e3)
}

/// Formats a value with significant digits.
pub(super) fn digits(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "-".to_owned(),
        small if small < 10.0 => format!("{value:.2}"),
        middle if middle < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Returns the mean; NaN if empty.
pub(super) fn mean(sample: &[f64]) -> f64 {
    if sample.is_empty() { f64::NAN } else { crate::statistics::mean(sample) }
}

/// Returns a quantile; NaN if empty.
pub(super) fn quantile(sample: &[f64], share: f64) -> f64 {
    if sample.is_empty() { f64::NAN } else { crate::statistics::quantile(sample, share) }
}
