//! JSON lines: `event`, `status` periodically, `summary` last.

use serde_json::{Map, Value, json};
use thalweg_realtime::endpoint::{ControlCounters, Event, Losses, PacketCounters, Report, TimeHistogram};
use thalweg_realtime::protocol::{Arbiter, DatagramCounters, EndpointCounters};
use thalweg_wire::Nanos;

/// Something that happened.
pub fn event(event: &Event) -> String {
    let (name, mut line) = match event {
        Event::ArbiterSilent { address, silence } => {
            ("arbiter_silent", json!({ "address": address, "silence_ns": silence.0 }))
        }
        Event::ArbiterAnswers { address } => ("arbiter_answers", json!({ "address": address })),
        Event::SwitchedArbiter { address } => ("arbiter_switched", json!({ "address": address })),
        Event::ArbiterRestarted { address } => ("arbiter_restarted", json!({ "address": address })),
        Event::OtherVersion { address, version } => {
            ("other_version", json!({ "address": address, "version": version }))
        }
        Event::InterfaceDown => ("interface_down", json!({})),
        Event::InterfaceUp => ("interface_up", json!({})),
        Event::PacketsLost { losses } => ("packets_lost", json!({ "lost": named(losses) })),
        Event::MtuChanged { mtu } => ("mtu_changed", json!({ "mtu": mtu })),
        _ => ("other", json!({})),
    };
    line["type"] = "event".into();
    line["event"] = name.into();
    line.to_string()
}

/// The state so far.
pub fn status(report: &Report) -> String {
    line("status", report)
}

/// The state at the end.
pub fn summary(report: &Report) -> String {
    line("summary", report)
}

fn line(kind: &str, report: &Report) -> String {
    json!({
        "type": kind,
        "elapsed_ns": report.elapsed.0,
        "arbiter": match report.arbiter {
            Arbiter::Primary => "primary",
            Arbiter::Secondary => "secondary",
        },
        "silence_ns": report.silence.0,
        "round_trip_ns": report.round_trip.map(|time| time.0),
        "held": report.held,
        "lost": named(&Losses::of(&report.packets, &report.protocol)),
        "packets": packets(&report.packets),
        "decisions": decisions(&report.protocol),
        "datagrams": datagrams(&report.protocol.datagrams, &report.control),
        "hold_time": times(&report.hold_times),
        "overhead": times(&report.overheads),
        "release_overhead": times(&report.release_overheads),
    })
    .to_string()
}

/// Lost packets by reason.
fn named(losses: &Losses) -> Map<String, Value> {
    losses.named().into_iter().map(|(name, packets)| (name.to_owned(), packets.into())).collect()
}

fn times(times: &TimeHistogram) -> Value {
    let nanos = |time: Option<Nanos>| time.map(|time| time.0);
    json!({
        "count": times.count(),
        "min_ns": nanos(times.min()),
        "mean_ns": nanos(times.mean()),
        "p50_ns": nanos(times.quantile(0.5)),
        "p99_ns": nanos(times.quantile(0.99)),
        "max_ns": nanos(times.max()),
    })
}

/// An object with all fields of a structure.
macro_rules! object {
    ($kind:ident $value:expr, $($field:ident),+ $(, ..$skipped:ident)?) => {{
        // A new field does not compile until it is here.
        let $kind { $($field,)+ $($skipped: _)? } = $value;
        let fields = [$((stringify!($field).to_owned(), Value::from(*$field))),+];
        Map::from_iter(fields)
    }};
}

fn packets(counters: &PacketCounters) -> Map<String, Value> {
    object!(
        PacketCounters counters,
        intercepted, intercepted_bytes, listed, unlisted_passed, unlisted_dropped, unparsed_passed,
        local_passed, too_long, released, released_bytes, release_refused, released_early,
        above_overhead, marked, marks_ignored, rewritten, scheme_bytes_ignored, remaining_unknown, not_ip, neighbour_discovery,
        overflow, queue_full
    )
}

fn decisions(counters: &EndpointCounters) -> Map<String, Value> {
    object!(
        EndpointCounters counters,
        submitted, refused_packets, refused_flows, refused_window, sent, dropped, expired,
        unmatched_answers, requests_repeated, flows_evicted, arbiter_restarts, switches, ..datagrams
    )
}

fn datagrams(counters: &DatagramCounters, control: &ControlCounters) -> Map<String, Value> {
    let mut object = object!(
        DatagramCounters counters,
        sent, sent_bytes, received, malformed, misdirected, stale, duplicate, timed_out, sessions_renewed
    );
    object.extend(object!(ControlCounters control, send_refused, unreachable, other_version));
    object
}
