//! Figure 6: completion times of short flows with high priority and long flows with low priority, by scheme.

use std::path::Path;

use thalweg_experiment::results::SweepRun;
use thalweg_plot::figure::{self, ALONE, Legend};
use thalweg_plot::page::Heading;
use thalweg_plot::points::Points;

use super::{Contender, Keep, Study, Trends, digits, flows_of, mean, quantile, sweep};
use crate::experiments::Outcome;
use crate::results::{Page, Table, save};
use crate::row;

/// DSCP of the short flows.
const HIGH: u8 = 0;

const DROP_TAIL: &str = "DropTail";
const PRIORITY: &str = "priority";
const HULL: &str = "HULL";

const CONTENDERS: [Contender; 11] = [
    Contender::new(DROP_TAIL, &[("scheme", "droptail")]),
    Contender::new("RED", &[("scheme", "red")]),
    Contender::new("DCTCP", &[("scheme", "dctcp")]),
    Contender::new("DRR", &[("scheme", "drr")]),
    Contender::new(PRIORITY, &[("scheme", "priority")]),
    Contender::new(HULL, &[("scheme", "hull")]),
    Contender::new("pFabric, CUBIC", &[("scheme", "pfabric"), ("transport", "cubic")]),
    Contender::new("pFabric", &[("scheme", "pfabric")]),
    Contender::new("PIE", &[("scheme", "pie")]),
    Contender::new("PIE, marking", &[("scheme", "pie"), ("scheme.pie.ecn", "true")]),
    Contender::new("FQ-CoDel", &[("scheme", "fq_codel")]),
];

/// Measurements of one contender over all seeds; completion times in milliseconds.
struct Measured {
    name: &'static str,
    high_ms: Vec<f64>,
    low_ms: Vec<f64>,
    unfinished: u64,
}

pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let experiment = study.experiment("experiment.toml")?;
    let mut raw = Table::new([
        "contender",
        "seed",
        "high",
        "high mean ms",
        "high p99 ms",
        "low",
        "low mean ms",
        "low p99 ms",
        "unfinished",
        "goodput bit/s",
        "dropped",
        "marked",
        "timeouts",
    ]);
    let mut all = Vec::new();
    for contender in CONTENDERS {
        let runs =
            sweep(contender.name, &contender.of(&experiment)?, &[("seed", study.seeds())], Keep::Summary)?;
        runs.iter().for_each(|run| note(run, contender.name, &mut raw));
        all.push(measured(contender.name, &runs));
    }
    let mut page = Page::new("Trade-off between short and long flows", study.command);
    page.paragraph(format!(
                "Four clients request from 32 servers: 80 % of the answers are 1.5 KB with high priority, 20 % are 10 MB with low \
                 priority, and the load of the clients is 60 % of 10 Gbit/s; flows of {} seeds together. Settings are in \
                 [experiment.toml](experiment.toml). DCTCP and HULL use DCTCP at the endpoints, pFabric its own transport, all \
                 others CUBIC.",
        study.seeds
    ));
    page.table(&summary(&all));
    page.section("Trends").table(&trends(&all).0);
    draw(study.plot, &all)?;
    Ok(Outcome { page, table: raw })
}

fn measured(name: &'static str, runs: &[SweepRun]) -> Measured {
    let times = |of: fn(u8) -> bool| {
        let flows = runs.iter().flat_map(|run| flows_of(&run.results));
        flows.filter(|flow| of(flow.dscp)).map(|flow| flow.fct_ns as f64 / 1e6).collect()
    };
    Measured {
        name,
        high_ms: times(|dscp| dscp == HIGH),
        low_ms: times(|dscp| dscp != HIGH),
        unfinished: runs.iter().map(|run| run.results.summary.flows.unfinished).sum(),
    }
}

fn note(run: &SweepRun, name: &'static str, raw: &mut Table) {
    let Measured { high_ms, low_ms, unfinished, .. } = measured(name, std::slice::from_ref(run));
    let summary = &run.results.summary;
    row!(
        raw,
        name,
        run.results.seed,
        high_ms.len(),
        format!("{:.4}", mean(&high_ms)),
        format!("{:.4}", quantile(&high_ms, 0.99)),
        low_ms.len(),
        format!("{:.3}", mean(&low_ms)),
        format!("{:.3}", quantile(&low_ms, 0.99)),
        unfinished,
        format!("{:.0}", summary.goodput_bps),
        summary.packets.dropped,
        summary.packets.marked,
        summary.flows.timeouts,
    );
}

fn summary(all: &[Measured]) -> Table {
    let mut table = Table::new([
        "scheme",
        "high priority, mean us",
        "99th percentile, us",
        "low priority, mean ms",
        "99th percentile, ms",
        "flows",
        "not completed",
    ]);
    for Measured { name, high_ms, low_ms, unfinished } in all {
        row!(
            table,
            name,
            digits(1e3 * mean(high_ms)),
            digits(1e3 * quantile(high_ms, 0.99)),
            digits(mean(low_ms)),
            digits(quantile(low_ms, 0.99)),
            format!("{} + {}", high_ms.len(), low_ms.len()),
            unfinished,
        );
    }
    table
}

/// Returns the names sorted by a statistic.
fn ranked(all: &[Measured], of: fn(&Measured) -> f64) -> Vec<&'static str> {
    let mut by: Vec<(f64, &'static str)> = all.iter().map(|measured| (of(measured), measured.name)).collect();
    by.sort_by(|a, b| a.0.total_cmp(&b.0));
    by.into_iter().map(|(_, name)| name).collect()
}

fn trends(all: &[Measured]) -> Trends {
    let of_paper = |name: &str| !name.starts_with("PIE") && name != "FQ-CoDel" && name != "pFabric";
    let by_high: Vec<_> =
        ranked(all, |measured| mean(&measured.high_ms)).into_iter().filter(|name| of_paper(name)).collect();
    let by_low: Vec<_> =
        ranked(all, |measured| mean(&measured.low_ms)).into_iter().filter(|name| of_paper(name)).collect();
    let place =
        |ranking: &[&str], name: &str| ranking.iter().position(|other| *other == name).unwrap_or(usize::MAX);
    let [high_order, low_order] =
        [&by_high, &by_low].map(|ranking| format!("best first: {}", ranking.join(", ")));
    let mut trends = Trends::new();
    trends.check(
        "DropTail: high completion times of high priority",
        place(&by_high, DROP_TAIL) + 1 == by_high.len(),
        &high_order,
    );
    trends.check(
        "DropTail: good completion times of low priority, among the best half",
        place(&by_low, DROP_TAIL) < by_low.len() / 2,
        &low_order,
    );
    trends.check(
        "HULL: worse for low priority than all others",
        place(&by_low, HULL) + 1 == by_low.len(),
        &low_order,
    );
    trends.check(
        "HULL: relatively good for high priority, among the best half",
        place(&by_high, HULL) <= by_high.len() / 2,
        &high_order,
    );
    trends.check(
        "priority queues do well for both, among the best half of each",
        place(&by_high, PRIORITY) <= by_high.len() / 2 && place(&by_low, PRIORITY) <= by_low.len() / 2,
        &format!(
            "place {} and {} of {}",
            place(&by_high, PRIORITY) + 1,
            place(&by_low, PRIORITY) + 1,
            by_high.len()
        ),
    );
    trends
}

fn draw(path: &Path, all: &[Measured]) -> anyhow::Result<()> {
    let point = |measured: &Measured| {
        (measured.name.to_owned(), mean(&measured.low_ms), 1e3 * mean(&measured.high_ms))
    };
    let points = Points {
        title: "1.5 KB of high priority: mean completion time (us)".to_owned(),
        x_title: "10 MB of low priority: mean completion time (ms)".to_owned(),
        points: all.iter().map(point).collect(),
    };
    let heading = Heading::new("Completion times of short and long flows: best is bottom left", "");
    save(path, &figure::draw(&heading, &Legend::default(), ALONE, &[points])?)
}
