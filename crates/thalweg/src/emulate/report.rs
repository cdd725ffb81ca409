//! The text report of a run.

use std::fmt::Write;

use thalweg_experiment::results::{
    LinkUse, MirrorUse, QueueUse, Results, SIZE_CLASSES, SeriesUse, SizeClassRow, Summary,
};
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
    series(&mut text, &results.summary.series);
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

fn series(text: &mut String, series: &[SeriesUse]) {
    if series.is_empty() {
        return;
    }
    text.push_str("\nTime series\n");
    for SeriesUse { table, rows, lost_rows } in series {
        let lost = match lost_rows {
            0 => String::new(),
            lost => format!(", {} lost: use a longer interval or fewer flows", grouped(*lost)),
        };
        row(text, table, &format!("{} rows{lost}", grouped(*rows)));
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

fn row(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "  {name:<16} {value}");
}

pub(super) fn rate(bps: f64) -> String {
    BitRate(bps.round() as u64).to_string()
}

/// Formats with one decimal below 10.
fn significant(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { grouped(value.round() as u64) }
}
