//! Figure 14: mean throughput of flows, by workload and method.

use std::path::Path;

use thalweg_plot::bars::{Arrangement, Bars};
use thalweg_plot::figure::{self, ALONE, Legend};
use thalweg_plot::page::Heading;
use thalweg_wire::{BitRate, Bytes};

use super::sweep;
use super::trial::{Method, PAPER_HOST_RATE, RATE, Results, Trial};
use super::workload::Pattern;
use crate::experiments::Outcome;
use crate::experiments::flexplane::{Study, Trends};
use crate::results::{Page, Table, save};
use crate::row;
use crate::statistics::{interval, mean, median, with_interval};

/// Flow sizes, and those of a shuffle, of which every host sends 15; the paper's smallest are 100 MiB.
const BYTES: Bytes = Bytes(100 << 20);
const SHUFFLE_BYTES: Bytes = Bytes(10 << 20);

/// Rates of hosts' links: as the paper's hosts sent, and line rate.
const HOSTS: [BitRate; 2] = [PAPER_HOST_RATE, RATE];

/// Maximum gap of PlanckTE to Optimal in the paper (section 7.3).
const CLOSE: f64 = 0.04;
const CLOSE_IN_SHUFFLE: f64 = 0.123;

/// Runs the experiment.
///
/// # Errors
/// If a run fails, or the plot cannot be written.
pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let of_hosts = |hosts| {
        Pattern::FIGURE
            .into_iter()
            .flat_map(move |pattern| Method::all().into_iter().map(move |method| (hosts, pattern, method)))
    };
    let cells: Vec<(BitRate, Pattern, Method)> = HOSTS.into_iter().flat_map(of_hosts).collect();
    let trial = |host_rate, pattern, method, seed| {
        let bytes = if pattern == Pattern::Shuffle { SHUFFLE_BYTES } else { BYTES };
        Trial { method, pattern, bytes, seed, host_rate, ..Trial::default() }
    };
    let of_cell =
        |&(hosts, pattern, method)| (1..=study.seeds).map(move |seed| trial(hosts, pattern, method, seed));
    let trials: Vec<Trial> = cells.iter().flat_map(of_cell).collect();
    let results = sweep::run("figure 14", &trials)?;
    let cells: Vec<Cell> = cells
        .iter()
        .zip(results.chunks(study.seeds as usize))
        .map(|(&of, results)| Cell::new(of, results))
        .collect();

    let mut page = Page::new("Traffic engineering by workload", study.command);
    page.paragraph(format!(
                "Fat tree of 16 hosts, 10 Gbit/s, CUBIC, {} seeds, each with other trees, pairs and times. Flows have {} MiB, those \
                 of a shuffle {} MiB: a tenth of the paper's size, because every host sends 15 of them, two at a time. The phase of \
                 polls is random. A control action takes 2.5 ms. Mean throughput of flows from start to end, in Gbit/s, with its \
                 95 % confidence interval over seeds. First with hosts' links at 6.5 Gbit/s, at which an undisturbed flow has the \
                 paper's 5.9 Gbit/s, although the paper's links have 10; then at 10.",
        study.seeds,
        BYTES.0 >> 20,
        SHUFFLE_BYTES.0 >> 20,
    ));
    for hosts in HOSTS {
        let of_hosts: Vec<&Cell> = cells.iter().filter(|cell| cell.hosts == hosts).collect();
        page.section(&format!("Figure 14, hosts at {hosts}")).table(&figure(&of_hosts));
        page.paragraph("Checks, and counters of the controller:").table(&trends(&of_hosts).0);
        page.table(&control_counters(&of_hosts));
    }
    draw(study.plot, &cells)?;
    Ok(Outcome { page, table: raw(&trials, &results) })
}

/// A workload under a method, over all seeds.
struct Cell {
    hosts: BitRate,
    pattern: Pattern,
    method: Method,
    /// Mean throughput of flows, by seed.
    throughputs: Vec<f64>,
    results: Vec<Results>,
}

impl Cell {
    fn new((hosts, pattern, method): (BitRate, Pattern, Method), results: &[Results]) -> Cell {
        let throughputs = results.iter().map(Results::throughput).collect();
        Cell { hosts, pattern, method, throughputs, results: results.to_vec() }
    }

    fn mean(&self) -> f64 {
        mean(&self.throughputs)
    }

    /// Returns the mean of a count over runs.
    fn per_run(&self, count: impl Fn(&Results) -> u64) -> f64 {
        mean(&self.results.iter().map(|results| count(results) as f64).collect::<Vec<_>>())
    }
}

fn cell<'a>(cells: &[&'a Cell], pattern: Pattern, name: &str) -> &'a Cell {
    let is_it = |cell: &&&Cell| cell.pattern == pattern && cell.method.name() == name;
    cells.iter().find(is_it).expect("every workload has run under every method")
}

/// Returns the gap of PlanckTE to Optimal, as a share.
fn gap(cells: &[&Cell], pattern: Pattern) -> f64 {
    1.0 - cell(cells, pattern, "PlanckTE").mean() / cell(cells, pattern, "Optimal").mean()
}

fn figure(cells: &[&Cell]) -> Table {
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
        let of_method = |method: Method| with_interval(&cell(cells, pattern, method.name()).throughputs);
        let [a, b, c, d, e] = Method::all().map(of_method);
        let paper = if pattern == Pattern::Shuffle { "12.3 %" } else { "1 to 4 %" };
        row!(table, pattern.name(), a, b, c, d, e, format!("{:.1} %", 100.0 * gap(cells, pattern)), paper);
    }
    table
}

fn trends(cells: &[&Cell]) -> Trends {
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
            &format!("{}: PlanckTE is above both polling methods", pattern.name()),
            over_1_s > 0.0 && over_100_ms > 0.0,
            &format!("{:+.1} %, {:+.1} %", 100.0 * over_1_s, 100.0 * over_100_ms),
        );
    }
    trends
}

fn control_counters(cells: &[&Cell]) -> Table {
    let mut table = Table::new([
        "PlanckTE, means over runs",
        "notices",
        "reroutes",
        "confirmed",
        "most of one flow",
        "decision to first packet, ms",
        "packets lost",
        "spurious retransmissions",
    ]);
    for pattern in Pattern::FIGURE {
        let cell = cell(cells, pattern, "PlanckTE");
        let responses: Vec<f64> = cell
            .results
            .iter()
            .flat_map(|results| results.control_results.responses_ms.iter().copied())
            .collect();
        row!(
            table,
            pattern.name(),
            format!("{:.0}", cell.per_run(|results| results.control_results.events)),
            format!("{:.0}", cell.per_run(|results| results.control_results.controller.started)),
            format!("{:.0}", cell.per_run(|results| results.control_results.controller.confirmed)),
            most_flow_moves(cell.results.iter()),
            format!("{:.2}", median(&responses)),
            format!("{:.0}", cell.per_run(|results| results.totals.all_dropped())),
            format!("{:.0}", cell.per_run(|results| results.totals.spurious)),
        );
    }
    table
}

/// Returns the number of reroutes of the flow that was rerouted most in any of these runs.
fn most_flow_moves<'a>(results: impl Iterator<Item = &'a Results>) -> u64 {
    results.map(|results| results.control_results.most_flow_moves()).max().unwrap_or(0)
}

fn raw(trials: &[Trial], results: &[Results]) -> Table {
    let mut table = Table::new([
        "hosts_gbps",
        "workload",
        "method",
        "seed",
        "flows",
        "mean_throughput_gbps",
        "median_throughput_gbps",
        "reroutes",
        "confirmed",
        "most_flow_moves",
        "dropped",
        "timeouts",
    ]);
    for (trial, results) in trials.iter().zip(results) {
        row!(
            table,
            trial.host_rate.0 as f64 / 1e9,
            trial.pattern.name(),
            trial.method.name(),
            trial.seed,
            results.flows.len(),
            format!("{:.4}", results.throughput()),
            format!("{:.4}", median(&results.throughputs())),
            results.control_results.controller.started,
            results.control_results.controller.confirmed,
            results.control_results.most_flow_moves(),
            results.totals.all_dropped(),
            results.totals.timeouts,
        );
    }
    table
}

fn draw(path: &Path, cells: &[Cell]) -> anyhow::Result<()> {
    let gbps = |hosts: BitRate| hosts.0 as f64 / 1e9;
    let places =
        HOSTS.iter().flat_map(|&hosts| Pattern::FIGURE.map(|of| format!("{}, {}", of.name(), gbps(hosts))));
    let places: Vec<String> = places.collect();
    let of_method = |method: Method| {
        let of_method = cells.iter().filter(|cell| cell.method == method);
        (method.name(), of_method.map(Cell::mean).collect())
    };
    let series: Vec<(&str, Vec<f64>)> = Method::all().into_iter().map(of_method).collect();
    let legend = Legend::of(&series.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    let intervals = |method: Method| {
        let of_method = cells.iter().filter(|cell| cell.method == method);
        of_method.map(|cell| interval(&cell.throughputs)).collect()
    };
    let bars = Bars {
        title: String::new(),
        x_title: "Gbit/s".to_owned(),
        names: places,
        series: series.into_iter().map(|(_, values)| values).collect(),
        intervals: Method::all().into_iter().map(intervals).collect(),
        arrangement: Arrangement::SideBySide,
    };
    save(
        path,
        &figure::draw(
            &Heading::new(
                "Mean throughput of flows, by workload and host rate in Gbit/s",
                "mean over seeds, with 95 % confidence intervals",
            ),
            &legend,
            ALONE,
            &[bars],
        )?,
    )
}
