//! Traffic engineering and forwarding under faults.

use std::path::Path;

use thalweg_plot::bars::{Arrangement, Bars};
use thalweg_plot::figure::{self, ALONE, Legend};
use thalweg_plot::page::Heading;

use super::fault_run::{Fault, FaultResults, FaultRun};
use super::sweep;
use crate::experiments::Outcome;
use crate::experiments::flexplane::{Study, Trends};
use crate::results::{Page, Table, save};
use crate::row;
use crate::statistics::{interval, mean, with_interval};

/// Minimum share of the original throughput afterwards: windows that have shrunk take longer to recover.
const NEAR: f64 = 0.9;

/// Runs the experiment.
///
/// # Errors
/// If a run fails, or the plot cannot be written.
pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let of_fault = |fault| (1..=study.seeds).map(move |seed| FaultRun { fault, seed });
    let runs: Vec<FaultRun> = Fault::ALL.into_iter().flat_map(of_fault).collect();
    let results = sweep::map("faults", &runs, FaultRun::run)?;
    let by_fault: Vec<(Fault, &[FaultResults])> =
        Fault::ALL.into_iter().zip(results.chunks(study.seeds as usize)).collect();
    let mut page = Page::new("Traffic engineering under faults", study.command);
    page.paragraph(format!(
                "stride(8) of endless flows over a fat tree of 16 hosts, links of 10 Gbit/s, hosts at 6.5, CUBIC, PlanckTE, {} seeds. \
                 The fault lasts from 60 to 360 ms. At 70 and at 380 ms all reroutes are reset, so that flows collide again. Gbit/s \
                 per host before (30 to 60 ms), at the end of the fault (260 to 360 ms), and after it (480 to 560 ms), with 95 % \
                 confidence intervals over seeds. Every millisecond all 960 paths, every pair by every address, are traced over the \
                 installed rules: the table has the maximum of broken paths, and their number at the end. Flows that share a link \
                 are counted over all seeds, at the end of each of the three spans.",
        study.seeds
    ));
    page.table(&table(&by_fault));
    page.section("Checks").table(&trends(&by_fault).0);
    draw(study.plot, &by_fault)?;
    Ok(Outcome { page, table: raw(&runs, &results) })
}

fn rates(results: &[FaultResults], span: usize) -> Vec<f64> {
    results.iter().map(|results| results.rates[span]).collect()
}

/// Returns the minimum throughput after the fault as a share of that before.
fn min_recovery(results: &[FaultResults]) -> f64 {
    results.iter().map(|results| results.rates[2] / results.rates[0]).fold(f64::INFINITY, f64::min)
}

fn table(by_fault: &[(Fault, &[FaultResults])]) -> Table {
    let mut table = Table::new([
        "fault",
        "before",
        "during",
        "after",
        "flows that share a link",
        "reroutes",
        "broken paths, max",
        "at the end",
    ]);
    for (fault, results) in by_fault {
        let [a, b, c] = [0, 1, 2].map(|span| {
            let rates = rates(results, span);
            with_interval(&rates)
        });
        let reroutes = mean(&results.iter().map(|results| results.reroutes as f64).collect::<Vec<_>>());
        let [worst, end] =
            [0, 1].map(|of| results.iter().map(|results| results.broken_paths[of]).max().unwrap_or(0));
        let share = [0, 1, 2].map(|span| results.iter().map(|results| results.sharing[span]).sum::<usize>());
        let share = format!("{}, {}, {}", share[0], share[1], share[2]);
        row!(table, fault.name(), a, b, c, share, format!("{reroutes:.0}"), worst, end);
    }
    table
}

fn trends(by_fault: &[(Fault, &[FaultResults])]) -> Trends {
    let mut trends = Trends::with_header("condition");
    for (fault, results) in by_fault {
        trends.check(
            &format!(
                "{}: afterwards no path is broken, no flows share a link, and throughput is above 90 %",
                fault.name()
            ),
            results.iter().all(|results| results.broken_paths[1] == 0 && results.sharing[2] == 0)
                && min_recovery(results) > NEAR,
            &format!("at least {:.0} %", 100.0 * min_recovery(results)),
        );
    }
    trends
}

fn raw(runs: &[FaultRun], results: &[FaultResults]) -> Table {
    let mut table = Table::new([
        "fault",
        "seed",
        "before_gbps",
        "during_gbps",
        "after_gbps",
        "sharing_before",
        "sharing_during",
        "sharing_after",
        "reroutes",
        "broken_paths_max",
        "broken_paths_end",
    ]);
    for (fault_run, results) in runs.iter().zip(results) {
        let [a, b, c] = results.rates.map(|rate| format!("{rate:.4}"));
        row!(
            table,
            fault_run.fault.name(),
            fault_run.seed,
            a,
            b,
            c,
            results.sharing[0],
            results.sharing[1],
            results.sharing[2],
            results.reroutes,
            results.broken_paths[0],
            results.broken_paths[1]
        );
    }
    table
}

fn draw(path: &Path, by_fault: &[(Fault, &[FaultResults])]) -> anyhow::Result<()> {
    let names: Vec<&str> = by_fault.iter().map(|(fault, _)| fault.name()).collect();
    let of_span = |span| by_fault.iter().map(|(_, results)| mean(&rates(results, span))).collect();
    let series: Vec<(&str, Vec<f64>)> =
        ["before", "during", "after"].into_iter().zip((0..3).map(of_span)).collect();
    let legend = Legend::of(&series.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    let bars = Bars {
        title: String::new(),
        x_title: "Gbit/s".to_owned(),
        names: names.into_iter().map(str::to_owned).collect(),
        series: series.into_iter().map(|(_, values)| values).collect(),
        intervals: (0..3)
            .map(|span| by_fault.iter().map(|(_, results)| interval(&rates(results, span))).collect())
            .collect(),
        arrangement: Arrangement::SideBySide,
    };
    save(
        path,
        &figure::draw(
            &Heading::new(
                "Throughput per host under faults",
                "mean over seeds, with 95 % confidence intervals",
            ),
            &legend,
            ALONE,
            &[bars],
        )?,
    )
}
