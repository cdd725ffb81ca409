//! Frames against golden text, and keys against what they should do.
//!
//! `THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg live_view` writes the golden files anew.

use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::style::{Color, Modifier};
use thalweg_measure::tasks::{
    Entropy, FlowName, HeavyHitters, HeavyKey, KeyDefinition, Plan, Side, SpreadKey, Spreaders, TaskList,
    TaskValue, TasksOptions,
};
use thalweg_sketch::{Bound, Estimate, Probability};
use thalweg_wire::{BitRate, Bytes, FlowKey, Nanos, Progress, TcpFlags, Timestamp};

use super::*;
use crate::terminal::View;
use crate::terminal::test_screen::{self, buffer, find, lines, screen};

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
        first: at_ms(first_ms),
        last: at_ms(62_345),
        packets: bytes.map(|bytes| bytes.div_ceil(1_400)),
        bytes,
        rate: rate.map(BitRate),
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
    flows[4].last = at_ms(61_950);
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
        frozen: None,
        counters: vec![
            counter("kernel drops", 0, Severity::Loss),
            counter("malformed", 0, Severity::Warning),
            counter("non-IP", 312, Severity::Note),
            counter("backwards", 0, Severity::Warning),
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

fn asked(action: Action) -> Query {
    match action {
        Action::Query(query) => query,
        other => panic!("{other:?} asks for nothing"),
    }
}

/// Compares a frame with `golden/NAME.txt`, or writes that.
#[track_caller]
fn check(name: &str, view: &mut LiveView, width: u16, height: u16) {
    test_screen::check("watch/live_view/golden", name, view, width, height);
}

#[test]
fn the_main_view_is_as_recorded_at_every_size() {
    for (width, height) in [(62, 12), (80, 24), (120, 40), (200, 50)] {
        check("main", &mut view(), width, height);
    }
}

#[test]
fn several_sources_losses_and_a_full_table_are_as_recorded() {
    check("several_sources", &mut view_of(several_sources()), 80, 24);
    check("several_sources", &mut view_of(several_sources()), 80, 20);
}

#[test]
fn the_view_before_the_first_packet_is_as_recorded() {
    check("empty", &mut LiveView::new(Theme::ANSI), 80, 24);
}

#[test]
fn a_screen_too_small_says_what_it_needs() {
    check("too_small", &mut view(), 59, 24);
    check("too_small", &mut view(), 80, 9);
}

#[test]
fn the_help_is_as_recorded() {
    let mut view = view();
    assert_eq!(press(&mut view, KeyCode::Char('?')), Action::None);
    check("help", &mut view, 80, 24);
}

#[test]
fn one_flow_is_as_recorded() {
    let mut view = view();
    let query = asked(press(&mut view, KeyCode::Enter));
    for n in 0..70 {
        let mut snapshot = snapshot();
        snapshot.top[0].rate =
            [BitRate(300_000_000 + n * n % 17 * 8_000_000), BitRate(2_000_000 + n * 20_000)];
        snapshot.frozen = snapshot.top.iter().find(|row| Some(row.key) == query.frozen).cloned();
        view.update(snapshot);
    }
    check("detail", &mut view, 80, 24);
    check("detail", &mut view, 120, 40);
    view.update(Snapshot { top: Vec::new(), frozen: None, ..snapshot() });
    check("detail_ended", &mut view, 80, 24);
}

#[test]
fn the_cheetahs_are_as_recorded() {
    let mut view = view();
    assert_eq!(press(&mut view, KeyCode::Char('c')), Action::None);
    check("cheetahs", &mut view, 80, 24);
    check("cheetahs", &mut view, 120, 40);
}

#[test]
fn the_tasks_are_as_recorded_at_every_size() {
    for (width, height) in [(62, 12), (80, 24), (120, 40), (200, 50)] {
        let mut view = view_of(with_tasks());
        press_quietly(&mut view, KeyCode::Char('t'));
        check("tasks", &mut view, width, height);
    }
}

#[test]
fn one_task_is_as_recorded() {
    let mut view = view_of(with_tasks());
    press_quietly(&mut view, KeyCode::Char('t'));
    press_quietly(&mut view, KeyCode::Enter);
    press_quietly(&mut view, KeyCode::Down);
    check("one_task", &mut view, 80, 24);
    press_quietly(&mut view, KeyCode::Esc);
    press_quietly(&mut view, KeyCode::Down);
    check("one_task_scalar", &mut view, 80, 24);
}

#[test]
fn without_a_flow_table_the_tasks_are_the_main_view() {
    check("no_table", &mut view_of(tasks_alone()), 80, 24);
    check("no_table", &mut view_of(tasks_alone()), 62, 12);
    let mut view = view_of(tasks_alone());
    for code in [KeyCode::Char('c'), KeyCode::Char('/'), KeyCode::Char('s'), KeyCode::Esc] {
        press_quietly(&mut view, code);
        assert!(screen(&mut view, 80, 24).contains(" tasks after 6 windows"), "{code:?}");
    }
}

#[test]
fn t_goes_to_the_tasks_and_back_if_there_are_any() {
    let mut view = view_of(with_tasks());
    press_quietly(&mut view, KeyCode::Char('t'));
    assert!(screen(&mut view, 80, 24).contains(" tasks after 6 windows"));
    press_quietly(&mut view, KeyCode::Char('t'));
    assert!(screen(&mut view, 80, 24).contains("flows by rate"));
    let mut without = super::tests::view();
    press_quietly(&mut without, KeyCode::Char('t'));
    assert!(screen(&mut without, 80, 24).contains("flows by rate"));
}

#[test]
fn a_filter_typed_wrong_is_as_recorded() {
    let mut view = view();
    type_text(&mut view, "/tcp 10.0.0.0/40");
    check("filter_error", &mut view, 80, 24);
}

#[test]
fn a_paused_view_and_an_ended_one_say_so() {
    let mut paused = view();
    assert_eq!(press(&mut paused, KeyCode::Char(' ')), Action::None);
    paused.update(Snapshot { packets: 1, top: Vec::new(), ..snapshot() });
    check("paused", &mut paused, 80, 24);
    assert_eq!(press(&mut paused, KeyCode::Char(' ')), Action::None);
    assert!(screen(&mut paused, 80, 24).contains("no flow is live"), "it shows what it has measured since");

    let mut ended = view();
    ended.end();
    check("ended", &mut ended, 80, 24);
}

#[test]
fn losses_are_red_and_only_when_there_are_any() {
    let calm = buffer(&mut view(), 80, 24);
    assert_eq!(calm[find(&calm, "kernel drops 0")].fg, Color::Reset);
    let lossy = buffer(&mut view_of(several_sources()), 80, 24);
    assert_eq!(lossy[find(&lossy, "kernel drops 1,234")].fg, Color::Red);
    assert_eq!(lossy[find(&lossy, "malformed 7")].fg, Color::Yellow);
    assert_eq!(lossy[find(&lossy, "12 evicted")].fg, Color::Yellow);
}

#[test]
fn a_counter_is_shown_whole_or_told_to_be_missing() {
    let mut snapshot = snapshot();
    let labels = ["kernel drops", "untracked", "malformed", "evicted", "backwards", "long claims", "peeled"];
    snapshot.counters = labels
        .map(|label| Counter { label, count: 123_456_789, severity: Severity::Loss })
        .into_iter()
        .chain([Counter { label: "filtered", count: 0, severity: Severity::Note }])
        .collect();
    let line = &lines(&buffer(&mut view_of(snapshot), 80, 24))[6];
    assert_eq!(
        line.trim_end(),
        " kernel drops 123,456,789 · untracked 123,456,789 · evicted 123,456,789 +4 more",
    );
}

#[test]
fn a_cheetah_is_marked_in_the_direction_in_which_it_is_one() {
    let buffer = buffer(&mut view(), 80, 24);
    assert_eq!(buffer[find(&buffer, "412M")].fg, Color::Yellow);
    assert_ne!(buffer[find(&buffer, "3.21M")].fg, Color::Yellow);
    assert_eq!(buffer[find(&buffer, "▲ udp")].fg, Color::Yellow);
}

#[test]
fn without_colours_the_frame_has_none_and_says_the_same() {
    let mut plain = LiveView::new(Theme::for_no_color(Some("1".as_ref())));
    plain.update(several_sources());
    let plain = buffer(&mut plain, 120, 40);
    assert!(plain.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert!(plain[find(&plain, "kernel drops 1,234")].modifier.contains(Modifier::BOLD));
    assert_eq!(Theme::for_no_color(Some("".as_ref())), Theme::ANSI);
    assert_eq!(Theme::for_no_color(None), Theme::ANSI);
}

#[test]
fn rates_stay_in_their_columns_whatever_they_are() {
    // Without the rates and the bar, the row of one flow.
    let rest_of_row = |rate| {
        let mut snapshot = snapshot();
        snapshot.top[0].rate = [BitRate(rate), BitRate(rate / 3)];
        let lines = lines(&buffer(&mut view_of(snapshot), 80, 80));
        let row: Vec<char> =
            lines.iter().find(|line| line.contains("10.0.0.17:51034")).unwrap().chars().collect();
        (row[..52].to_vec(), row[69..].to_vec())
    };
    for rate in [1, 999, 1_000, 999_999, 54_321_000, u64::MAX] {
        assert_eq!(rest_of_row(rate), rest_of_row(100_000_000), "{rate}");
    }
}

#[test]
fn q_and_control_c_quit_from_everywhere() {
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    for keys in ["", "?", "c", " "] {
        let mut view = view();
        type_text(&mut view, keys);
        assert_eq!(press(&mut view, KeyCode::Char('q')), Action::Quit, "{keys:?}");
    }
    let mut view = view();
    type_text(&mut view, "/q");
    assert_eq!(view.key(control_c), Action::Quit);
    let release = KeyEvent { kind: KeyEventKind::Release, ..control_c };
    assert_eq!(view.key(release), Action::None);
}

#[test]
fn a_filter_works_while_it_is_typed_and_goes_with_escape() {
    let mut view = view();
    let actions = type_text(&mut view, "/icmp");
    let asked_for: Vec<&Action> = actions.iter().filter(|action| **action != Action::None).collect();
    assert_eq!(asked_for.len(), 1, "i, ic and icm are no filters: {actions:?}");
    assert_eq!(asked(asked_for[0].clone()).filter.to_string(), "icmp");
    assert_eq!(press(&mut view, KeyCode::Enter), Action::None);
    assert_eq!(view.rows.len(), 1);
    assert!(asked(press(&mut view, KeyCode::Esc)).filter.is_empty());
    assert_eq!(view.rows.len(), flows().len());
}

#[test]
fn a_filter_typed_wrong_keeps_the_last_good_one_and_the_box_open() {
    let mut view = view();
    type_text(&mut view, "/tcp nonsense");
    assert_eq!(press(&mut view, KeyCode::Enter), Action::None);
    assert!(view.filter_error().is_some());
    assert_eq!(view.query().filter.to_string(), "tcp");
    assert!(asked(press(&mut view, KeyCode::Esc)).filter.is_empty());
    assert!(view.filter_error().is_none());
}

#[test]
fn s_cycles_the_order_and_r_reverses_it() {
    let mut view = view();
    let orders: Vec<SortBy> = (0..5).map(|_| asked(press(&mut view, KeyCode::Char('s'))).sort).collect();
    assert_eq!(orders, [SortBy::Bytes, SortBy::Packets, SortBy::Age, SortBy::Last, SortBy::Rate]);
    let fastest = view.rows[0].key;
    assert!(!asked(press(&mut view, KeyCode::Char('r'))).descending);
    assert_eq!(view.rows.last().unwrap().key, fastest, "rows are sorted at once");
}

#[test]
fn enter_stays_on_the_chosen_flow_and_escape_goes_back() {
    let mut view = view();
    for _ in 0..3 {
        press_quietly(&mut view, KeyCode::Down);
    }
    let third = view.rows[2].key;
    assert_eq!(asked(press(&mut view, KeyCode::Enter)).frozen, Some(third));
    assert_eq!(press(&mut view, KeyCode::Enter), Action::None);
    assert_eq!(asked(press(&mut view, KeyCode::Esc)).frozen, None);
    assert_eq!(press(&mut view, KeyCode::Esc), Action::None);
}

#[test]
fn a_cheetah_is_frozen_on_from_its_list_and_escape_goes_back_there() {
    let mut view = view();
    press_quietly(&mut view, KeyCode::Char('c'));
    press_quietly(&mut view, KeyCode::End);
    assert_eq!(asked(press(&mut view, KeyCode::Enter)).frozen, Some(cheetahs()[2].key));
    assert_eq!(asked(press(&mut view, KeyCode::Esc)).frozen, None);
    assert!(screen(&mut view, 80, 24).contains("cheetahs newest first"));
    press_quietly(&mut view, KeyCode::Esc);
    assert!(screen(&mut view, 80, 24).contains("flows by rate"));
}

#[test]
fn a_flow_frozen_on_while_paused_goes_on_after_the_pause() {
    let mut view = view();
    press_quietly(&mut view, KeyCode::Char(' '));
    assert!(matches!(press(&mut view, KeyCode::Enter), Action::Query(_)));
    view.update(Snapshot { top: Vec::new(), ..snapshot() });
    assert!(screen(&mut view, 80, 24).contains("live"), "what is paused stands still");
    press_quietly(&mut view, KeyCode::Char(' '));
    assert!(screen(&mut view, 80, 24).contains("gone from the table"));
}

fn press_quietly(view: &mut LiveView, code: KeyCode) {
    assert_eq!(press(view, code), Action::None);
}

/// The rows whose place on the screen is reversed.
fn selected_lines(buffer: &Buffer) -> Vec<String> {
    let reversed = |y: &usize| buffer[(2, *y as u16)].modifier.contains(Modifier::REVERSED);
    lines(buffer)
        .into_iter()
        .enumerate()
        .filter(|(y, _)| *y > 7 && *y < 23 && reversed(y))
        .map(|(_, l)| l)
        .collect()
}

#[test]
fn the_selection_follows_its_flow_when_rows_change_places() {
    let mut view = view();
    press_quietly(&mut view, KeyCode::Char('j'));
    press_quietly(&mut view, KeyCode::Char('j'));
    let chosen = view.rows[1].key;
    let mut next = snapshot();
    next.top.iter_mut().find(|row| row.key == chosen).unwrap().rate = [BitRate(1); 2];
    view.update(next);
    let selected = selected_lines(&buffer(&mut view, 80, 24));
    assert_eq!(selected.len(), 1);
    assert!(selected[0].contains("udp"), "{selected:?}");
}

fn any_key() -> impl Strategy<Value = KeyCode> {
    let letters =
        prop::sample::select("?h /srSctjkgG1.:x".chars().collect::<Vec<_>>()).prop_map(KeyCode::Char);
    let named = prop::sample::select(vec![
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::Backspace,
        KeyCode::Left,
        KeyCode::Tab,
    ]);
    prop_oneof![letters, named]
}

fn any_snapshot() -> impl Strategy<Value = Snapshot> {
    let extreme = |mut snapshot: Snapshot| {
        let most = u64::MAX;
        for row in &mut snapshot.top {
            (row.rate, row.bytes, row.packets) = ([BitRate(most); 2], [most; 2], [most; 2]);
            (row.first, row.last) = (Timestamp(most), Timestamp(0));
        }
        snapshot.bytes = Bytes(most);
        (snapshot.packets, snapshot.packet_rate, snapshot.bit_rate) = (most, f64::MAX, BitRate(most));
        (snapshot.flows_live, snapshot.flow_capacity, snapshot.flows_ended) = (most, 1, most);
        (snapshot.now, snapshot.history_slice) = (Timestamp(most), Nanos(most));
        snapshot.counters.iter_mut().for_each(|counter| counter.count = most);
        snapshot
    };
    prop_oneof![
        Just(snapshot()),
        Just(several_sources()),
        Just(with_tasks()),
        Just(tasks_alone()),
        Just(Snapshot::default()),
        Just(extreme(several_sources())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_key_snapshot_or_size_makes_it_panic(
        steps in prop::collection::vec((any_key(), any_snapshot(), 0..230u16, 0..60u16), 1..12),
    ) {
        let mut view = LiveView::new(Theme::ANSI);
        for (code, snapshot, width, height) in steps {
            let action = press(&mut view, code);
            prop_assert!(action != Action::Quit);
            if let Action::Query(query) = action {
                prop_assert_eq!(&query, view.query());
            }
            view.update(snapshot);
            buffer(&mut view, width, height);
        }
    }
}
