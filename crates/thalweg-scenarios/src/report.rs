//! Results of scenarios and the status of labs: text for people, lines of JSON for programs.

mod emulated_latency;
mod emulated_queues;
mod emulated_rpc;
mod faults;
mod isolate;
mod reroute_latency;
mod switch_buffer;

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use thalweg_lab::{Headroom, HostStatus, Plane, PortStatus, Removed, Status, headroom};
use thalweg_wire::Nanos;
use thalweg_wire::units::grouped;

use super::quantiles::{Quantiles, mean};
use super::scenarios::collide::{self, LatencyBreakdown, Trial};
use super::scenarios::{HostPair, udp, workload};

pub use emulated_latency::{emulated_latency, emulated_latency_json};
pub use emulated_queues::{emulated_queues, emulated_queues_json};
pub use emulated_rpc::{emulated_rpc, emulated_rpc_flows, emulated_rpc_json};
pub use faults::{faults, faults_json};
pub use isolate::{isolate, isolate_json};
pub use reroute_latency::{reroute_latency, reroute_latency_json};
pub use switch_buffer::{switch_buffer, switch_buffer_json};

/// A row of the table of times: from, to, and the time between them.
type Row = (&'static str, &'static str, fn(&LatencyBreakdown) -> Nanos);

const ROWS: [Row; 6] = [
    ("collision", "event", |latency| Nanos(latency.event_ns)),
    ("event", "decision", |latency| Nanos(latency.decision_ns)),
    ("decision", "ARP sent", |latency| Nanos(latency.request_ns)),
    ("ARP sent", "new path", |latency| Nanos(latency.path_ns)),
    ("event", "new path", LatencyBreakdown::event_to_path),
    ("collision", "new path", LatencyBreakdown::total),
];

/// Returns the results of `collide` as text.
pub fn collide(results: &collide::Results) -> String {
    let mut text = String::new();
    let [one, other] = &results.flows;
    let resolved = results.latencies().count();
    let _ =
        writeln!(text, "collide: {one} and {other} collide on {}, link rate {}", results.link, results.rate);
    let _ = writeln!(text, "network: {}", results.network);
    let early = results.trials.iter().filter(|trial| trial.is_early).count();
    let early = if early > 0 { format!(", {early} rerouted before the collision") } else { String::new() };
    let _ = writeln!(text, "{resolved} of {} trials resolved{early}\n", results.trials.len());
    let _ = writeln!(text, "{:12}{:12}{:>10}{:>10}{:>10}", "from", "to", "p50", "p99", "max");
    for (from, to, time) in ROWS {
        let Quantiles { p50_ns, p99_ns, max_ns, .. } = results.quantiles(time);
        let [p50, p99, max] = [p50_ns, p99_ns, max_ns].map(milliseconds);
        let _ = writeln!(text, "{from:12}{to:12}{p50:>10}{p99:>10}{max:>10}");
    }
    let rates = |flow: usize| mean(results.trials.iter().map(|trial| trial.rates[flow])) / 1e6;
    let _ = writeln!(
        text,
        "\npayload rates from 0.2 s after the collision: {one} {:.1} Mbit/s, {other} {:.1} Mbit/s",
        rates(0),
        rates(1)
    );
    text += &moves(results);
    if results.lost_frames > 0 {
        let _ = writeln!(text, "{} frames lost before the collectors", results.lost_frames);
    }
    text + &verdict(&results.headroom)
}

/// Returns the numbers of reroutes as a line.
fn moves(results: &collide::Results) -> String {
    let (all, most) = (grouped(results.reroutes()), results.most_flow_moves());
    format!("{all} reroutes, at most {most} of one flow\n")
}

/// Returns the results of `collide` as a line of JSON.
pub fn collide_json(results: &collide::Results) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        r#type: &'static str,
        rate_bps: u64,
        network: &'a str,
        flows: &'a [HostPair; 2],
        link: &'a str,
        event_to_path: Quantiles,
        total: Quantiles,
        reroutes: u64,
        most_flow_moves: u32,
        headroom: HeadroomJson,
        lost_frames: u64,
        trials: &'a [Trial],
    }
    line(&Line {
        r#type: "collide",
        rate_bps: results.rate.0,
        network: &results.network,
        flows: &results.flows,
        link: &results.link,
        event_to_path: results.quantiles(LatencyBreakdown::event_to_path),
        total: results.quantiles(LatencyBreakdown::total),
        reroutes: results.reroutes(),
        most_flow_moves: results.most_flow_moves(),
        headroom: HeadroomJson::from(&results.headroom),
        lost_frames: results.lost_frames,
        trials: &results.trials,
    })
}

/// Returns the results of `udp` as text.
pub fn udp(results: &udp::Results) -> String {
    let mut text = format!("udp: {}, link rate {}\n", results.flow, results.rate);
    let _ = writeln!(text, "network: {}", results.network);
    let _ = match results.request_to_path {
        None => writeln!(text, "no packet on the new path"),
        Some(time) => writeln!(text, "on the new path {} after the ARP request", milliseconds(time.0)),
    };
    let (new, old) = (grouped(results.new_path_packets), grouped(results.old_path_packets));
    let seconds = results.duration.as_secs();
    let _ = writeln!(text, "{new} packets on the new path, {old} on the old path in {seconds} s");
    let loss = 100.0 * results.loss_ratio;
    let _ = writeln!(text, "{} repeated ARP requests, {loss:.2} % of datagrams lost", results.refreshes);
    text + &verdict(&results.headroom)
}

/// Returns the results of `udp` as a line of JSON.
pub fn udp_json(results: &udp::Results) -> String {
    line(&json!({
        "type": "udp", "rate_bps": results.rate.0, "network": results.network, "src": results.flow.src, "dst": results.flow.dst,
        "duration_ns": nanoseconds(results.duration),
        "request_to_path_ns": results.request_to_path.map(|time| time.0),
        "new_path_packets": results.new_path_packets, "old_path_packets": results.old_path_packets,
        "refreshes": results.refreshes, "loss_ratio": results.loss_ratio,
        "headroom": HeadroomJson::from(&results.headroom),
    }))
}

/// Returns the results of `stride`, `bijection`, `random` or `shuffle` as text.
pub fn workload(results: &workload::Results) -> String {
    let workload::Results { pattern, rate, host_share, seed, time, outcomes } = results;
    let mut text = format!(
        "{}: link rate {rate}, hosts send at {host_share} of it, {} s to send, seed {seed}\n\n",
        pattern.name(),
        time.as_secs()
    );
    let best = outcomes.iter().find(|outcome| outcome.method == workload::Method::Optimal);
    let best = best.map(|outcome| outcome.row().mean_bps);
    let _ = writeln!(
        text,
        "{:12}{:>16}{:>12}{:>14}{:>12}{:>10}{:>10}{:>10}",
        "method",
        "mean flow rate",
        "of optimal",
        "slowest",
        "completion",
        "reroutes",
        "of a flow",
        "CPU idle"
    );
    for outcome in outcomes {
        let row = outcome.row();
        let of_best = best.map_or(String::new(), |best| format!("{:.1} %", 100.0 * row.mean_bps / best));
        let _ = writeln!(
            text,
            "{:12}{:>9.2} Mbit/s{of_best:>12}{:>7.2} Mbit/s{:>10.2} s{:>10}{:>10}{:>8.0} %{}",
            row.method,
            row.mean_bps / 1e6,
            row.min_bps / 1e6,
            row.completion_ns as f64 / 1e9,
            row.reroutes,
            row.most_flow_moves,
            100.0 * row.idle_ratio,
            if row.conclusive { "" } else { "  inconclusive" }
        );
    }
    text + advice(outcomes.iter().map(|outcome| outcome.row().conclusive))
}

/// Returns the results of `stride`, `bijection`, `random` or `shuffle` as a line of JSON.
pub fn workload_json(results: &workload::Results) -> String {
    let all = |times: &[Duration]| times.iter().copied().map(nanoseconds).collect::<Vec<_>>();
    let methods: Vec<_> = results
        .outcomes
        .iter()
        .map(|outcome| {
            json!({
                "summary": outcome.row(), "flow_rates_bps": outcome.flow_rates,
                "host_completion_ns": all(&outcome.host_times), "reroute_times_ns": all(&outcome.reroutes),
            })
        })
        .collect();
    line(&json!({
        "type": results.pattern.name(), "rate_bps": results.rate.0, "host_share": results.host_share, "seed": results.seed,
        "duration_ns": nanoseconds(results.time), "methods": methods,
    }))
}

/// Returns the hosts of a lab as text.
pub fn hosts(status: &Status) -> String {
    let mut text =
        format!("{:10}{:16}{:16}{:20}{:>14}\n", "host", "namespace", "address", "MAC", "send rate");
    for host in &status.hosts {
        let HostStatus { name, namespace, ip, mac, rate, .. } = host;
        let (ip, mac, rate) = (ip.to_string(), mac.to_string(), rate.to_string());
        let _ = writeln!(text, "{name:10}{namespace:16}{ip:16}{mac:20}{rate:>14}");
    }
    text
}

/// Returns a lab's hosts, switches and counters as text.
pub fn status(status: &Status) -> String {
    let mut text = hosts(status);
    let _ = writeln!(
        text,
        "\n{:10}{:>8}{:>16}{:>14}{:>14}{:>14}  monitor port, in {}",
        "switch", "entries", "forwarded", "dropped", "mirrored", "mirror drops", status.fabric
    );
    for switch in &status.switches {
        let sum = |count: fn(&PortStatus) -> u64| grouped(switch.ports.iter().map(count).sum());
        let forwarded = sum(|port| port.switch.sent_packets);
        let dropped = sum(|port| port.switch.drops.total() + port.queue.dropped_packets);
        let mirrored = match status.plane {
            // Open vSwitch does not count copies; the monitor port's queue does.
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

/// Returns a lab's status as a line of JSON.
pub fn status_json(status: &Status) -> String {
    let hosts = status.hosts.iter().map(|host| {
        json!({
            "name": host.name, "namespace": host.namespace, "ip": host.ip, "mac": host.mac.to_string(),
            "rate_bps": host.rate.0, "pids": host.processes,
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
            "name": switch.name, "table_entries": switch.entries, "mirroring": switch.is_mirrored,
            "monitor_interface": switch.monitor, "monitor_rate_bps": switch.monitor_rate.0,
            "monitor_sent_packets": switch.monitor_queue.sent_packets,
            "monitor_dropped_packets": switch.monitor_queue.dropped_packets,
            "ports": switch.ports.iter().map(port).collect::<Vec<_>>(),
        })
    });
    line(&json!({
        "type": "lab", "prefix": status.prefix.as_str(), "switch_type": status.plane,
        "fabric_namespace": status.fabric, "hosts": hosts.collect::<Vec<_>>(),
        "switches": switches.collect::<Vec<_>>(), "links_down": status.links_down,
    }))
}

/// Returns what `thalweg lab down` removed, as text.
pub fn removed(removed: Removed) -> String {
    match removed {
        Removed { namespaces: 0, processes: 0 } => "nothing to remove\n".to_owned(),
        Removed { namespaces, processes } => {
            format!("removed {namespaces} namespaces, killed {processes} processes\n")
        }
    }
}

/// A headroom as JSON.
#[derive(Serialize)]
pub(super) struct HeadroomJson {
    idle_ratio: f64,
    min_idle_ratio: f64,
    stolen_ratio: f64,
    backlog_dropped_packets: u64,
    conclusive: bool,
}

impl From<&Headroom> for HeadroomJson {
    fn from(headroom: &Headroom) -> HeadroomJson {
        HeadroomJson {
            idle_ratio: headroom.idle,
            min_idle_ratio: headroom.min_idle,
            stolen_ratio: headroom.stolen,
            backlog_dropped_packets: headroom.backlog_drops,
            conclusive: headroom.verdict() == headroom::Verdict::Conclusive,
        }
    }
}

/// What to do about an inconclusive measurement.
const ADVICE: &str = "The machine was too busy: the times include waiting for a processor. Stop other programs, lower --rate \
                      or use more processors, and repeat. A short disturbance matters less with more --trials or a longer \
                      --duration.\n";

/// Returns a line with the idle CPU time, and the reasons if the measurement is inconclusive.
pub(super) fn verdict(headroom: &Headroom) -> String {
    let mut line = format!("CPU idle {:.0} %", 100.0 * headroom.idle);
    let is_conclusive = headroom.verdict() == headroom::Verdict::Conclusive;
    if !is_conclusive {
        let _ = write!(line, " (minimum {:.0} %)", 100.0 * headroom::MIN_IDLE);
    }
    if headroom.has_saturated_processor() {
        line += ", one processor never idle";
    }
    if headroom.stolen >= 0.005 {
        let (stolen, max) = (100.0 * headroom.stolen, 100.0 * headroom::MAX_STOLEN);
        let _ = write!(line, ", {stolen:.0} % stolen by the hypervisor (maximum {max:.0} %)");
    }
    if headroom.backlog_drops > 0 {
        let _ = write!(line, ", {} frames dropped between interfaces", headroom.backlog_drops);
    }
    if is_conclusive { line + "\n" } else { format!("inconclusive: {line}\n{ADVICE}") }
}

/// Returns the advice below a table, if a row is inconclusive.
pub(super) fn advice(mut are_conclusive: impl Iterator<Item = bool>) -> &'static str {
    if are_conclusive.all(|is_conclusive| is_conclusive) { "" } else { ADVICE }
}

pub(super) fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("names and numbers serialise") + "\n"
}

fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos() as u64
}

fn milliseconds(ns: u64) -> String {
    format!("{:.2} ms", ns as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdict_names_each_reason() {
        let headroom = Headroom { idle: 0.5, min_idle: 0.4, stolen: 0.0, backlog_drops: 0 };
        assert_eq!(verdict(&headroom), "CPU idle 50 %\n");
        let saturated = Headroom { min_idle: 0.0, ..headroom };
        assert_eq!(
            verdict(&saturated),
            format!("inconclusive: CPU idle 50 % (minimum 30 %), one processor never idle\n{ADVICE}")
        );
        let stolen = Headroom { stolen: 0.03, backlog_drops: 2, ..headroom };
        assert_eq!(
            verdict(&stolen),
            format!(
                "inconclusive: CPU idle 50 % (minimum 30 %), 3 % stolen by the hypervisor (maximum 2 %), \
                 2 frames dropped between interfaces\n{ADVICE}"
            )
        );
    }
}
