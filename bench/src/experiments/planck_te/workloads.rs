//! Figure 14: mean throughput of flows, by workload and scheme.

use std::path::Path;

use thalweg_wire::Bytes;

use super::sweep;
use super::trial::{Results, Scheme, Trial};
use super::workload::Pattern;
use crate::experiments::Outcome;
use crate::experiments::flexplane::{Study, Trends};
use crate::plot::{Bars, Labels, named_bars};
use crate::results::{Page, Table};
use crate::row;
use crate::statistics::{half_interval, mean, median};

/// Of each flow, and of each flow of a shuffle, of which every host sends 15: the paper's least are 100 MiB each.
const BYTES: Bytes = Bytes(100 << 20);
const SHUFFLE_BYTES: Bytes = Bytes(10 << 20);

/// How far PlanckTE may be below Optimal, as the paper has it (section 7.3).
const CLOSE: f64 = 0.04;
const CLOSE_IN_SHUFFLE: f64 = 0.123;

/// Runs it.
///
/// # Errors
/// If a run fails, or the plot cannot be written.
pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let cells: Vec<(Pattern, Scheme)> = Pattern::FIGURE
        .into_iter()
        .flat_map(|pattern| Scheme::all().map(|scheme| (pattern, scheme)))
        .collect();
    let trial = |pattern, scheme, seed| {
        let bytes = if pattern == Pattern::Shuffle { SHUFFLE_BYTES } else { BYTES };
        Trial { scheme, pattern, bytes, seed, ..Trial::default() }
    };
    let of_cell = |&(pattern, scheme)| (1..=study.seeds).map(move |seed| trial(pattern, scheme, seed));
    let trials: Vec<Trial> = cells.iter().flat_map(of_cell).collect();
    let results = sweep::run("figure 14", &trials)?;
    let cells: Vec<Cell> = cells
        .iter()
        .zip(results.chunks(study.seeds as usize))
        .map(|(&of, results)| Cell::new(of, results))
        .collect();

    let mut page = Page::new("Traffic engineering by workload", study.command);
    page.paragraph(format!(
        "Fat tree of 16 hosts, 10 Gbit/s, CUBIC, {} seeds: other trees, pairs and times for each. Flows have {} MiB, those of \
         a shuffle {} MiB: ten times less than the paper's, as every host sends 15 of them, two at a time. Polls may come at \
         any time of a run. A control action takes 2.5 ms. Mean throughput of flows from their beginning to their end, in \
         Gbit/s, with its 95 % confidence interval over seeds.",
        study.seeds,
        BYTES.0 >> 20,
        SHUFFLE_BYTES.0 >> 20,
    ));
    page.section("Figure 14").table(&figure(&cells));
    page.section("Trends").table(&trends(&cells).0);
    page.section("What steering did").table(&steering(&cells));
    draw(study.plot, &cells)?;
    Ok(Outcome { page, table: raw(&trials, &results) })
}

/// A workload under a scheme, over all seeds.
struct Cell {
    pattern: Pattern,
    scheme: Scheme,
    /// Mean of flows, by seed.
    throughputs: Vec<f64>,
    results: Vec<Results>,
}

impl Cell {
    fn new((pattern, scheme): (Pattern, Scheme), results: &[Results]) -> Cell {
        let throughputs = results.iter().map(Results::throughput).collect();
        Cell { pattern, scheme, throughputs, results: results.to_vec() }
    }

    fn mean(&self) -> f64 {
        mean(&self.throughputs)
    }

    /// Mean over runs of something that is counted.
    fn per_run(&self, count: impl Fn(&Results) -> u64) -> f64 {
        mean(&self.results.iter().map(|results| count(results) as f64).collect::<Vec<_>>())
    }
}

fn cell<'a>(cells: &'a [Cell], pattern: Pattern, name: &str) -> &'a Cell {
    let is_it = |cell: &&Cell| cell.pattern == pattern && cell.scheme.name() == name;
    cells.iter().find(is_it).expect("every workload has run under every scheme")
}

/// How far PlanckTE is below Optimal, as a share.
fn gap(cells: &[Cell], pattern: Pattern) -> f64 {
    1.0 - cell(cells, pattern, "PlanckTE").mean() / cell(cells, pattern, "Optimal").mean()
}

fn figure(cells: &[Cell]) -> Table {
    let mut table = Table::new([
        "workload",
        "Static",
        "Poll-1s",
        "Poll-0.1s",
        "PlanckTE",
        "Optimal",
        "PlanckTE below Optimal",
        "paper",
    ]);
    for pattern in Pattern::FIGURE {
        let of_scheme = |scheme: Scheme| {
            let cell = cell(cells, pattern, scheme.name());
            format!("{:.2} ± {:.2}", cell.mean(), half_interval(&cell.throughputs))
        };
        let [a, b, c, d, e] = Scheme::all().map(of_scheme);
        let paper = if pattern == Pattern::Shuffle { "12.3 %" } else { "1 to 4 %" };
        row!(table, pattern.name(), a, b, c, d, e, format!("{:.1} %", 100.0 * gap(cells, pattern)), paper);
    }
    table
}

fn trends(cells: &[Cell]) -> Trends {
    let mut trends = Trends::new();
    for pattern in Pattern::FIGURE {
        let most = if pattern == Pattern::Shuffle { CLOSE_IN_SHUFFLE } else { CLOSE };
        trends.check(
            &format!("{}: PlanckTE is at most {} % below Optimal", pattern.name(), 100.0 * most),
            gap(cells, pattern) <= most,
            &format!("{:.1} %", 100.0 * gap(cells, pattern)),
        );
    }
    for pattern in Pattern::FIGURE {
        let [over_1_s, over_100_ms] = ["Poll-1s", "Poll-0.1s"]
            .map(|poll| cell(cells, pattern, "PlanckTE").mean() / cell(cells, pattern, poll).mean() - 1.0);
        trends.check(
            &format!("{}: PlanckTE is above both polls", pattern.name()),
            over_1_s > 0.0 && over_100_ms > 0.0,
            &format!("{:+.1} %, {:+.1} %", 100.0 * over_1_s, 100.0 * over_100_ms),
        );
    }
    trends
}

fn steering(cells: &[Cell]) -> Table {
    let mut table = Table::new([
        "PlanckTE, means over runs",
        "notices",
        "reroutes",
        "seen to work",
        "decision to first packet, ms",
        "packets lost",
        "sent again without need",
    ]);
    for pattern in Pattern::FIGURE {
        let cell = cell(cells, pattern, "PlanckTE");
        let responses: Vec<f64> =
            cell.results.iter().flat_map(|results| results.steered.responses_ms.iter().copied()).collect();
        row!(
            table,
            pattern.name(),
            format!("{:.0}", cell.per_run(|results| results.steered.events)),
            format!("{:.0}", cell.per_run(|results| results.steered.controller.begun)),
            format!("{:.0}", cell.per_run(|results| results.steered.controller.confirmed)),
            format!("{:.2}", median(&responses)),
            format!("{:.0}", cell.per_run(|results| results.totals.all_dropped())),
            format!("{:.0}", cell.per_run(|results| results.totals.spurious)),
        );
    }
    table
}

fn raw(trials: &[Trial], results: &[Results]) -> Table {
    let mut table = Table::new([
        "workload",
        "scheme",
        "seed",
        "flows",
        "mean_throughput_gbps",
        "median_throughput_gbps",
        "reroutes",
        "confirmed",
        "dropped",
        "timeouts",
    ]);
    for (trial, results) in trials.iter().zip(results) {
        row!(
            table,
            trial.pattern.name(),
            trial.scheme.name(),
            trial.seed,
            results.flows.len(),
            format!("{:.4}", results.throughput()),
            format!("{:.4}", median(&results.throughputs())),
            results.steered.controller.begun,
            results.steered.controller.confirmed,
            results.totals.all_dropped(),
            results.totals.timeouts,
        );
    }
    table
}

fn draw(path: &Path, cells: &[Cell]) -> anyhow::Result<()> {
    let names = Pattern::FIGURE.map(Pattern::name);
    let of_scheme = |scheme: Scheme| {
        (scheme.name(), Pattern::FIGURE.map(|pattern| cell(cells, pattern, scheme.name()).mean()).to_vec())
    };
    let series = Scheme::all().map(of_scheme);
    let labels = Labels { title: "Mean throughput of flows", x: "Gbit/s", y: "" };
    named_bars(path, labels, &names, &series, Bars::SideBySide)
}
