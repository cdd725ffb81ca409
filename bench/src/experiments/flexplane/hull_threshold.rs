//! Section 5.2, "Parameter tuning": throughput by the marking threshold of phantom queues.

use std::path::Path;

use thalweg_plot::axis::Scale;
use thalweg_plot::figure::{self, ALONE, Legend};
use thalweg_plot::page::Heading;
use thalweg_plot::panel::Panel;

use super::{Contender, Keep, Study, Trends, link_to, mean, sweep};
use crate::experiments::Outcome;
use crate::results::{Page, Table, save};
use crate::row;

/// Thresholds in bytes.
const THRESHOLDS: [u32; 12] =
    [1_000, 2_000, 3_000, 4_000, 5_000, 7_000, 10_000, 12_000, 15_000, 20_000, 25_000, 30_000];

/// Hosts that send single packets, and hosts whose receivers acknowledge many packets at once, so that senders send
/// bursts, as with interrupt coalescing.
const CONTENDERS: [Contender; 4] = [
    Contender::new("15 us, smooth", &[("stack_delay", "8us")]),
    Contender::new("33 us, smooth", &[("stack_delay", "27us")]),
    Contender::new(
        "33 us, bursts of 8",
        &[("stack_delay", "27us"), ("ack_every", "8"), ("ack_timeout", "100us")],
    ),
    Contender::new(
        "33 us, bursts of 32",
        &[("stack_delay", "27us"), ("ack_every", "32"), ("ack_timeout", "100us")],
    ),
];

/// Rate at which phantom queues drain: gamma of 10 Gbit/s.
const DRAIN_BPS: f64 = 9.5e9;
/// Target share of the drain rate, as measured by HULL's authors.
const TARGET: f64 = 0.92;

/// Measurements over all seeds, by threshold.
struct Measured {
    name: &'static str,
    /// Rate on the link, framing included, divided by the drain rate.
    share: Vec<f64>,
    goodput_bps: Vec<f64>,
    queue: Vec<f64>,
}

pub(in crate::experiments) fn run(study: &Study<'_>) -> anyhow::Result<Outcome> {
    let experiment = study.experiment("experiment.toml")?;
    let thresholds: Vec<String> = THRESHOLDS.iter().map(|bytes| format!("{bytes}B")).collect();
    let mut raw = Table::new([
        "hosts",
        "threshold B",
        "seed",
        "link bit/s",
        "goodput bit/s",
        "queue mean",
        "queue p99",
        "marked",
    ]);
    let mut all = Vec::new();
    for contender in CONTENDERS {
        let axes = [("threshold", thresholds.clone()), ("seed", study.seeds())];
        let runs = sweep(contender.name, &contender.of(&experiment)?, &axes, Keep::Summary)?;
        let mut measured =
            Measured { name: contender.name, share: Vec::new(), goodput_bps: Vec::new(), queue: Vec::new() };
        for (threshold, runs) in THRESHOLDS.iter().zip(runs.chunks(study.seeds as usize)) {
            let (mut shares, mut goodputs, mut queues) = (Vec::new(), Vec::new(), Vec::new());
            for run in runs {
                let summary = &run.results.summary;
                let (rate_bps, marked) =
                    link_to(&run.results, "h0").map_or((0.0, 0), |link| (link.rate_bps, link.marked_packets));
                let queue = summary.longest_queues.first().map(|queue| queue.packets).unwrap_or_default();
                row!(
                    raw,
                    contender.name,
                    threshold,
                    run.results.seed,
                    format!("{rate_bps:.0}"),
                    format!("{:.0}", summary.goodput_bps),
                    format!("{:.2}", queue.mean),
                    queue.p99,
                    marked
                );
                shares.push(rate_bps / DRAIN_BPS);
                goodputs.push(summary.goodput_bps);
                queues.push(queue.mean);
            }
            measured.share.push(mean(&shares));
            measured.goodput_bps.push(mean(&goodputs));
            measured.queue.push(mean(&queues));
        }
        all.push(measured);
    }
    let mut page = Page::new("HULL's marking threshold at 10 Gbit/s", study.command);
    describe(&mut page, study);
    page.section("Rate on the link, Gbit/s")
        .table(&pivot(&all, |measured, place| format!("{:.2}", measured.share[place] * DRAIN_BPS / 1e9)));
    page.section("Payload, Gbit/s")
        .table(&pivot(&all, |measured, place| format!("{:.2}", measured.goodput_bps[place] / 1e9)));
    page.section("Mean queue, packets")
        .table(&pivot(&all, |measured, place| format!("{:.1}", measured.queue[place])));
    page.section("Trends").table(&trends(&all).0);
    draw(study.plot, &all)?;
    Ok(Outcome { page, table: raw })
}

fn describe(page: &mut Page, study: &Study<'_>) {
    page.paragraph(format!(
        "Four DCTCP flows to one receiver at 10 Gbit/s, phantom queues that drain 95 % of it; means over {} seeds. The \
                  target is 92 % of the drain rate: 8.74 Gbit/s on the link. 15 us and 33 us are the one-way delays of a full-size \
                  segment through the idle network (hardware and Flexplane in the paper's figure 3). Bursts of N: receivers \
                  acknowledge every N segments, or after 100 us, so that senders send N at once, as with interrupt coalescing; \
                  smooth is one acknowledgement per two segments.",
        study.seeds
    ));
}

fn pivot(all: &[Measured], shown: impl Fn(&Measured, usize) -> String) -> Table {
    let names = all.iter().map(|measured| measured.name.to_owned());
    let mut table = Table::with_header(std::iter::once("threshold, KB".to_owned()).chain(names).collect());
    for (place, name) in places().into_iter().enumerate() {
        table.push(std::iter::once(name).chain(all.iter().map(|measured| shown(measured, place))).collect());
    }
    table
}

/// Formats the thresholds in KB.
fn places() -> Vec<String> {
    THRESHOLDS.iter().map(|bytes| (bytes / 1_000).to_string()).collect()
}

/// Returns the smallest threshold from which on the target is reached.
fn reached(measured: &Measured) -> Option<u32> {
    let short = measured.share.iter().rposition(|share| *share < TARGET);
    THRESHOLDS.get(short.map_or(0, |place| place + 1)).copied()
}

fn trends(all: &[Measured]) -> Trends {
    let place_of =
        |bytes: u32| THRESHOLDS.iter().position(|threshold| *threshold == bytes).expect("one of those run");
    let gbps = |measured: &Measured, bytes| measured.share[place_of(bytes)] * DRAIN_BPS / 1e9;
    let listed = |of: &dyn Fn(&Measured) -> String| {
        let each: Vec<String> =
            all.iter().map(|measured| format!("{}: {}", measured.name, of(measured))).collect();
        each.join("; ")
    };
    let mut trends = Trends::new();
    trends.check(
        "3 KB gives about 5 Gbit/s: less than 7, on some hosts",
        all.iter().any(|measured| gbps(measured, 3_000) < 7.0),
        &listed(&|measured| format!("{:.2}", gbps(measured, 3_000))),
    );
    trends.check(
        "92 % of the drain rate takes 15 KB: more than 5, at most 20, on some hosts",
        all.iter().any(|measured| reached(measured).is_some_and(|bytes| (5_001..=20_000).contains(&bytes))),
        &listed(&|measured| match reached(measured) {
            Some(bytes) => format!("from {} KB on", bytes / 1_000),
            None => "not up to 30 KB".to_owned(),
        }),
    );
    trends.check(
        "larger bursts need longer phantom queues: at 3 KB, bursts cost throughput",
        gbps(&all[1], 3_000) > gbps(&all[2], 3_000) && gbps(&all[2], 3_000) > gbps(&all[3], 3_000),
        "as in the first row",
    );
    trends
}

fn draw(path: &Path, all: &[Measured]) -> anyhow::Result<()> {
    let mut lines: Vec<Vec<f64>> = all.iter().map(|measured| measured.share.clone()).collect();
    lines.push(vec![TARGET; THRESHOLDS.len()]);
    let title = "Four flows to one receiver, 10 Gbit/s (share of the drain rate)";
    let scale = Scale::LINEAR.in_percent();
    let places = THRESHOLDS.map(|bytes| (f64::from(bytes) / 1e3, (bytes / 1_000).to_string()));
    let panel = Panel::over_numbers(title, "marking threshold (KB)", &places, scale, &lines);
    let names: Vec<&str> = all.iter().map(|measured| measured.name).chain(["92 %"]).collect();
    let heading = Heading::new("HULL: throughput over the marking threshold", "");
    save(path, &figure::draw(&heading, &Legend::of(&names), ALONE, &[panel])?)
}
