//! The text report.

use std::fmt::Write;

use thalweg_experiment::results::{
    LinkUse, MirrorUse, QueueUse, Results, SIZE_CLASSES, SizeClassRow, Summary, SweepResults, SweepRun,
};
use thalweg_experiment::seeds::{self, Group, Mean};
use thalweg_wire::{BitRate, Bytes, Nanos};

use crate::figures::{grouped, number};

/// Maximum rows of links and queues.
const SHOWN: usize = 5;
/// Maximum rows of drops.
const SHOWN_DROPS: usize = 10;

/// Formats the report of a run.
pub fn report(results: &Results) -> String {
    let mut text = String::new();
    heading(&mut text, results);
    traffic(&mut text, results);
    flows(&mut text, &results.summary);
    links(&mut text, &results.summary.busiest_links);
    queues(&mut text, &results.summary.longest_queues);
    mirrors(&mut text, &results.summary.mirrors);
    drops(&mut text, results);
    text
}

/// Formats the speed of a run. It is separate from the report because it differs between runs with the same seed.
pub fn pace(results: &Results) -> String {
    let emulated = results.duration_ns as f64 / 1e9;
    let wall = results.wall_seconds.max(1e-9);
    let ratio = speed_ratio(emulated / wall);
    let packets = results.summary.packets.delivered as f64 / wall;
    format!(
        "emulated {} in {}, {ratio}, {} packets/s\n",
        Nanos(results.duration_ns),
        Nanos((wall * 1e9).round() as u64),
        grouped(packets as u64)
    )
}

/// Formats the ratio of emulated to real time.
fn speed_ratio(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 1.0 => format!("{} times faster than real time", significant(ratio)),
        ratio => format!("{} times slower than real time", significant(1.0 / ratio.max(1e-9))),
    }
}

fn heading(text: &mut String, results: &Results) {
    let Results { experiment, topology, scheme, transport, seed, .. } = results;
    let _ = writeln!(text, "{experiment}");
    row(text, "topology", topology);
    row(text, "scheme", &format!("{scheme}, transport {transport}, seed {seed}"));
    let mut time = Nanos(results.duration_ns).to_string();
    if results.warm_up_ns > 0 {
        let _ = write!(time, ", measured from {} on", Nanos(results.warm_up_ns));
    }
    if results.drain_ns > 0 {
        let _ = write!(time, "; drained for {}", Nanos(results.drain_ns));
    }
    if results.interrupted {
        time.push_str("; interrupted");
    }
    row(text, "emulated", &time);
}

fn traffic(text: &mut String, results: &Results) {
    let summary = &results.summary;
    let packets = &summary.packets;
    text.push_str("\nTraffic\n");
    row(
        text,
        "packets",
        &format!(
            "{} sent, {} delivered, {} dropped, {} in flight, {} marked",
            grouped(packets.sent),
            grouped(packets.delivered),
            grouped(packets.dropped),
            grouped(packets.in_flight),
            grouped(packets.marked)
        ),
    );
    row(text, "throughput", &rate(summary.throughput_bps));
    let flows = &summary.flows;
    if flows.started == 0 {
        return;
    }
    row(text, "goodput", &rate(summary.goodput_bps));
    let mut counts = format!("{} started, {} completed", grouped(flows.started), grouped(flows.completed));
    for (count, what) in [
        (flows.unfinished, "unfinished"),
        (flows.unbounded, "unbounded"),
        (flows.refused, "refused (too many at once)"),
        (flows.not_recorded, "completed but not recorded"),
    ] {
        if count > 0 {
            let _ = write!(counts, ", {} {what}", grouped(count));
        }
    }
    row(text, "flows", &counts);
    row(
        text,
        "retransmissions",
        &format!(
            "{} segments, {} spurious, {} timeouts",
            grouped(flows.retransmissions),
            grouped(flows.spurious_retransmissions),
            grouped(flows.timeouts)
        ),
    );
    if let Some(unbounded) = &summary.unbounded {
        let each = &unbounded.goodput_bps;
        row(
            text,
            "unbounded",
            &format!(
                "{} flows, {} each on average, fairness {:.3} (Jain)",
                grouped(unbounded.flows),
                rate(each.mean),
                unbounded.fairness
            ),
        );
    }
}

fn flows(text: &mut String, summary: &Summary) {
    if summary.sizes.iter().all(|class| class.completed + class.unfinished == 0) {
        return;
    }
    let _ = writeln!(
        text,
        "\n{:<44} {:>21} {:>26}",
        "Flow completion times", "---- time ----", "----- slowdown -----"
    );
    let _ = writeln!(
        text,
        "  {:<20} {:>9} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8}",
        "size", "completed", "unfinished", "mean", "p99", "mean", "p50", "p99"
    );
    for class in summary.sizes.iter().filter(|class| class.completed + class.unfinished > 0) {
        let _ = writeln!(text, "{}", size_row(class));
    }
    if summary.sizes.iter().any(|class| class.unfinished > 0) {
        let _ = writeln!(
            text,
            "  Some flows did not complete, so the true times of these rows are larger. A longer `drain` lets them complete."
        );
    }
}

fn size_row(class: &SizeClassRow) -> String {
    let name = class_name(class.class);
    let (completed, unfinished) = (grouped(class.completed), grouped(class.unfinished));
    if class.completed == 0 {
        return format!(
            "  {name:<20} {completed:>9} {unfinished:>10} {:>10} {:>10} {:>8} {:>8} {:>8}",
            "-", "-", "-", "-", "-"
        );
    }
    let time = |nanos: f64| Nanos(nanos as u64).to_string();
    let slowdown = &class.slowdown;
    format!(
        "  {name:<20} {completed:>9} {unfinished:>10} {:>10} {:>10} {:>8} {:>8} {:>8}",
        time(class.fct_ns.mean),
        time(class.fct_ns.p99),
        number(slowdown.mean, 2),
        number(slowdown.p50, 2),
        number(slowdown.p99, 2)
    )
}

/// Formats a size class: `small (up to 100 kB)`.
fn class_name(class: &str) -> String {
    let Some(index) = SIZE_CLASSES.iter().position(|&(name, _)| name == class) else {
        return class.to_owned();
    };
    match SIZE_CLASSES[index] {
        (name, u64::MAX) => format!("{name} (from {})", short(SIZE_CLASSES[index - 1].1 + 1)),
        (name, max) if index == 0 => format!("{name} (up to {})", short(max)),
        (name, _) => format!("{name} (between)"),
    }
}

/// Formats bytes without decimals.
fn short(bytes: u64) -> String {
    Bytes(bytes).to_string().replace(".00", "").replace(".0", "")
}

fn links(text: &mut String, links: &[LinkUse]) {
    if links.is_empty() {
        return;
    }
    text.push_str("\nBusiest links\n");
    let _ = writeln!(
        text,
        "  {:<24} {:>12} {:>11} {:>13} {:>11} {:>11}",
        "link", "rate", "utilisation", "packets", "marked", "dropped"
    );
    for link in links.iter().take(SHOWN) {
        let name = format!("{} > {}", link.from, link.to);
        let _ = writeln!(
            text,
            "  {name:<24} {:>12} {:>10.1}% {:>13} {:>11} {:>11}",
            rate(link.rate_bps),
            100.0 * link.utilisation,
            grouped(link.packets),
            grouped(link.marked_packets),
            grouped(link.dropped_packets)
        );
    }
}

fn queues(text: &mut String, queues: &[QueueUse]) {
    if queues.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "\n{:<26} {:>44} {:>12}",
        "Longest queues", "------------- queued packets --------------", "bytes"
    );
    let _ = writeln!(
        text,
        "  {:<24} {:>8} {:>8} {:>8} {:>8} {:>8} {:>12}",
        "port", "mean", "p50", "p95", "p99", "max", "mean"
    );
    for queue in queues.iter().take(SHOWN) {
        let name = format!("{} > {}", queue.router, queue.to);
        let waits = &queue.packets;
        let whole = |value: f64| grouped(value as u64);
        let _ = writeln!(
            text,
            "  {name:<24} {:>8} {:>8} {:>8} {:>8} {:>8} {:>12}",
            number(waits.mean, 1),
            whole(waits.p50),
            whole(waits.p95),
            whole(waits.p99),
            whole(waits.max),
            Bytes(queue.bytes.mean as u64).to_string()
        );
    }
}

fn mirrors(text: &mut String, mirrors: &[MirrorUse]) {
    if mirrors.is_empty() {
        return;
    }
    text.push_str("\nMonitor ports\n");
    let _ = writeln!(text, "  {:<24} {:>13} {:>12} {:>13}", "router", "packets", "bytes", "dropped");
    for mirror in mirrors {
        let (packets, dropped) = (grouped(mirror.packets), grouped(mirror.dropped_packets));
        let _ = writeln!(
            text,
            "  {:<24} {packets:>13} {:>12} {dropped:>13}",
            mirror.router,
            Bytes(mirror.bytes).to_string()
        );
    }
}

fn drops(text: &mut String, results: &Results) {
    if results.drops.is_empty() {
        return;
    }
    text.push_str("\nDrops since the start\n");
    let _ = writeln!(text, "  {:<24} {:<10} {:>12}", "place", "reason", "packets");
    let mut drops: Vec<_> = results.drops.iter().collect();
    drops.sort_by_key(|drop| std::cmp::Reverse(drop.packets));
    for drop in drops.iter().take(SHOWN_DROPS) {
        let _ = writeln!(text, "  {:<24} {:<10} {:>12}", drop.place, drop.reason, grouped(drop.packets));
    }
    let rest: u64 = drops.iter().skip(SHOWN_DROPS).map(|drop| drop.packets).sum();
    if rest > 0 {
        let _ = writeln!(
            text,
            "  {:<24} {:<10} {:>12}",
            format!("and {} more", drops.len() - SHOWN_DROPS),
            "",
            grouped(rest)
        );
    }
}

/// Columns of a comparison after its keys, in two lines.
const COLUMNS: [(&str, &str); 9] = [
    ("", "throughput"),
    ("packets", "dropped"),
    ("packets", "marked"),
    ("queue", "mean"),
    ("queue", "p99"),
    ("slowdown", "small mean"),
    ("slowdown", "small p99"),
    ("slowdown", "large mean"),
    ("flows", "unfinished"),
];

/// Legend of a comparison.
const LEGEND: &str = "\
queue: queued packets at the port with the longest mean queue, mean and 99th percentile
slowdown: completion time divided by that in an idle network, mean and 99th percentile, of small flows (up to 100 kB)
and large flows (from 10 MB); > marks a lower bound, because some flows did not complete
";

/// Legend of means over seeds.
const SEEDS_LEGEND: &str =
    "± is half the width of the 95 % confidence interval of the mean over the seeds (Student's t)\n";

/// Formats the runs of a sweep as a table; those that differ only in their seed as one line.
pub fn comparison(results: &SweepResults) -> String {
    let (keys, rows): (Vec<String>, Vec<Vec<String>>) = match seeds::groups(results) {
        None => {
            let row = |run: &SweepRun| {
                let figures = FIGURES.iter().map(|figure| figure.of_run(&run.results));
                run.values.iter().cloned().chain(figures).collect()
            };
            (results.keys.clone(), results.runs.iter().map(row).collect())
        }
        Some((keys, groups)) => {
            let row = |group: &Group| {
                let runs: Vec<&Results> = group.runs.iter().map(|&run| &results.runs[run].results).collect();
                let figures = FIGURES.iter().map(|figure| figure.of_seeds(&runs));
                group.values.iter().cloned().chain(figures).collect()
            };
            (keys, groups.iter().map(row).collect())
        }
    };
    let (left, has_seeds) = (keys.len(), keys.len() < results.keys.len());
    let above = vec![String::new(); left].into_iter().chain(COLUMNS.map(|(above, _)| above.to_owned()));
    let names = keys.into_iter().chain(COLUMNS.map(|(_, column)| column.to_owned()));
    let table: Vec<Vec<String>> = [above.collect(), names.collect()].into_iter().chain(rows).collect();
    let mut text = format!("{}\n", results.experiment);
    text.push_str(&aligned(&table, left));
    text.push_str(LEGEND);
    if has_seeds {
        text.push_str(SEEDS_LEGEND);
    }
    text
}

/// A figure of the comparison.
struct Figure {
    /// The number; NaN if a run has none.
    value: fn(&Summary) -> f64,
    /// Its text.
    text: fn(f64) -> String,
    /// Whether it is a lower bound, because flows did not complete.
    is_lower_bound: fn(&Summary) -> bool,
}

/// The figures, in the order of [`COLUMNS`].
const FIGURES: [Figure; COLUMNS.len()] = [
    Figure::new(|summary| summary.throughput_bps, rate),
    Figure::new(|summary| summary.packets.dropped as f64, whole),
    Figure::new(|summary| summary.packets.marked as f64, whole),
    Figure::new(|summary| longest(summary, |queue| queue.packets.mean), |mean| number(mean, 1)),
    Figure::new(|summary| longest(summary, |queue| queue.packets.p99), whole),
    Figure::of_class(
        |summary| slowdown(summary, "small", |class| class.slowdown.mean),
        |summary| is_cut(summary, "small"),
    ),
    Figure::of_class(
        |summary| slowdown(summary, "small", |class| class.slowdown.p99),
        |summary| is_cut(summary, "small"),
    ),
    Figure::of_class(
        |summary| slowdown(summary, "large", |class| class.slowdown.mean),
        |summary| is_cut(summary, "large"),
    ),
    Figure::new(|summary| summary.flows.unfinished as f64, whole),
];

impl Figure {
    const fn new(value: fn(&Summary) -> f64, text: fn(f64) -> String) -> Figure {
        Figure { value, text, is_lower_bound: |_| false }
    }

    const fn of_class(value: fn(&Summary) -> f64, is_lower_bound: fn(&Summary) -> bool) -> Figure {
        Figure { value, text: |slowdown| number(slowdown, 2), is_lower_bound }
    }

    fn of_run(&self, run: &Results) -> String {
        let value = (self.value)(&run.summary);
        match value.is_finite() {
            true => format!("{}{}", self.at_least(&[run]), (self.text)(value)),
            false => "-".to_owned(),
        }
    }

    /// The mean over seeds, and half the width of its confidence interval.
    fn of_seeds(&self, runs: &[&Results]) -> String {
        match Mean::of(runs.iter().map(|run| (self.value)(&run.summary))) {
            None => "-".to_owned(),
            Some(Mean { mean, half_width: None }) => (self.text)(mean),
            Some(Mean { mean, half_width: Some(half) }) => {
                format!("{}{} ± {}", self.at_least(runs), (self.text)(mean), (self.text)(half))
            }
        }
    }

    fn at_least(&self, runs: &[&Results]) -> &'static str {
        if runs.iter().any(|run| (self.is_lower_bound)(&run.summary)) { ">" } else { "" }
    }
}

fn whole(value: f64) -> String {
    number(value, 0)
}

fn longest(summary: &Summary, of: fn(&QueueUse) -> f64) -> f64 {
    summary.longest_queues.first().map_or(f64::NAN, of)
}

fn class<'s>(summary: &'s Summary, name: &str) -> Option<&'s SizeClassRow> {
    summary.sizes.iter().find(|class| class.class == name && class.completed > 0)
}

fn slowdown(summary: &Summary, name: &str, of: fn(&SizeClassRow) -> f64) -> f64 {
    class(summary, name).map_or(f64::NAN, of)
}

fn is_cut(summary: &Summary, name: &str) -> bool {
    class(summary, name).is_some_and(|class| class.unfinished > 0)
}

/// Aligns the columns of a table, the first `left` of them to the left.
fn aligned(table: &[Vec<String>], left: usize) -> String {
    let widths: Vec<usize> = (0..table[0].len())
        .map(|column| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in table {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match column < left {
                true => write!(line, "  {cell:<width$}"),
                false => write!(line, "  {cell:>width$}"),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn row(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "  {name:<16} {value}");
}

fn rate(bps: f64) -> String {
    BitRate(bps.round() as u64).to_string()
}

/// Formats with one decimal below 10.
fn significant(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { grouped(value.round() as u64) }
}
