//! Figure 17: mean throughput of flows, by flow size and method.

use std::path::Path;

use thalweg_plot::axis::Scale;
use thalweg_plot::figure::{self, Legend, SEVERAL};
use thalweg_plot::page::Heading;
use thalweg_plot::panel::Panel;
use thalweg_wire::{BitRate, Bytes};

use super::sweep;
use super::trial::{Method, PAPER_HOST_RATE, RATE, Results, Trial};
use crate::experiments::Outcome;
use crate::experiments::flexplane::{Study, Trends};
use crate::results::{Page, Table, save};
use crate::row;
use crate::statistics::{interval, mean, with_interval};

/// Flow sizes.
const SIZES: [Bytes; 5] =
    [Bytes(50 << 20), Bytes(100 << 20), Bytes(200 << 20), Bytes(400 << 20), Bytes(1 << 30)];

/// Rates of hosts' links.
const HOSTS: [BitRate; 2] = [PAPER_HOST_RATE, RATE];

/// Maximum gap of PlanckTE to Optimal, from flows of 50 MiB on (section 7.3).
const CLOSE: f64 = 0.04;

/// Flows of a size under a method, over all seeds.
struct Cell {
    hosts: BitRate,
    bytes: Bytes,
    method: Method,
    throughputs: Vec<f64>,
}

/// Runs the experiment.
///
/// # Errors
/// If a run fails, or the plot cannot be written.
pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let mut trials = Vec::new();
    for host_rate in HOSTS {
        for bytes in SIZES {
            for method in Method::all() {
                let trial = |seed| Trial { method, bytes, seed, host_rate, ..Trial::default() };
                trials.extend((1..=study.seeds).map(trial));
            }
        }
    }
    let results = sweep::run("figure 17", &trials)?;
    let chunks = trials.chunks(study.seeds as usize).zip(results.chunks(study.seeds as usize));
    let cells: Vec<Cell> = chunks
        .map(|(trials, results)| {
            let Trial { host_rate: hosts, bytes, method, .. } = trials[0];
            Cell { hosts, bytes, method, throughputs: results.iter().map(Results::throughput).collect() }
        })
        .collect();
    let mut page = Page::new("Traffic engineering by flow size", study.command);
    page.paragraph(format!(
                 "stride(8) over a fat tree of 16 hosts, 10 Gbit/s, CUBIC, {} seeds. Mean throughput of flows from start to end, in \
                 Gbit/s, with its 95 % confidence interval over seeds. The paper goes up to 100 GiB. Once flows outlast several \
                 polls, each method's throughput approaches a limit; the largest flows here are 1 GiB, a second and more.",
        study.seeds
    ));
    for hosts in HOSTS {
        page.section(&format!("Figure 17, hosts at {hosts}")).table(&figure(&cells, hosts));
    }
    page.section("Trends").table(&trends(&cells).0);
    draw(study.plot, &cells)?;
    Ok(Outcome { page, table: raw(&trials, &results) })
}

fn cell(cells: &[Cell], hosts: BitRate, bytes: Bytes, method: Method) -> &Cell {
    let is_it = |cell: &&Cell| cell.hosts == hosts && cell.bytes == bytes && cell.method == method;
    cells.iter().find(is_it).expect("every size has run under every method")
}

/// Returns the gap of a method to Optimal, as a share.
fn gap(cells: &[Cell], hosts: BitRate, bytes: Bytes, method: Method) -> f64 {
    let of = |method| mean(&cell(cells, hosts, bytes, method).throughputs);
    1.0 - of(method) / of(Method::Optimal)
}

fn figure(cells: &[Cell], hosts: BitRate) -> Table {
    let mut table = Table::new([
        "MiB",
        "Static",
        "Poll-1s",
        "Poll-0.1s",
        "PlanckTE",
        "Optimal",
        "PlanckTE below Optimal",
    ]);
    for bytes in SIZES {
        let [a, b, c, d, e] =
            Method::all().map(|method| with_interval(&cell(cells, hosts, bytes, method).throughputs));
        row!(table, bytes.0 >> 20, a, b, c, d, e, percent(gap(cells, hosts, bytes, Method::PLANCK)));
    }
    table
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn trends(cells: &[Cell]) -> Trends {
    let mut trends = Trends::new();
    for hosts in HOSTS {
        let gaps = |method| SIZES.map(|bytes| gap(cells, hosts, bytes, method));
        let numbers = |gaps: [f64; SIZES.len()]| gaps.map(percent).join(", ");
        let of_planck = gaps(Method::PLANCK);
        trends.check(
            &format!("hosts at {hosts}: PlanckTE is like Optimal from 50 MiB on"),
            of_planck.iter().all(|gap| *gap <= CLOSE),
            &numbers(of_planck),
        );
        let of_polls = gaps(Method::POLL_100_MS);
        trends.check(
            &format!("hosts at {hosts}: Poll-0.1s is not, and comes closer as flows grow"),
            of_polls[0] > CLOSE && of_polls[SIZES.len() - 1] < of_polls[0],
            &numbers(of_polls),
        );
        let (second, whole) = (gaps(Method::POLL_1_S), gaps(Method::Static));
        trends.check(
            &format!("hosts at {hosts}: Poll-1s gains nothing below 1 GiB to speak of"),
            second[0] > 0.7 * whole[0],
            &numbers(second),
        );
    }
    trends
}

fn raw(trials: &[Trial], results: &[Results]) -> Table {
    let mut table = Table::new(["hosts_gbps", "mib", "method", "seed", "mean_throughput_gbps", "reroutes"]);
    for (trial, results) in trials.iter().zip(results) {
        row!(
            table,
            trial.host_rate.0 as f64 / 1e9,
            trial.bytes.0 >> 20,
            trial.method.name(),
            trial.seed,
            format!("{:.4}", results.throughput()),
            results.control_results.controller.started,
        );
    }
    table
}

fn draw(path: &Path, cells: &[Cell]) -> anyhow::Result<()> {
    let places = SIZES.map(|bytes| ((bytes.0 >> 20) as f64, (bytes.0 >> 20).to_string()));
    let legend = Legend::of(&Method::all().map(Method::name));
    let panel = |hosts: BitRate| {
        let line = |method| SIZES.map(|bytes| mean(&cell(cells, hosts, bytes, method).throughputs)).to_vec();
        let intervals =
            |method| SIZES.map(|bytes| interval(&cell(cells, hosts, bytes, method).throughputs)).to_vec();
        let title = format!("hosts at {hosts} (Gbit/s)");
        Panel::over_numbers(title, "flow size (MiB)", &places, Scale::LINEAR, &Method::all().map(line))
            .with_intervals(&Method::all().map(intervals))
    };
    let heading = Heading::new(
        "Mean throughput of flows of a stride",
        "mean over seeds, with 95 % confidence intervals",
    );
    save(path, &figure::draw(&heading, &legend, SEVERAL, &HOSTS.map(panel))?)
}
