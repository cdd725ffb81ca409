//! Reports of a real-time emulation.

use std::fmt::Write;

use serde_json::{Value, json};
use thalweg_emulator::core::blueprint::Blueprint;
use thalweg_emulator::{Place, Reason};
use thalweg_experiment::Plan;
use thalweg_experiment::results::QueueRow;
use thalweg_network::{EndpointId, Node, PortIndex, RouterId, Topology};
use thalweg_realtime::arbiter::queue_series::QueueSample;
use thalweg_realtime::arbiter::{EndpointReport, EndpointTally, Options, Refused, Report};
use thalweg_wire::{Nanos, Timestamp};

use crate::figures::grouped;

/// Packets that the emulated network interface of a host can queue, as many as Linux by default (`txqueuelen`). Emulated hosts see a full interface and
/// wait, so they need less; a real kernel has sent its packets already, in bursts of several segments of 64 KiB.
const INTERFACE_PACKETS: u64 = 1_000;

/// The longest slot: a packet leaves the network at the start of one.
const LONGEST_SLOT: Nanos = Nanos::from_micros(100);

/// Maximum rows of queues and drops in the text.
const SHOWN: usize = 10;

/// Returns the network of a plan in real time.
pub fn blueprint(plan: &Plan) -> Blueprint<'_> {
    let blueprint = plan.blueprint();
    let interface_buffer = INTERFACE_PACKETS * u64::from(blueprint.longest);
    Blueprint { interface_buffer, ..blueprint }.with_slots_within(LONGEST_SLOT)
}

/// Formats the report of a run as one JSON object and a newline. Its slot 0 began at `started_at`.
pub fn json(plan: &Plan, options: &Options, report: &Report, started_at: Timestamp) -> String {
    let topology = &plan.topology;
    let drops = report.drops.iter().map(|((place, reason), packets)| {
        json!({ "place": named(topology, *place), "reason": Reason::name(*reason), "packets": packets })
    });
    let queues = report.queues.iter().map(|(router, port, queue)| {
        json!({
            "port": port_name(topology, *router, *port),
            "samples": queue.samples(),
            "median_packets": queue.quantile(0.5),
            "p5_packets": queue.quantile(0.05),
            "p95_packets": queue.quantile(0.95),
            "mean_packets": queue.mean(),
            "deviation_packets": queue.deviation(),
            "max_packets": queue.max(),
        })
    });
    let pace = &report.punctuality;
    let mut document = json!({
        "type": "real_time_emulation",
        "experiment": plan.name,
        "topology": plan.topology_name,
        "scheme": plan.scheme.name(),
        "seed": plan.seed,
        "started_at_ns": started_at.0,
        "duration_ns": report.duration.0,
        "valid": report.is_valid,
        "slots": pace.slots,
        "late_slots": pace.late_slots,
        "late_share": pace.late_share(),
        "max_late_share": options.pace.max_late_share,
        "late_after_ns": options.pace.late_after.0,
        "worst_delay_ns": pace.worst.0,
        "skipped_slots": pace.skipped_slots,
        "pauses": pace.pauses,
        "requests": report.requests,
        "answers": report.answers,
        "in_flight": report.in_flight,
        "packets": packets(&report.packets()),
        "drops": drops.collect::<Vec<Value>>(),
        "events": report.events,
        "queues": queues.collect::<Vec<Value>>(),
        "queue_samples_left_out": report.series.left_out(),
        "endpoints": report.endpoints.iter().map(|one| endpoint(topology, one)).collect::<Vec<Value>>(),
        "datagrams": {
            "received": report.datagrams.received,
            "malformed": report.datagrams.malformed,
            "unknown_endpoint": report.datagrams.unknown_endpoint,
            "wrong_address": report.datagrams.wrong_address,
            "wrong_number": report.datagrams.wrong_number,
            "flooded": report.datagrams.flooded,
            "send_errors": report.send_errors,
        },
        "took_over_at_ns": report.took_over_at.map(|time| time.0),
        "ignored_on_standby": report.ignored_on_standby,
    })
    .to_string();
    document.push('\n');
    document
}

/// Returns the rows of the table `queues`: the queue lengths over time that were recorded.
pub fn queue_rows(plan: &Plan, report: &Report) -> Vec<QueueRow> {
    let (topology, clock) = (&plan.topology, blueprint(plan).clock);
    let row = |sample: &QueueSample| {
        let (router, port) = sample.port;
        QueueRow {
            time_ns: clock.start_of(sample.slot).0,
            router: topology.name(Node::Router(router)).to_owned(),
            port: port.0,
            to: topology.name(topology.peer(router, port).node).to_owned(),
            packets: sample.backlog.packets,
            bytes: sample.backlog.bytes,
        }
    };
    report.series.samples().map(row).collect()
}

fn packets(tally: &EndpointTally) -> Value {
    let refused =
        Refused::ALL.map(|reason| (reason.name().to_owned(), json!(tally.refused[reason as usize])));
    json!({
        "requests": tally.requests,
        "delivered": tally.delivered,
        "marked": tally.marked,
        "dropped": tally.dropped,
        "refused": Value::Object(refused.into_iter().collect()),
    })
}

fn endpoint(topology: &Topology, report: &EndpointReport) -> Value {
    let EndpointReport { endpoint, address, packets: tally, session } = report;
    json!({
        "endpoint": topology.name(Node::Endpoint(EndpointId(*endpoint))),
        "number": endpoint,
        "address": address.to_string(),
        "joined": tally.joined,
        "packets": packets(tally),
        "wrong_address": tally.wrong_address,
        "flooded": tally.flooded,
        "datagrams_received": session.datagrams.received,
        "datagrams_sent": session.datagrams.sent,
        "malformed": session.datagrams.malformed,
        "stale": session.datagrams.stale,
        "duplicate": session.datagrams.duplicate,
        "timed_out": session.datagrams.timed_out,
        "no_room": session.no_room,
        "repeated_requests": session.repeated_requests,
        "answers_repeated": session.answers_repeated,
        "obsolete_answers": session.obsolete_answers,
        "abandoned": session.abandoned,
        "restarts": session.endpoint_restarts,
    })
}

/// Formats the report for people.
pub fn text(plan: &Plan, options: &Options, report: &Report) -> String {
    let mut text = String::new();
    let topology = &plan.topology;
    let _ = writeln!(text, "{}", plan.name);
    row(&mut text, "topology", &plan.topology_name);
    row(&mut text, "scheme", plan.scheme.name());
    row(&mut text, "emulated", &report.duration.to_string());
    if let Some(time) = report.took_over_at {
        row(&mut text, "took over", &format!("after {time}"));
    } else if report.ignored_on_standby > 0 {
        row(&mut text, "standby", &format!("{} datagrams ignored", grouped(report.ignored_on_standby)));
    }
    let pace = &report.punctuality;
    let verdict = if report.is_valid { "valid" } else { "INVALID" };
    let limit = 100.0 * options.pace.max_late_share;
    row(
        &mut text,
        "timeslots",
        &format!(
            "{verdict}: {} of {} late ({:.4} %, limit {limit} %), {} skipped, worst delay {}",
            grouped(pace.late_slots),
            grouped(pace.slots),
            100.0 * pace.late_share(),
            grouped(pace.skipped_slots),
            pace.worst
        ),
    );
    let sum = report.packets();
    let refused: u64 = sum.refused.iter().sum();
    row(
        &mut text,
        "packets",
        &format!(
            "{} requests, {} answers, {} delivered, {} marked, {} dropped, {} refused, {} in flight",
            grouped(report.requests),
            grouped(report.answers),
            grouped(sum.delivered),
            grouped(sum.marked),
            grouped(sum.dropped),
            grouped(refused),
            grouped(report.in_flight)
        ),
    );
    let datagrams = &report.datagrams;
    row(
        &mut text,
        "datagrams",
        &format!(
            "{} received; refused: {} malformed, {} of unknown endpoints, {} from wrong addresses, {} with wrong numbers, {} flooded",
            grouped(datagrams.received),
            grouped(datagrams.malformed),
            grouped(datagrams.unknown_endpoint),
            grouped(datagrams.wrong_address),
            grouped(datagrams.wrong_number),
            grouped(datagrams.flooded)
        ),
    );
    if report.send_errors > 0 {
        row(&mut text, "send errors", &grouped(report.send_errors));
    }
    queues(&mut text, topology, report);
    drops(&mut text, topology, report);
    endpoints(&mut text, topology, report);
    text
}

fn queues(text: &mut String, topology: &Topology, report: &Report) {
    let mut queues: Vec<_> = report.queues.iter().filter(|(.., queue)| queue.max() > 0).collect();
    queues.sort_by(|(.., one), (.., other)| other.mean().total_cmp(&one.mean()));
    if queues.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "\n{:<32} {:>8} {:>8} {:>10} {:>8}",
        "Queues in packets", "median", "mean", "deviation", "max"
    );
    for (router, port, queue) in queues.into_iter().take(SHOWN) {
        let _ = writeln!(
            text,
            "  {:<30} {:>8} {:>8.1} {:>10.1} {:>8}",
            port_name(topology, *router, *port),
            queue.quantile(0.5),
            queue.mean(),
            queue.deviation(),
            queue.max()
        );
    }
}

fn drops(text: &mut String, topology: &Topology, report: &Report) {
    let mut drops: Vec<_> = report.drops.iter().collect();
    drops.sort_by_key(|(_, packets)| std::cmp::Reverse(**packets));
    if !drops.is_empty() {
        text.push_str("\nDrops\n");
    }
    for ((place, reason), packets) in drops.into_iter().take(SHOWN) {
        let _ = writeln!(
            text,
            "  {:<30} {:<10} {:>10}",
            named(topology, *place),
            reason.name(),
            grouped(*packets)
        );
    }
}

fn endpoints(text: &mut String, topology: &Topology, report: &Report) {
    if report.endpoints.is_empty() {
        text.push_str("\nNo endpoint has joined.\n");
        return;
    }
    let _ = writeln!(
        text,
        "\n{:<12} {:<22} {:>10} {:>10} {:>8} {:>8} {:>8}",
        "Endpoints", "address", "requests", "delivered", "marked", "dropped", "refused"
    );
    for EndpointReport { endpoint, address, packets, .. } in &report.endpoints {
        let _ = writeln!(
            text,
            "  {:<10} {:<22} {:>10} {:>10} {:>8} {:>8} {:>8}",
            topology.name(Node::Endpoint(EndpointId(*endpoint))),
            address.to_string(),
            grouped(packets.requests),
            grouped(packets.delivered),
            grouped(packets.marked),
            grouped(packets.dropped),
            grouped(packets.refused.iter().sum())
        );
    }
}

fn row(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "  {name:<12} {value}");
}

fn port_name(topology: &Topology, router: RouterId, port: PortIndex) -> String {
    named(topology, Place::Port(router, port))
}

fn named(topology: &Topology, place: Place) -> String {
    match place {
        Place::Endpoint(endpoint) => topology.name(Node::Endpoint(endpoint)).to_owned(),
        Place::Router(router) => topology.name(Node::Router(router)).to_owned(),
        Place::Port(router, port) => {
            let to = topology.name(topology.peer(router, port).node);
            format!("{} > {to}", topology.name(Node::Router(router)))
        }
    }
}
