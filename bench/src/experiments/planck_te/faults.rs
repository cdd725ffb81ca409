//! What goes wrong, and whether forwarding is whole and steering goes on after it.

use std::path::Path;

use thalweg_plot::bars::{Arrangement, Bars};
use thalweg_plot::figure::{self, ALONE, Legend};
use thalweg_plot::page::Heading;

use super::ordeal::{Fault, Ordeal, Passed};
use super::sweep;
use crate::experiments::Outcome;
use crate::experiments::flexplane::{Study, Trends};
use crate::results::{Page, Table, save};
use crate::row;
use crate::statistics::{mean, with_interval};

/// How close to what it was throughput has to be afterwards: windows that have shrunk meanwhile take longer to grow.
const NEAR: f64 = 0.9;

/// Runs it.
///
/// # Errors
/// If a run fails, or the plot cannot be written.
pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let of_fault = |fault| (1..=study.seeds).map(move |seed| Ordeal { fault, seed });
    let ordeals: Vec<Ordeal> = Fault::ALL.into_iter().flat_map(of_fault).collect();
    let passed = sweep::map("faults", &ordeals, Ordeal::run)?;
    let by_fault: Vec<(Fault, &[Passed])> =
        Fault::ALL.into_iter().zip(passed.chunks(study.seeds as usize)).collect();
    let mut page = Page::new("Traffic engineering when something goes wrong", study.command);
    page.paragraph(format!(
        "stride(8) of flows without end over a fat tree of 16 hosts, links of 10 Gbit/s, hosts at 6.5, CUBIC, PlanckTE, {} \
         seeds. From 60 to 360 ms something is wrong. At 70 and at 380 ms all hosts forget where they were sent, so that \
         everybody collides anew. Gbit/s of a host before (30 to 60 ms), towards the end of what is wrong (260 to 360 ms), \
         and after (480 to 560 ms), with 95 % confidence intervals over seeds. Forwarding is walked each millisecond, every pair by \
         every address, over the rules that are installed: of 960 ways so many lead nowhere at worst and in the end. Flows that share are those of all seeds that have a link in common with another one, at \
         the end of each of the three times: steering is to part them.",
        study.seeds
    ));
    page.table(&table(&by_fault));
    page.section("Whether it holds").table(&trends(&by_fault).0);
    draw(study.plot, &by_fault)?;
    Ok(Outcome { page, table: raw(&ordeals, &passed) })
}

fn rates(passed: &[Passed], span: usize) -> Vec<f64> {
    passed.iter().map(|passed| passed.rates[span]).collect()
}

/// The least share of the throughput before that there is after.
fn least(passed: &[Passed]) -> f64 {
    passed.iter().map(|passed| passed.rates[2] / passed.rates[0]).fold(f64::INFINITY, f64::min)
}

fn table(by_fault: &[(Fault, &[Passed])]) -> Table {
    let mut table = Table::new([
        "what goes wrong",
        "before",
        "meanwhile",
        "after",
        "flows that share",
        "moves",
        "astray at worst",
        "in the end",
    ]);
    for (fault, passed) in by_fault {
        let [a, b, c] = [0, 1, 2].map(|span| {
            let rates = rates(passed, span);
            with_interval(&rates)
        });
        let moves = mean(&passed.iter().map(|passed| passed.moves as f64).collect::<Vec<_>>());
        let [worst, end] = [0, 1].map(|of| passed.iter().map(|passed| passed.astray[of]).max().unwrap_or(0));
        let share = [0, 1, 2].map(|span| passed.iter().map(|passed| passed.sharing[span]).sum::<usize>());
        let share = format!("{}, {}, {}", share[0], share[1], share[2]);
        row!(table, fault.name(), a, b, c, share, format!("{moves:.0}"), worst, end);
    }
    table
}

fn trends(by_fault: &[(Fault, &[Passed])]) -> Trends {
    let mut trends = Trends::saying("what should hold");
    for (fault, passed) in by_fault {
        trends.check(
            &format!(
                "{}: afterwards forwarding is whole, no flows share a link, and throughput is near",
                fault.name()
            ),
            passed.iter().all(|passed| passed.astray[1] == 0 && passed.sharing[2] == 0)
                && least(passed) > NEAR,
            &format!("{:.0} % at least", 100.0 * least(passed)),
        );
    }
    trends
}

fn raw(ordeals: &[Ordeal], passed: &[Passed]) -> Table {
    let mut table = Table::new([
        "fault",
        "seed",
        "before_gbps",
        "meanwhile_gbps",
        "after_gbps",
        "sharing_before",
        "sharing_meanwhile",
        "sharing_after",
        "moves",
        "astray_at_worst",
        "astray_in_the_end",
    ]);
    for (ordeal, passed) in ordeals.iter().zip(passed) {
        let [a, b, c] = passed.rates.map(|rate| format!("{rate:.4}"));
        row!(
            table,
            ordeal.fault.name(),
            ordeal.seed,
            a,
            b,
            c,
            passed.sharing[0],
            passed.sharing[1],
            passed.sharing[2],
            passed.moves,
            passed.astray[0],
            passed.astray[1]
        );
    }
    table
}

fn draw(path: &Path, by_fault: &[(Fault, &[Passed])]) -> anyhow::Result<()> {
    let names: Vec<&str> = by_fault.iter().map(|(fault, _)| fault.name()).collect();
    let of_span = |span| by_fault.iter().map(|(_, passed)| mean(&rates(passed, span))).collect();
    let series: Vec<(&str, Vec<f64>)> =
        ["before", "meanwhile", "after"].into_iter().zip((0..3).map(of_span)).collect();
    let legend = Legend::of(&series.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    let bars = Bars {
        title: String::new(),
        x_title: "Gbit/s".to_owned(),
        names: names.into_iter().map(str::to_owned).collect(),
        series: series.into_iter().map(|(_, values)| values).collect(),
        arrangement: Arrangement::SideBySide,
    };
    save(
        path,
        &figure::draw(
            &Heading::new("Throughput of a host when something goes wrong", ""),
            &legend,
            ALONE,
            &[bars],
        )?,
    )
}
