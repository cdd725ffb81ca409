//! Updates per second, textbook and ours, by the probability that a row is updated.

use std::path::Path;

use thalweg_plot::axis::Scale;
use thalweg_plot::figure::{self, Legend, SEVERAL};
use thalweg_plot::page::Heading;
use thalweg_plot::panel::Panel;
use thalweg_sketch::Probability;

use super::samples::{Case, Samples};
use super::{TOP, describe, percent, zipf};
use crate::experiments::Outcome;
use crate::results::{Page, Table, save};
use crate::row;
use crate::sketches::contender::{Contender, Family};
use crate::sketches::contenders::textbook;
use crate::sketches::ours;

/// Tasks in the order of tables and legends.
const TASKS: [(&str, Family, bool); 5] = [
    ("Count-Min", Family::CountMin, false),
    ("Count Sketch", Family::CountSketch, false),
    ("K-ary", Family::KAry, false),
    ("Count Sketch, top 100", Family::CountSketch, true),
    ("UnivMon", Family::UnivMon, true),
];

/// Runs each contender `runs` times, in turns.
pub(in crate::experiments) fn run(
    packets: u64,
    runs: u64,
    command: &str,
    plot: &Path,
) -> anyhow::Result<Outcome> {
    let stream = zipf(packets, 1.0, 0.0)?;
    let truth = stream.truth();
    let (largest, flows) = (truth.top(TOP), truth.distinct());
    let mut contenders = textbook();
    contenders.retain(|contender| contender.subject.sketch != Family::HyperLogLog);
    contenders.extend(probabilities().flat_map(ours::all));
    let mut samples = Samples::over("p");
    for seed in 1..=runs {
        for contender in &contenders {
            let outcome = contender.run(&stream.keys, &largest, flows);
            let Some(task) = task(contender) else { continue };
            let (place, method) = (one_in(contender.subject.p), contender.subject.contender.clone());
            let case = Case { stream: task, place: &place, method: &method, seed };
            samples.add(case, &[("M updates/s", outcome.rate()), ("error", outcome.error)]);
        }
    }
    let mut page = Page::new("Updates per second", command);
    page.paragraph(format_args!(
        "{}. Sketches of 5 rows by 8192 counters, UnivMon of 16 levels of them with 1000 flows each. One thread, \
                   CPU time of the updates alone, medians of {runs} runs. Errors are those of the {TOP} largest flows \
         in the same runs; ratios are to the textbook at p = 1.",
        describe(&stream, &truth),
    ));
    let places: Vec<String> = probabilities().map(|p| p.to_string()).collect();
    for (task, _, _) in TASKS {
        page.section(task).table(&section(&samples, task, &places));
    }
    draw(plot, &samples, &places)?;
    Ok(Outcome { page, table: samples.table() })
}

/// Returns the probabilities 1 to 1/128.
fn probabilities() -> impl Iterator<Item = Probability> {
    (0..=Probability::PAPER_MIN.log2_inverse()).filter_map(Probability::new)
}

fn one_in(p: f64) -> String {
    Probability::at_most(p).to_string()
}

/// Returns the task of a contender; `None` if it is excluded (Count-Min with a heap has no sampled version).
fn task(contender: &Contender) -> Option<&'static str> {
    let task = contender.subject.task();
    TASKS.iter().find(|(_, family, top)| (*family, *top) == task).map(|(name, _, _)| *name)
}

fn section(samples: &Samples, task: &str, places: &[String]) -> Table {
    let methods = [crate::sketches::contenders::TEXTBOOK, ours::OURS];
    let (rates, errors) = (
        samples.lines(task, "M updates/s", places, &methods),
        samples.lines(task, "error", places, &methods),
    );
    let mut table = Table::new([
        "p",
        "textbook, M/s",
        "error, textbook",
        "thalweg, M/s",
        "error, thalweg",
        "speed relative to the textbook",
        "error relative to the textbook",
    ]);
    let number = |value: f64, decimals: usize| match value.is_nan() {
        true => "-".to_owned(),
        false => format!("{value:.decimals$}"),
    };
    for (place, p) in places.iter().enumerate() {
        row!(
            table,
            p,
            number(rates[0][place], 1),
            percent(errors[0][place]),
            number(rates[1][place], 1),
            percent(errors[1][place]),
            number(rates[1][place] / rates[0][0], 2),
            number(errors[1][place] / errors[0][0], 2),
        );
    }
    table
}

fn draw(path: &Path, samples: &Samples, places: &[String]) -> anyhow::Result<()> {
    let lines = |measure, method: &str| -> Vec<Vec<f64>> {
        TASKS.iter().map(|(task, _, _)| samples.lines(task, measure, places, &[method]).remove(0)).collect()
    };
    let panel = |title: &str, y: &str, scale: Scale, lines: Vec<Vec<f64>>| {
        Panel::over_names(
            format!("{title} ({y})"),
            "probability that a row is updated",
            places,
            scale,
            &lines,
        )
    };
    let panels = [
        panel("Updates, thalweg", "million per second", Scale::LOGARITHMIC, lines("M updates/s", ours::OURS)),
        panel(
            "Speed relative to the textbook at p = 1",
            "ratio",
            Scale::LOGARITHMIC,
            ratios(lines("M updates/s", ours::OURS), lines("M updates/s", "textbook")),
        ),
        panel(
            "Error of the 100 largest flows, thalweg",
            "mean relative error",
            Scale::LOGARITHMIC.in_percent(),
            lines("error", ours::OURS),
        ),
        panel(
            "Updates, textbook (one logarithm per draw)",
            "million per second",
            Scale::LOGARITHMIC,
            lines("M updates/s", "textbook"),
        ),
    ];
    let legend = TASKS.map(|(task, _, _)| task);
    save(
        path,
        &figure::draw(&Heading::new("Updates per second", ""), &Legend::of(&legend), SEVERAL, &panels)?,
    )
}

/// Divides each line by the first value of the other.
fn ratios(lines: Vec<Vec<f64>>, others: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let divide = |(line, other): (Vec<f64>, Vec<f64>)| line.iter().map(|value| value / other[0]).collect();
    lines.into_iter().zip(others).map(divide).collect()
}
