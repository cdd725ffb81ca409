//! What came of a scenario: text for people, a line of JSON for programs.

mod faults;
mod reroute_latency;

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use thalweg_lab::{Headroom, HostStatus, Plane, PortStatus, Removed, Status, headroom};
use thalweg_wire::Nanos;

use super::quantiles::Quantiles;
use super::scenarios::collide::{self, LatencyBreakdown, Trial};
use super::scenarios::{udp, workload};
use thalweg_wire::units::grouped;

pub use faults::{faults, faults_json};
pub use reroute_latency::{reroute_latency, reroute_latency_json};

/// A row of the table of times.
type Row = (&'static str, &'static str, fn(&LatencyBreakdown) -> Nanos);

const ROWS: [Row; 6] = [
    ("collision", "event", |latency| Nanos(latency.event_ns)),
    ("event", "decision", |latency| Nanos(latency.decision_ns)),
    ("decision", "ARP sent", |latency| Nanos(latency.request_ns)),
    ("ARP sent", "new path", |latency| Nanos(latency.path_ns)),
    ("event", "new path", LatencyBreakdown::event_to_path),
    ("collision", "new path", LatencyBreakdown::total),
];

/// The table of `collide`.
pub fn collide(results: &collide::Results) -> String {
    let mut text = String::new();
    let [one, other] = &results.flows;
    let (from, to) = &results.link;
    let apart = results.latencies().count();
    let _ = writeln!(text, "collide: {one} and {other} meet on {from} > {to}, links of {}", results.rate);
    let early = results.trials.iter().filter(|trial| trial.is_early).count();
    let early = if early > 0 { format!(", {early} before they met") } else { String::new() };
    let _ = writeln!(text, "{apart} of {} trials taken apart{early}\n", results.trials.len());
    let _ = writeln!(text, "{:12}{:12}{:>10}{:>10}{:>10}", "from", "to", "p50", "p99", "longest");
    for (from, to, time) in ROWS {
        let Quantiles { p50_ns, p99_ns, max_ns, .. } = results.quantiles(time);
        let [p50, p99, most] = [p50_ns, p99_ns, max_ns].map(milliseconds);
        let _ = writeln!(text, "{from:12}{to:12}{p50:>10}{p99:>10}{most:>10}");
    }
    let rates = |flow: usize| mean(results.trials.iter().map(|trial| trial.rates[flow])) / 1e6;
    let _ = writeln!(
        text,
        "\n{one} {:.1} Mbit/s, {other} {:.1} Mbit/s of payload from 0.2 s after the collision on",
        rates(0),
        rates(1)
    );
    if results.lost_frames > 0 {
        let _ = writeln!(text, "{} frames lost before the collectors", results.lost_frames);
    }
    text + &verdict(&results.headroom)
}

/// The line of `collide`.
pub fn collide_json(results: &collide::Results) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        r#type: &'static str,
        rate_bps: u64,
        flows: &'a [String; 2],
        link: [&'a str; 2],
        event_to_path: Quantiles,
        whole: Quantiles,
        headroom: HeadroomJson,
        lost_frames: u64,
        trials: &'a [Trial],
    }
    line(&Line {
        r#type: "collide",
        rate_bps: results.rate.0,
        flows: &results.flows,
        link: [&results.link.0, &results.link.1],
        event_to_path: results.quantiles(LatencyBreakdown::event_to_path),
        whole: results.quantiles(LatencyBreakdown::total),
        headroom: HeadroomJson::from(&results.headroom),
        lost_frames: results.lost_frames,
        trials: &results.trials,
    })
}

/// What `udp` came to.
pub fn udp(results: &udp::Results) -> String {
    let udp::Results {
        flow,
        duration: watched,
        request_to_path: effect,
        new_path_packets,
        old_path_packets,
        refreshes: refreshed,
        loss_ratio: lost,
        ..
    } = results;
    let mut text = format!("udp: {flow} on links of {}\n", results.rate);
    let _ = match effect {
        None => writeln!(text, "it never took its new path"),
        Some(effect) => writeln!(text, "on its new path {} after the ARP request", milliseconds(effect.0)),
    };
    let (new_path_packets, seconds) = (grouped(*new_path_packets), watched.as_secs());
    let back = grouped(*old_path_packets);
    let _ = writeln!(text, "in {seconds} s {new_path_packets} packets on it, {back} on the old one");
    let _ = writeln!(text, "told again {refreshed} times; {:.2} % of the datagrams lost", 100.0 * lost);
    text + &verdict(&results.headroom)
}

/// The line of `udp`.
pub fn udp_json(results: &udp::Results) -> String {
    line(&json!({
        "type": "udp", "rate_bps": results.rate.0, "pair": results.flow,
        "watched_seconds": results.duration.as_secs(), "effect_ns": results.request_to_path.map(|effect| effect.0),
        "new_path_packets": results.new_path_packets, "old_path_packets": results.old_path_packets,
        "refreshed": results.refreshes, "lost": results.loss_ratio, "headroom": HeadroomJson::from(&results.headroom),
    }))
}

/// The table of `stride` and its like.
pub fn workload(results: &workload::Results) -> String {
    let workload::Results { pattern, rate, seed, time, outcomes } = results;
    let mut text =
        format!("{}: links of {rate}, {} s to send, seed {seed}\n\n", pattern.name(), time.as_secs());
    let best = outcomes.iter().find(|outcome| outcome.scheme == workload::Scheme::Optimal);
    let best = best.map(|outcome| outcome.row().mean_bps);
    let _ = writeln!(
        text,
        "{:12}{:>16}{:>12}{:>14}{:>10}{:>8}{:>8}",
        "scheme", "mean of flows", "of optimal", "slowest", "all done", "moves", "idle"
    );
    for outcome in outcomes {
        let row = outcome.row();
        let of_best = best.map_or(String::new(), |best| format!("{:.1} %", 100.0 * row.mean_bps / best));
        let _ = writeln!(
            text,
            "{:12}{:>9.2} Mbit/s{of_best:>12}{:>7.2} Mbit/s{:>8.2} s{:>8}{:>6.0} %{}",
            row.scheme,
            row.mean_bps / 1e6,
            row.min_bps / 1e6,
            row.seconds,
            row.reroutes,
            100.0 * row.idle,
            if row.conclusive { "" } else { "  inconclusive" }
        );
    }
    text
}

/// The line of `stride` and its like.
pub fn workload_json(results: &workload::Results) -> String {
    let schemes: Vec<_> = results
        .outcomes
        .iter()
        .map(|outcome| {
            let hosts: Vec<f64> = outcome.host_times.iter().map(Duration::as_secs_f64).collect();
            let moved: Vec<f64> = outcome.reroutes.iter().map(Duration::as_secs_f64).collect();
            json!({
                "summary": outcome.row(), "flows_bps": outcome.flow_rates, "hosts_seconds": hosts,
                "moved_seconds": moved,
            })
        })
        .collect();
    line(&json!({
        "type": results.pattern.name(), "rate_bps": results.rate.0, "seed": results.seed,
        "seconds": results.time.as_secs_f64(), "schemes": schemes,
    }))
}

/// The hosts of a lab.
pub fn hosts(status: &Status) -> String {
    let mut text = format!("{:10}{:16}{:16}{:20}{:>14}\n", "host", "namespace", "address", "MAC", "sends at");
    for host in &status.hosts {
        let HostStatus { name, namespace, ip, mac, rate, .. } = host;
        let (ip, mac, rate) = (ip.to_string(), mac.to_string(), rate.to_string());
        let _ = writeln!(text, "{name:10}{namespace:16}{ip:16}{mac:20}{rate:>14}");
    }
    text
}

/// A lab: its hosts, its switches, and what these have counted.
pub fn status(status: &Status) -> String {
    let mut text = hosts(status);
    let _ = writeln!(
        text,
        "\n{:10}{:>8}{:>16}{:>14}{:>14}{:>14}  monitor, in {}",
        "switch", "entries", "forwarded", "dropped", "mirrored", "not mirrored", status.fabric
    );
    for switch in &status.switches {
        let sum = |count: fn(&PortStatus) -> u64| grouped(switch.ports.iter().map(count).sum());
        let forwarded = sum(|port| port.switch.sent_packets);
        let dropped = sum(|port| port.switch.drops.total() + port.queue.dropped_packets);
        let mirrored = match status.plane {
            // Whoever makes the copies, its queue has counted them.
            Plane::Ovs => grouped(switch.monitor_queue.sent_packets + switch.monitor_queue.dropped_packets),
            _ => sum(|port| port.switch.mirrored_packets),
        };
        let _ = writeln!(
            text,
            "{:10}{:>8}{forwarded:>16}{dropped:>14}{mirrored:>14}{:>14}  {}",
            switch.name,
            switch.entries,
            grouped(switch.monitor_queue.dropped_packets),
            switch.monitor
        );
    }
    if !status.links_down.is_empty() {
        let _ = writeln!(text, "\nlinks down: {}", status.links_down.join(", "));
    }
    text
}

/// A lab as JSON.
pub fn status_json(status: &Status) -> String {
    let hosts = status.hosts.iter().map(|host| {
        json!({
            "name": host.name, "namespace": host.namespace, "ip": host.ip, "mac": host.mac.to_string(),
            "rate_bps": host.rate.0, "processes": host.processes,
        })
    });
    let port = |port: &PortStatus| {
        json!({
            "port": port.port.0, "interface": port.interface, "rate_bps": port.rate.0,
            "received_packets": port.switch.received_packets, "received_bytes": port.switch.received_bytes,
            "sent_packets": port.switch.sent_packets, "sent_bytes": port.switch.sent_bytes,
            "mirrored_packets": port.switch.mirrored_packets, "mirrored_bytes": port.switch.mirrored_bytes,
            "dropped_packets": port.switch.drops.total(), "queue_dropped_packets": port.queue.dropped_packets,
        })
    };
    let switches = status.switches.iter().map(|switch| {
        json!({
            "name": switch.name, "entries": switch.entries, "mirrored": switch.is_mirrored,
            "monitor": switch.monitor, "monitor_rate_bps": switch.monitor_rate.0,
            "monitor_sent_packets": switch.monitor_queue.sent_packets,
            "monitor_dropped_packets": switch.monitor_queue.dropped_packets,
            "ports": switch.ports.iter().map(port).collect::<Vec<_>>(),
        })
    });
    line(&json!({
        "type": "lab", "prefix": status.prefix.as_str(), "switched_by": status.plane, "fabric": status.fabric,
        "hosts": hosts.collect::<Vec<_>>(), "switches": switches.collect::<Vec<_>>(),
        "links_down": status.links_down,
    }))
}

/// What was removed.
pub fn removed(removed: Removed) -> String {
    match removed {
        Removed { namespaces: 0, .. } => "there was nothing to remove\n".to_owned(),
        Removed { namespaces, processes } => {
            format!("removed {namespaces} namespaces, ended {processes} processes in them\n")
        }
    }
}

/// What the machine had left, as JSON has it.
#[derive(Serialize)]
pub(super) struct HeadroomJson {
    idle: f64,
    min_idle: f64,
    stolen: f64,
    backlog_drops: u64,
    conclusive: bool,
}

impl From<&Headroom> for HeadroomJson {
    fn from(headroom: &Headroom) -> HeadroomJson {
        let &Headroom { idle, min_idle, stolen, backlog_drops } = headroom;
        let conclusive = headroom.verdict() == headroom::Verdict::Conclusive;
        HeadroomJson { idle, min_idle, stolen, backlog_drops, conclusive }
    }
}

/// What the machine had left, and what that means.
pub(super) fn verdict(headroom: &Headroom) -> String {
    let idle = 100.0 * headroom.idle;
    let stolen = match headroom.stolen {
        none if none < 0.005 => String::new(),
        stolen => {
            format!(
                ", {:.0} % taken by a hypervisor (at most {:.0} %)",
                100.0 * stolen,
                100.0 * headroom::MAX_STOLEN
            )
        }
    };
    let lost = match headroom.backlog_drops {
        0 => String::new(),
        count => format!(", {count} frames lost between interfaces"),
    };
    match headroom.verdict() {
        headroom::Verdict::Conclusive => format!("processors idle {idle:.0} %{stolen}{lost}\n"),
        headroom::Verdict::Inconclusive => {
            let least = 100.0 * headroom::MIN_IDLE;
            let saturated = if headroom.has_saturated_processor() { ", one never" } else { "" };
            format!(
                "inconclusive: processors idle {idle:.0} % (at least {least:.0} %){saturated}{stolen}{lost}\n"
            )
        }
    }
}

pub(super) fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("names and numbers can be written") + "\n"
}

fn milliseconds(ns: u64) -> String {
    format!("{:.2} ms", ns as f64 / 1e6)
}

pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}
