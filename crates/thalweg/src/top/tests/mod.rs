//! Tests of frames, keys and event streams.
//!
//! `THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg top` rewrites the golden files.

mod keys;
mod mouse;
mod random_input;
mod screens;
mod stream;

use std::io::{self, Read};
use std::time::Duration;

use proptest::prelude::*;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::style::{Color, Modifier};
use serde_json::{Value, json};
use thalweg_api::client::server_sent::Decoder;
use thalweg_api::client::{Loss, RequestError, subscription};
use thalweg_api::{Event, Flows, Link, Links};
use thalweg_measure::filter::FlowFilter;
use thalweg_wire::{Nanos, Timestamp};

use super::links_table;
use super::model::{Details, FlowRow, ObservedLink, OnLink, Query, Snapshot, SortBy, Update};
use super::view::{Action, Pane, TopView};
use crate::terminal::test_screen::{self, buffer, find, is_part_of, lines, screen};
use crate::terminal::{Theme, View};

const START: Timestamp = Timestamp(1_795_255_200_000_000_000);

fn time(ms: u64) -> Value {
    (START + Nanos::from_millis(ms)).to_string().into()
}

fn within(value: f64) -> Value {
    json!({
        "rate_bps": value, "rate_lower_bps": value * 0.985, "rate_upper_bps": value * 1.02, "confidence": 0.95,
        "bounds": "interval",
    })
}

fn at_least(value: f64) -> Value {
    json!({
        "rate_bps": value, "rate_lower_bps": value, "rate_upper_bps": null, "confidence": 1.0, "bounds": "lower_bound",
    })
}

fn unknown() -> Value {
    json!({
        "rate_bps": null, "rate_lower_bps": null, "rate_upper_bps": null, "confidence": null, "bounds": "not_converged",
    })
}

/// The fields of both objects.
fn joined(mut object: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("{more} is no object") };
    object.as_object_mut().unwrap().extend(more);
    object
}

fn link(switch: &str, port: u16, direction: &str, peer: &str, utilisation: f64) -> Value {
    let rate = utilisation * 1e10;
    let link = json!({
        "link": format!("{switch}:p{port}:{direction}"), "collector": switch, "switch": switch, "port": port,
        "direction": direction,
        "peer": if peer.is_empty() { Value::Null } else { peer.into() },
        "capacity_bps": 10_000_000_000_u64,
        "smoothed_bps": rate, "peak_bps": rate, "utilisation": utilisation,
        "flows": (utilisation * 100.0).ceil() as u32,
        "changed": if utilisation > 0.0 { time(62_000 + 20 * u64::from(port)) } else { Value::Null },
    });
    joined(link, if port == 2 { at_least(rate) } else { within(rate) })
}

fn links() -> Links {
    let mut links = vec![
        link("tor0", 0, "in", "host0", 0.412),
        link("tor0", 0, "out", "host0", 0.0),
        link("tor0", 1, "in", "host1", 0.731),
        link("tor0", 1, "out", "host1", 0.0004),
        link("tor0", 2, "in", "host2", 0.038),
        link("tor0", 3, "out", "spine-of-the-second-pod", 0.9312),
        link("tor1", 7, "out", "", 0.25),
    ];
    for port in 8..40 {
        links.push(link("tor1", port, "in", &format!("host{port}"), f64::from(port) / 1000.0));
    }
    let responses = json!([
        { "collector": "tor0", "time": time(62_345), "error": null },
        { "collector": "tor1", "time": time(62_100), "error": null },
        { "collector": "tor2", "time": null, "error": "the collector does not respond" },
    ]);
    serde_json::from_value(json!({ "responses": responses, "links": links })).unwrap()
}

fn flow(key: &str, rate: Value, basis: &str, repeated: u64) -> Value {
    let name = json!({ "src": "10.0.0.1", "dst": "10.0.0.2", "src_port": 1, "dst_port": 2, "protocol": 6 });
    let span = json!({ "start": time(62_344), "end": time(62_345) });
    let flow = json!({
        "flow": name, "key": key, "collector": "tor0", "basis": basis,
        "span": if rate["rate_bps"].is_null() { Value::Null } else { span },
        "cheetah": rate["rate_bps"].as_f64().is_some_and(|rate| rate > 2e9),
        "redirected": rate["rate_bps"] == json!(2.5e9),
        "input": "tor0:p1:in", "output": "tor0:p3:out",
        "flow_start": time(2_000), "flow_end": time(62_345), "samples": 48_123, "sampled_bytes": 70_000_000,
        "repeated_bytes": repeated, "reordered": 12,
    });
    joined(flow, rate)
}

fn flows() -> Vec<FlowRow> {
    let mut flows = vec![
        flow("tcp 10.0.0.17:51034 > 192.168.100.200:5201", within(4.12e9), "sequence_numbers", 812_345),
        flow(
            "tcp [2001:db8:85a3::8a2e:370:7334]:443 > [2a00:1450:4001:810::200e]:40000",
            within(2.5e9),
            "sequence_numbers",
            0,
        ),
        flow("udp 10.0.0.18:40022 > 10.0.0.1:4433", within(1.18e9), "sampling_ratio", 0),
        flow("esp 203.0.113.7 > 198.51.100.250", at_least(4.1e8), "samples_alone", 0),
        flow("tcp 10.0.0.19:53122 > 10.0.0.1:80", unknown(), "nothing", 0),
    ];
    for n in 0..40_u32 {
        let key = format!("tcp 172.16.{n}.{}:{} > 10.0.0.80:443", n * 5, 32_768 + n * 613);
        let repeated = 100 * u64::from(n);
        flows.push(flow(&key, within(9e7 / f64::from(n + 1)), "sequence_numbers", repeated));
    }
    let flows: Flows =
        serde_json::from_value(json!({ "responses": [], "total": 1_234, "flows": flows })).unwrap();
    FlowRow::all(flows, "/").unwrap()
}

fn collector(name: &str, source: &str, state: Value, counts: Value) -> Value {
    json!({
        "name": name, "switch": name, "source": source, "live": true, "backend": "af_packet", "state": state,
        "restarts": if counts.is_null() { 3 } else { 0 }, "counts": counts,
    })
}

fn state(name: &str) -> Value {
    json!({ "name": name, "error": null, "retry_at": null })
}

fn failed() -> Value {
    json!({ "name": "failed", "error": "no such interface", "retry_at": time(70_000) })
}

fn snapshot() -> Snapshot {
    let counts = |drops: u64, ratio: Option<f64>| {
        json!({
            "frames": 4_812_345, "packets": 4_800_000, "kernel_drops": drops, "flows": 10_234,
            "flow_capacity": 65_536, "sampling_ratio": ratio, "sampling_ratio_lower": null, "sampling_ratio_upper": null,
            "confidence": null, "bounds": "unknown", "events": 12, "memory_bytes": 12_000_000,
        })
    };
    let Links { responses, links } = links();
    let health = json!({ "status": "ok", "name": "thalweg", "version": "0.4.0", "started": time(0) });
    Snapshot {
        health: serde_json::from_value(health).unwrap(),
        collectors: serde_json::from_value(json!([
            collector("tor0", "eth2", state("running"), counts(0, Some(0.31))),
            collector("tor1", "eth3", state("running"), counts(1_234, None)),
            collector("tor2", "eth4", failed(), Value::Null),
        ]))
        .unwrap(),
        responses,
        links,
        details: on_link("tor0:p3:out", flows()),
    }
}

fn seen(link: &str) -> ObservedLink {
    ObservedLink { link: link.to_owned(), collector: "tor0".to_owned() }
}

fn on_link(link: &str, flows: Vec<FlowRow>) -> Details {
    Details {
        on_link: Some(OnLink { link: seen(link), filter: FlowFilter::default(), flows, total: 1_234 }),
        flow: None,
    }
}

fn event(ms: u64, body: Value) -> Event {
    let event = json!({
        "id": ms, "collector": "tor0", "switch": "tor0", "time": time(ms), "emitted": time(ms),
    });
    serde_json::from_value(joined(event, body)).unwrap()
}

fn congestion(change: &str, threshold: f64) -> Value {
    let rate = if change == "began" { 9.31e9 } else { 7.94e9 };
    let mut fastest =
        flow("tcp 10.0.0.17:51034 > 192.168.100.200:5201", within(4.12e9), "sequence_numbers", 0);
    fastest["dst_mac"] = json!("02:54:57:00:00:01");
    fastest["src_mac"] = json!("02:54:57:00:00:02");
    let event = json!({
        "type": "congestion", "link": "tor0:p3:out", "change": change, "threshold": threshold, "rule": 0,
        "capacity_bps": 10_000_000_000_u64, "smoothed_bps": rate, "utilisation": rate / 1e10,
        "topology_version": 1, "flows": [fastest], "omitted_flows": 11,
    });
    joined(event, within(rate))
}

fn cheetah() -> Value {
    json!({
        "type": "cheetah", "key": "tcp 10.0.0.17:51034 > 192.168.100.200:5201", "flow_start": time(2_000),
        "flow": { "src": "10.0.0.17", "dst": "192.168.100.200", "src_port": 51034, "dst_port": 5201, "protocol": 6 },
        "rate_bps": 4_000_000_000_u64, "bytes": 1_000_000,
    })
}

fn events() -> Vec<Update> {
    let happened = |ms, body| Update::Event(Box::new(event(ms, body)));
    vec![
        Update::Subscribed,
        happened(2_105, cheetah()),
        happened(2_400, congestion("began", 0.9)),
        Update::Lost(Loss::Overwritten(1_234)),
        happened(9_000, congestion("cleared", 0.8)),
        happened(10_000, json!({ "type": "collector", "state": failed() })),
        happened(11_000, json!({ "type": "collector", "state": state("running") })),
        Update::Lost(Loss::Restarted),
    ]
}

/// A reroute from tree 0 to tree 2 because of congestion.
fn decision() -> Value {
    let path =
        |tree: u8, expected: u64| json!({ "tree": tree, "expected_rate_bps": expected, "bottleneck": "x" });
    json!({
        "type": "decision", "src": "h0", "dst": "h8", "verdict": "reroute", "link": "tor0:p3:out", "flow_moves": 1,
        "rate_bps": 470_000_000_u64, "from_tree": 0, "tree": 2,
        "alternatives": [path(0, 500_000_000), path(2, 1_000_000_000)],
    })
}

fn outcome(outcome: &str, decision_to_path_ns: Option<u64>) -> Value {
    json!({
        "type": "action", "action": 1, "src": "h0", "dst": "h8", "tree": 2, "decided": time(1),
        "deadline": time(51), "outcome": outcome, "decision_to_path_ns": decision_to_path_ns, "error": null,
    })
}

fn view_of(updates: impl IntoIterator<Item = Update>) -> TopView {
    let mut view = TopView::new(Theme::ANSI, "http://127.0.0.1:9477");
    updates.into_iter().for_each(|update| view.update(update));
    view
}

fn polled(snapshot: Snapshot) -> Update {
    Update::Snapshot(Box::new(snapshot))
}

fn view() -> TopView {
    let mut view = view_of(events());
    view.update(polled(snapshot()));
    view
}

fn poll_error() -> Update {
    let error = RequestError::Unreachable("Connection refused (os error 111)".to_owned());
    Update::PollFailed { error, retry_in: Duration::from_secs(2) }
}

fn press(view: &mut TopView, code: KeyCode) -> Action {
    view.key(KeyEvent::from(code))
}

fn type_text(view: &mut TopView, text: &str) -> Vec<Action> {
    text.chars().map(|c| press(view, KeyCode::Char(c))).collect()
}

#[track_caller]
fn query(action: Action) -> Query {
    match action {
        Action::Query(query) => query,
        other => panic!("{other:?} has no query"),
    }
}

/// Compares a frame with a golden file.
#[track_caller]
fn check(name: &str, view: &mut TopView, width: u16, height: u16) {
    test_screen::check("top/golden", name, view, width, height);
}
