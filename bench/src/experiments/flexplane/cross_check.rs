//! Cross-check with ns-3: the same small TCP scenarios through one bottleneck in both simulators.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use anyhow::Context;
use thalweg_experiment::experiment::table::Top;
use thalweg_experiment::results::Results;
use thalweg_plot::bars::{Arrangement, Bars};
use thalweg_plot::figure::{self, ALONE, Legend};
use thalweg_plot::page::Heading;

use super::{Contender, Keep, Study, digits, link_to, mean, quantile, sweep};
use crate::emulator::ns3::{Crosscheck, Programs, SOURCES, Scenario, Span};
use crate::experiments::Outcome;
use crate::results::{Page, Table, grouped, save};
use crate::row;

/// Five senders at 10 Gbit/s, and two at 1 Gbit/s.
const FIVE: &str = "experiment.toml";
const TWO: &str = "fairness.toml";

/// The scenarios in ns-3, and the files and settings here.
const SCENARIOS: [(Scenario, &str, Contender); 9] = [
    (Scenario::DropTailCubic, FIVE, Contender::new("DropTail, CUBIC", &[("scheme", "droptail")])),
    (Scenario::DropTailReno, FIVE, Contender::new("DropTail, NewReno", &[("scheme", "droptail"), RENO])),
    (Scenario::RedCubic, FIVE, Contender::new("RED, CUBIC", &[("scheme", "red")])),
    (Scenario::RedReno, FIVE, Contender::new("RED, NewReno", &[("scheme", "red"), RENO])),
    (Scenario::RedEcnCubic, FIVE, Contender::new("RED that marks, CUBIC", &[("scheme", "red_ecn")])),
    (Scenario::RedEcnReno, FIVE, Contender::new("RED that marks, NewReno", &[("scheme", "red_ecn"), RENO])),
    (Scenario::Dctcp, FIVE, Contender::new("DCTCP", &[("scheme", "dctcp")])),
    (Scenario::FairnessCubic, TWO, Contender::new("two flows, CUBIC", &[])),
    (Scenario::FairnessReno, TWO, Contender::new("two flows, NewReno", &[RENO])),
];

const RENO: (&str, &str) = ("transport", "new_reno");

/// The compared measurements; queues in packets, every millisecond after the warm-up.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    goodput_bps: f64,
    fairness: f64,
    queue_mean: f64,
    queue_p5: f64,
    queue_median: f64,
    queue_p95: f64,
    drops: f64,
    marks: f64,
}

impl Measured {
    /// Returns the measurements of our run.
    fn ours(results: &Results) -> Measured {
        let summary = &results.summary;
        let rows = results.queues.iter().filter(|row| row.time_ns >= results.warm_up_ns);
        let queue: Vec<f64> = rows.map(|row| f64::from(row.packets)).collect();
        let receiver = results.queues.first().map_or("", |row| &row.to);
        let (drops, marks) =
            link_to(results, receiver).map_or((0, 0), |link| (link.dropped_packets, link.marked_packets));
        Measured {
            goodput_bps: summary.goodput_bps,
            fairness: summary.unbounded.as_ref().map_or(f64::NAN, |flows| flows.fairness),
            queue_mean: mean(&queue),
            queue_p5: quantile(&queue, 0.05),
            queue_median: quantile(&queue, 0.5),
            queue_p95: quantile(&queue, 0.95),
            drops: drops as f64,
            marks: marks as f64,
        }
    }

    /// Returns the measurements of an ns-3 run.
    fn theirs(run: &Crosscheck) -> Measured {
        Measured {
            goodput_bps: run.total_goodput_bps(),
            fairness: run.fairness(),
            queue_mean: run.queue.mean,
            queue_p5: run.queue.p5.into(),
            queue_median: run.queue.median.into(),
            queue_p95: run.queue.p95.into(),
            drops: run.drops as f64,
            marks: run.marks as f64,
        }
    }

    /// Returns the mean of several runs, by field.
    fn typical(runs: &[Measured]) -> Measured {
        let of = |of: fn(&Measured) -> f64| mean(&runs.iter().map(of).collect::<Vec<_>>());
        Measured {
            goodput_bps: of(|run| run.goodput_bps),
            fairness: of(|run| run.fairness),
            queue_mean: of(|run| run.queue_mean),
            queue_p5: of(|run| run.queue_p5),
            queue_median: of(|run| run.queue_median),
            queue_p95: of(|run| run.queue_p95),
            drops: of(|run| run.drops),
            marks: of(|run| run.marks),
        }
    }

    fn cells(&self) -> Vec<String> {
        vec![
            format!("{:.3}", self.goodput_bps / 1e9),
            format!("{:.3}", self.fairness),
            digits(self.queue_mean),
            digits(self.queue_p5),
            digits(self.queue_median),
            digits(self.queue_p95),
            grouped(self.drops.round() as u64),
            grouped(self.marks.round() as u64),
        ]
    }
}

const COLUMNS: [&str; 8] =
    ["goodput, Gbit/s", "fairness", "queue mean", "p5", "median", "p95", "drops", "marks"];

pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let mut raw = with_columns(&["scenario", "simulator", "seed"]);
    let mut ours = Vec::new();
    for (_, file, contender) in SCENARIOS {
        let experiment = contender.of(&study.experiment(file)?)?;
        let runs = sweep(contender.name, &experiment, &[("seed", study.seeds())], Keep::Queues)?;
        let measured: Vec<Measured> = runs.iter().map(|run| Measured::ours(&run.results)).collect();
        for (run, measured) in runs.iter().zip(&measured) {
            push(&mut raw, &[contender.name, "Thalweg", &run.results.seed.to_string()], measured);
        }
        ours.push(Measured::typical(&measured));
    }
    let theirs = ns3(study);
    for ((_, _, contender), run) in SCENARIOS.iter().zip(theirs.as_ref().map_or(&[][..], |(_, runs)| runs)) {
        push(&mut raw, &[contender.name, "ns-3", "1"], &Measured::theirs(run));
    }
    let mut page = Page::new("Cross-check with ns-3", study.command);
    page.paragraph(format!(
                "Endless flows to one receiver: five through 10 Gbit/s with a round trip of 40 us, or two through 1 Gbit/s with \
                 100 us; hosts add no delay. Both simulators have the same settings: see [experiment.toml](experiment.toml), \
                 [fairness.toml](fairness.toml) and `bench/peers/ns3`. Measured after 20 or 10 % of the time, the queue every \
                 millisecond. Means over {} seeds for Thalweg, one run for ns-3. Fairness is Jain's index.",
        study.seeds
    ));
    match &theirs {
        Ok((version, runs)) => {
            let theirs: Vec<Measured> = runs.iter().map(Measured::theirs).collect();
            page.paragraph(format!("ns-3 {version}."));
            page.section("Comparison").table(&comparison(&ours, &theirs));
            page.section("Thalweg against ns-3").table(&differences(&ours, &theirs));
            draw(study.plot, &ours, &theirs)?;
        }
        Err(error) => {
            eprintln!("skipped: ns-3: {error:#}");
            page.paragraph(format!("skipped: ns-3: {error:#}."));
            page.section("Thalweg alone").table(&comparison(&ours, &[]));
            draw(study.plot, &ours, &[])?;
        }
    }
    Ok(Outcome { page, table: raw })
}

/// Returns the version, and a run of each scenario; runs use all cores.
fn ns3(study: &Study<'_>) -> anyhow::Result<(String, Vec<Crosscheck>)> {
    let programs = Programs::build(Path::new(SOURCES), study.build)?;
    let next = AtomicUsize::new(0);
    let runs: Mutex<Vec<Option<anyhow::Result<Crosscheck>>>> = Mutex::new(SCENARIOS.map(|_| None).into());
    let work = || {
        while let Some((scenario, file, contender)) = SCENARIOS.get(next.fetch_add(1, Ordering::Relaxed)) {
            eprintln!("{}: ns-3", contender.name);
            let run = span(study, file).and_then(|span| programs.crosscheck(*scenario, span, 1));
            runs.lock().expect("no thread panics while holding it")[*scenario as usize] = Some(run);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let runs = runs.into_inner().expect("no thread panics while holding it").into_iter();
    let runs = runs.map(|run| run.context("a scenario was not run")?).collect::<anyhow::Result<_>>()?;
    Ok((programs.version, runs))
}

/// Returns the duration of our run.
fn span(study: &Study<'_>, file: &str) -> anyhow::Result<Span> {
    let experiment = study.experiment(file)?;
    let Top { duration, warm_up, .. } = experiment.one::<Top>().into_value();
    Ok(Span { seconds: duration.as_secs_f64(), warm_up: warm_up.as_secs_f64() })
}

fn with_columns(first: &[&str]) -> Table {
    Table::with_header(first.iter().chain(&COLUMNS).map(|name| (*name).to_owned()).collect())
}

fn push(table: &mut Table, first: &[&str], measured: &Measured) {
    table.push(first.iter().map(|cell| (*cell).to_owned()).chain(measured.cells()).collect());
}

fn comparison(ours: &[Measured], theirs: &[Measured]) -> Table {
    let mut table = with_columns(&["scenario", "simulator"]);
    for (place, ((_, _, contender), ours)) in SCENARIOS.iter().zip(ours).enumerate() {
        push(&mut table, &[contender.name, "Thalweg"], ours);
        if let Some(theirs) = theirs.get(place) {
            push(&mut table, &[contender.name, "ns-3"], theirs);
        }
    }
    table
}

fn differences(ours: &[Measured], theirs: &[Measured]) -> Table {
    let mut table = Table::new(["scenario", "goodput", "fairness", "queue mean", "median", "p95"]);
    for (((_, _, contender), ours), theirs) in SCENARIOS.iter().zip(ours).zip(theirs) {
        let percent = |of: fn(&Measured) -> f64| format!("{:+.1} %", 100.0 * (of(ours) / of(theirs) - 1.0));
        row!(
            table,
            contender.name,
            percent(|run| run.goodput_bps),
            percent(|run| run.fairness),
            percent(|run| run.queue_mean),
            percent(|run| run.queue_median),
            percent(|run| run.queue_p95),
        );
    }
    table
}

fn draw(path: &Path, ours: &[Measured], theirs: &[Measured]) -> anyhow::Result<()> {
    let queues = |runs: &[Measured]| runs.iter().map(|run| run.queue_mean).collect();
    let names = SCENARIOS.map(|(_, _, contender)| contender.name);
    let series: [(&str, Vec<f64>); 2] = [("Thalweg", queues(ours)), ("ns-3", queues(theirs))];
    let legend = Legend::of(&series.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    let bars = Bars {
        title: String::new(),
        x_title: "packets".to_owned(),
        names: names.into_iter().map(str::to_owned).collect(),
        series: series.into_iter().map(|(_, values)| values).collect(),
        intervals: Vec::new(),
        arrangement: Arrangement::SideBySide,
    };
    save(path, &figure::draw(&Heading::new("Mean queue at the bottleneck", ""), &legend, ALONE, &[bars])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_in_numerical_order() {
        for (place, (scenario, _, _)) in SCENARIOS.iter().enumerate() {
            assert_eq!((*scenario as usize, *scenario), (place, Scenario::ALL[place]));
        }
    }
}
