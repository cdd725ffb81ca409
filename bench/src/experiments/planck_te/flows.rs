//! Figure 18: completion times of shuffles, and throughput of a stride's flows.

use std::collections::BTreeMap;
use std::path::Path;

use thalweg_plot::axis::Scale;
use thalweg_plot::figure::{self, Legend, SEVERAL};
use thalweg_plot::page::Heading;
use thalweg_plot::panel::Panel;
use thalweg_wire::Bytes;

use super::sweep;
use super::trial::{Method, PAPER_HOST_RATE, Results, Trial};
use super::workload::Pattern;
use crate::experiments::Outcome;
use crate::experiments::flexplane::{Study, Trends};
use crate::results::{Page, Table, save};
use crate::row;
use crate::statistics::{median, quantile};

/// Flow sizes of the stride, as in the paper, and of the shuffle, a fifth of the paper's.
const BYTES: Bytes = Bytes(100 << 20);
const SHUFFLE_BYTES: Bytes = Bytes(20 << 20);

/// Medians of the paper in seconds (section 7.3).
const PAPER_SHUFFLE: [(Method, f64); 4] =
    [(Method::POLL_1_S, 3.31), (Method::POLL_100_MS, 3.01), (Method::PLANCK, 2.86), (Method::Optimal, 2.52)];

/// Values under a method, of all seeds.
struct Cell {
    method: Method,
    values: Vec<f64>,
}

/// Runs the experiment.
///
/// # Errors
/// If a run fails, or the plot cannot be written.
pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let mut raw = Table::new(["figure", "method", "seed", "value"]);
    let shuffle = cells(study, Pattern::Shuffle, SHUFFLE_BYTES, host_completions, &mut raw)?;
    let stride = cells(study, Pattern::Stride, BYTES, Results::throughputs, &mut raw)?;
    let mut page = Page::new("Traffic engineering flow by flow", study.command);
    page.paragraph(format!(
        "Fat tree of 16 hosts, links of 10 Gbit/s, hosts at {PAPER_HOST_RATE} (the paper's sent at about that), CUBIC, {} seeds. \
                   Each host sends {} MiB to every other one in the shuffle, a fifth of the paper's size, and {} MiB to one in the stride.",
        study.seeds,
        SHUFFLE_BYTES.0 >> 20,
        BYTES.0 >> 20
    ));
    page.section("Figure 18a: completion time of a host's shuffle, seconds").table(&quantiles(&shuffle, 3));
    page.section("Figure 18b: throughput of a stride's flows, Gbit/s").table(&quantiles(&stride, 2));
    page.section("Trends").table(&trends(&shuffle, &stride).0);
    draw(study.plot, &shuffle, &stride)?;
    Ok(Outcome { page, table: raw })
}

fn cells(
    study: &Study<'_>,
    pattern: Pattern,
    bytes: Bytes,
    values: impl Fn(&Results) -> Vec<f64>,
    raw: &mut Table,
) -> anyhow::Result<Vec<Cell>> {
    let of_method = |method| {
        let trial = move |seed| Trial {
            method,
            pattern,
            bytes,
            seed,
            host_rate: PAPER_HOST_RATE,
            ..Trial::default()
        };
        (1..=study.seeds).map(trial)
    };
    let trials: Vec<Trial> = Method::all().into_iter().flat_map(of_method).collect();
    let results = sweep::run(pattern.name(), &trials)?;
    for (trial, results) in trials.iter().zip(&results) {
        for value in values(results) {
            row!(raw, pattern.name(), trial.method.name(), trial.seed, format!("{value:.5}"));
        }
    }
    let of_method = |(method, results): (Method, &[Results])| Cell {
        method,
        values: results.iter().flat_map(&values).collect(),
    };
    Ok(Method::all().into_iter().zip(results.chunks(study.seeds as usize)).map(of_method).collect())
}

/// Returns the completion time of each host's last flow, in seconds since the first flow started.
fn host_completions(results: &Results) -> Vec<f64> {
    let begin = results.flows.iter().map(|flow| flow.start).min().unwrap_or_default();
    let mut ends = BTreeMap::new();
    for flow in &results.flows {
        let end = ends.entry(flow.source).or_insert(flow.end);
        *end = flow.end.max(*end);
    }
    ends.into_values().map(|end| end.since(begin).as_secs_f64()).collect()
}

fn quantiles(cells: &[Cell], decimals: usize) -> Table {
    let mut table = Table::new(["method", "least", "10 %", "median", "90 %", "most"]);
    for Cell { method, values } in cells {
        let [a, b, c, d, e] =
            [0.0, 0.1, 0.5, 0.9, 1.0].map(|share| format!("{:.decimals$}", quantile(values, share)));
        row!(table, method.name(), a, b, c, d, e);
    }
    table
}

fn median_of(cells: &[Cell], method: Method) -> f64 {
    cells.iter().find(|cell| cell.method == method).map_or(f64::NAN, |cell| median(&cell.values))
}

fn trends(shuffle: &[Cell], stride: &[Cell]) -> Trends {
    let mut trends = Trends::new();
    let (best, paper_best) = (median_of(shuffle, Method::Optimal), PAPER_SHUFFLE[3].1);
    for (method, seconds) in &PAPER_SHUFFLE[..3] {
        let (longer, paper) = (median_of(shuffle, *method) / best, seconds / paper_best);
        trends.check(
            &format!(
                "shuffle: {} takes {:.0} % longer than Optimal; here at most that",
                method.name(),
                100.0 * (paper - 1.0)
            ),
            longer <= paper,
            &format!("{:.1} %", 100.0 * (longer - 1.0)),
        );
    }
    let [polls, planck, optimal] =
        [Method::POLL_100_MS, Method::PLANCK, Method::Optimal].map(|method| median_of(stride, method));
    trends.check(
        "stride: median flows have 5.9 Gbit/s with PlanckTE and 4.9 with Poll-0.1s",
        planck > polls && (planck / 5.9 - 1.0).abs() < 0.05,
        &format!("{planck:.2}, {polls:.2}"),
    );
    trends.check(
        "stride: PlanckTE closely tracks Optimal",
        planck > 0.96 * optimal,
        &format!("{planck:.2} of {optimal:.2}"),
    );
    trends
}

/// Returns the points of a cumulative distribution, in percent.
fn distribution(cell: &Cell) -> Vec<(f64, f64)> {
    let mut values = cell.values.clone();
    values.sort_by(f64::total_cmp);
    let share = |place: usize| 100.0 * place as f64 / values.len() as f64;
    (0..)
        .zip(&values)
        .flat_map(|(place, &value)| [(value, share(place)), (value, share(place + 1))])
        .collect()
}

fn draw(path: &Path, shuffle: &[Cell], stride: &[Cell]) -> anyhow::Result<()> {
    let panel = |title: &str, x: &str, cells: &[Cell]| {
        let curves = cells.iter().map(distribution).collect();
        Panel::curves(format!("{title} (percent)"), x, Scale::LINEAR, curves)
    };
    let panels = [panel("a host's shuffle", "seconds", shuffle), panel("a stride's flows", "Gbit/s", stride)];
    let legend = Legend::of(&Method::all().map(Method::name));
    save(
        path,
        &figure::draw(
            &Heading::new("Cumulative distributions of shuffle times and flow rates", ""),
            &legend,
            SEVERAL,
            &panels,
        )?,
    )
}
