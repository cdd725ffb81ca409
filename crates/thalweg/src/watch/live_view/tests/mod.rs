//! Tests of frames and keys.
//!
//! `THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg live_view` rewrites the golden files.

mod groups;
mod keys;
mod mouse;
mod random_input;
mod screens;

use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::style::{Color, Modifier};
use thalweg_measure::tasks::{
    Entropy, FlowName, HeavyHitters, HeavyKey, KeyDefinition, Plan, Side, SpreadKey, Spreaders, TaskList,
    TaskValue, TasksOptions,
};
use thalweg_sketch::{Bound, Estimate, Probability};
use thalweg_watch::groups::{GroupList, Grouping};
use thalweg_watch::snapshot::groups_of;
use thalweg_watch::traffic::Traffic;
use thalweg_wire::{BitRate, Bytes, FlowKey, Nanos, Progress, TcpFlags, Timestamp};

use super::view::Pane;
use super::*;
use crate::terminal::View;
use crate::terminal::test_screen::{self, buffer, find, is_part_of, lines, screen};

const START: Timestamp = Timestamp(1_795_255_200_000_000_000);

fn at_ms(ms: u64) -> Timestamp {
    START + Nanos::from_millis(ms)
}

fn key(text: &str) -> FlowKey {
    text.parse().unwrap()
}

fn flow(text: &str, first_ms: u64, rate: [u64; 2], bytes: [u64; 2]) -> FlowRow {
    let [syn_ack, data] = [TcpFlags::SYN | TcpFlags::ACK, TcpFlags::PSH | TcpFlags::ACK];
    FlowRow {
        key: key(text),
        traffic: Traffic {
            first: at_ms(first_ms),
            last: at_ms(62_345),
            packets: bytes.map(|bytes| bytes.div_ceil(1_400)),
            bytes,
            rate: rate.map(BitRate),
            packet_rate: rate.map(|rate| rate / 11_200),
            flows: 1,
        },
        tcp_flags: [syn_ack | data, syn_ack],
        cheetah: rate.map(|rate| rate > 50_000_000),
    }
}

fn flows() -> Vec<FlowRow> {
    let mut flows = vec![
        flow(
            "tcp 10.0.0.17:51034 > 192.168.100.200:5201",
            2_000,
            [412_000_000, 3_210_000],
            [3_120_000_000, 24_000_000],
        ),
        flow(
            "udp [2001:db8:85a3::8a2e:370:7334]:40000 > [2a00:1450:4001:810::200e]:443",
            60_100,
            [1_100_000, 187_000_000],
            [412_000, 52_000_000],
        ),
        flow("tcp 10.0.0.18:40022 > 10.0.0.1:22", 100, [48_300, 9_100], [1_234_567, 987_654]),
        flow("icmp 10.0.0.17:4711 > 10.0.0.1:4711", 30_000, [672, 672], [2_688, 2_688]),
        flow("udp 10.0.0.19:53122 > 10.0.0.1:53", 61_900, [0, 0], [74, 210]),
        flow("esp 203.0.113.7 > 198.51.100.250", 5_000, [23_000_000, 24_500_000], [160_000_000, 171_000_000]),
    ];
    flows[4].traffic.last = at_ms(61_950);
    for n in 0..40 {
        let name = format!("tcp 172.16.{n}.{}:{} > 10.0.0.80:443", n * 5, 32_768 + n * 613);
        let share = 9_000_000 / (n + 1);
        flows.push(flow(&name, 1_000 * n, [share / 30, share], [share / 7, share * 4]));
    }
    flows
}

fn cheetahs() -> Vec<CheetahRow> {
    let row = |text, first, detected, rate, bytes, ended: Option<u64>| CheetahRow {
        key: key(text),
        first: at_ms(first),
        detected: at_ms(detected),
        rate: BitRate(rate),
        bytes: Bytes(bytes),
        ended: ended.map(at_ms),
    };
    vec![
        row(
            "udp [2a00:1450:4001:810::200e]:443 > [2001:db8:85a3::8a2e:370:7334]:40000",
            60_100,
            60_187,
            91_000_000,
            52_000_000,
            None,
        ),
        row("tcp 10.0.0.80:443 > 172.16.4.20:35220", 4_000, 31_004, 61_200_000, 9_400_000, Some(33_250)),
        row("tcp 10.0.0.17:51034 > 192.168.100.200:5201", 2_000, 2_105, 64_000_000, 3_120_000_000, None),
    ]
}

fn snapshot() -> Snapshot {
    let wave = |n: u64| 400_000_000 + 3_000_000 * (n * n * 7 % 101);
    let history = (0..120)
        .map(|n| RateSample { bit_rate: BitRate(wave(n)), packet_rate: wave(n + 3) as f64 / 7_200.0 });
    let counter = |label, count, severity| Counter { label, count, severity };
    let mut top = flows();
    top.sort_by(|a, b| Query::default().compare(a, b));
    Snapshot {
        now: at_ms(62_345),
        start: START,
        packets: 4_812_345,
        bytes: Bytes(3_612_345_678),
        packet_rate: 81_249.0,
        bit_rate: BitRate(642_000_000),
        history: history.collect(),
        history_slice: Nanos::from_millis(500),
        flows_live: top.len() as u64,
        flow_capacity: 128,
        flows_ended: 15_234,
        evicted: 0,
        cheetahs_live: 2,
        cheetahs_total: 3,
        cheetahs: cheetahs(),
        matching: top.len() as u64,
        top,
        hosts: GroupList::default(),
        pairs: GroupList::default(),
        capture: None,
        tags: Some(Default::default()),
        names: Default::default(),
        pinned: None,
        counters: vec![
            counter("kernel drops", 0, Severity::Loss),
            counter("malformed", 0, Severity::Warning),
            counter("non-IP", 312, Severity::Note),
            counter("out of order", 0, Severity::Warning),
        ],
        sources: vec![SourceRow { name: "eth0".to_owned(), ..SourceRow::default() }],
        tasks: None,
        no_table: false,
        ended: false,
    }
}

fn task_row(spec: &str, latest: Option<TaskValue>, sampled: Option<Probability>) -> TaskRow {
    let list: TaskList = spec.parse().unwrap();
    let options = TasksOptions { tasks: list.0, ..TasksOptions::default() };
    let planned = Plan::new(options).unwrap().tasks()[0];
    let figures = match latest {
        Some(TaskValue::Change(_)) | None => Vec::new(),
        _ => (0..90).map(|n: u32| f64::from(40 + n * n * 7 % 61)).collect(),
    };
    let (start, end) = (at_ms(50_000), at_ms(60_000));
    let latest = latest.map(|value| value.table(planned.spec.weight()));
    TaskRow { spec: planned.spec, size: planned.size, latest, start, end, sampled, figures }
}

fn heavy_key(text: &str, packets: f64, bound: Bound) -> HeavyKey {
    let flow = key(text);
    HeavyKey {
        key: KeyDefinition::FiveTuple.of(&flow),
        name: FlowName::Flow(flow),
        estimate: Estimate { value: packets, bound },
        share: packets / 812_345.0,
    }
}

fn tasks() -> TasksView {
    let within = |value: f64, off: f64| Estimate::within(value, value - off, value + off, 0.967);
    let interval = |value, off| within(value, off).bound;
    let mut keys = vec![
        heavy_key("tcp 10.0.0.17:51034 > 192.168.100.200:5201", 254_321.0, interval(254_321.0, 2_100.0)),
        heavy_key(
            "udp [2001:db8:85a3::8a2e:370:7334]:40000 > [2a00:1450:4001:810::200e]:443",
            98_765.0,
            interval(98_765.0, 2_100.0),
        ),
        heavy_key("esp 203.0.113.7 > 198.51.100.250", 23_000.0, Bound::NotConverged),
    ];
    for n in 0..40 {
        let name = format!("tcp 172.16.{n}.{}:{} > 10.0.0.80:443", n * 5, 32_768 + n * 613);
        let packets = f64::from(20_000 / (n + 1));
        keys.push(heavy_key(&name, packets, interval(packets, 2_100.0)));
    }
    let heavy = HeavyHitters { total: 812_345, keys, room: 256 };
    let bits = Estimate { value: 11.375, bound: Bound::Unknown };
    let scan: std::net::IpAddr = "198.51.100.7".parse().unwrap();
    let spreader = SpreadKey {
        key: KeyDefinition::Address(Side::Source).of(&key("tcp 198.51.100.7:1 > 10.0.0.1:80")),
        name: FlowName::Address(scan),
        peers: within(14_200.0, 900.0),
    };
    let spread = Spreaders { keys: vec![spreader], missed_up_to: 23 };
    let sixteenth = Some(Probability::at_most(1.0 / 16.0));
    TasksView {
        rows: vec![
            task_row("heavy:0.1%", Some(TaskValue::Heavy(heavy)), sixteenth),
            task_row(
                "entropy:src",
                Some(TaskValue::Entropy(Entropy { bits, normalised: Some(0.81) })),
                Some(Probability::ONE),
            ),
            task_row("distinct", Some(TaskValue::Distinct(within(12_425.0, 131.0))), None),
            task_row("change:30s", None, None),
            task_row("spread:src>1000", Some(TaskValue::Spread(spread)), None),
        ],
        window: Nanos::from_secs(10),
        windows: 6,
        empty_windows: 2,
        packets: 812_345,
        memory: Bytes(2_091_008),
        memory_bound: Bytes(2 << 20),
    }
}

fn with_tasks() -> Snapshot {
    Snapshot { tasks: Some(tasks()), ..snapshot() }
}

/// As with `--no-table`.
fn tasks_alone() -> Snapshot {
    let full = with_tasks();
    Snapshot {
        no_table: true,
        top: Vec::new(),
        matching: 0,
        cheetahs: Vec::new(),
        flows_live: 0,
        flow_capacity: 0,
        flows_ended: 0,
        cheetahs_live: 0,
        cheetahs_total: 0,
        ..full
    }
}

/// As in answer to queries for hosts and for pairs.
fn with_groups() -> Snapshot {
    let snapshot = snapshot();
    let list = |grouping| groups_of(&snapshot.top, &Query { grouping, ..Query::default() });
    let (hosts, pairs) = (list(Grouping::Host), list(Grouping::Pair));
    Snapshot { hosts, pairs, ..snapshot }
}

fn mouse(kind: MouseEventKind, column: u16, row: u16) -> MouseEvent {
    MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }
}

fn several_sources() -> Snapshot {
    let mut snapshot = snapshot();
    let source = |name: &str, state| SourceRow { name: name.to_owned(), state, ..SourceRow::default() };
    snapshot.sources = vec![
        SourceRow { kernel_drops: 1_234, freezes: 3, ..source("eth0", SourceState::Live) },
        SourceRow {
            progress: Some(Progress { done: 1_204_000_000, total: 2_800_000_000 }),
            ..source("afternoon.pcap.zst", SourceState::Replaying)
        },
        source("wlan0", SourceState::Failed("the interface went down".to_owned())),
        source("morning.pcap", SourceState::Ended),
    ];
    snapshot.counters[0].count = 1_234;
    snapshot.counters[1].count = 7;
    snapshot.evicted = 12;
    snapshot.flows_live = 127;
    snapshot
}

fn view() -> LiveView {
    view_of(snapshot())
}

fn view_of(snapshot: Snapshot) -> LiveView {
    let mut view = LiveView::new(Theme::ANSI);
    view.update(snapshot);
    view
}

fn press(view: &mut LiveView, code: KeyCode) -> Action {
    view.key(KeyEvent::from(code))
}

fn type_text(view: &mut LiveView, text: &str) -> Vec<Action> {
    text.chars().map(|c| press(view, KeyCode::Char(c))).collect()
}

fn query_of(action: Action) -> Query {
    match action {
        Action::Query(query) => query,
        other => panic!("{other:?} has no query"),
    }
}

/// Compares a frame with a golden file.
#[track_caller]
fn check(name: &str, view: &mut LiveView, width: u16, height: u16) {
    test_screen::check("watch/live_view/golden", name, view, width, height);
}

fn press_without_query(view: &mut LiveView, code: KeyCode) {
    assert_eq!(press(view, code), Action::None);
}
