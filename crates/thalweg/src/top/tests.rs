//! Frames against golden text, keys against what they should do, and what a daemon says against what is made of it.
//!
//! `THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg top` writes the golden files anew.

use std::io::{self, Read};
use std::time::Duration;

use proptest::prelude::*;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::style::{Color, Modifier};
use serde_json::{Value, json};
use thalweg_api::client::server_sent::Decoder;
use thalweg_api::client::{Loss, RequestError, subscription};
use thalweg_api::{Event, Flows, Link, Links};
use thalweg_wire::{Nanos, Timestamp};

use super::links_table;
use super::model::{Details, FlowRow, News, OnLink, Query, SeenLink, Snapshot};
use super::view::{Action, TopView};
use crate::terminal::test_screen::{self, buffer, find, lines, screen};
use crate::terminal::{Theme, View};

const START: Timestamp = Timestamp(1_795_255_200_000_000_000);

fn moment(ms: u64) -> Value {
    let time = START + Nanos::from_millis(ms);
    json!({ "time": time.to_string(), "time_ns": time.0 })
}

fn within(value: f64) -> Value {
    json!({ "value": value, "lower": value * 0.985, "upper": value * 1.02, "confidence": 0.95, "bound": "interval" })
}

fn at_least(value: f64) -> Value {
    json!({ "value": value, "lower": value, "upper": null, "confidence": 1.0, "bound": "lower_bound" })
}

fn link(switch: &str, port: u16, way: &str, peer: &str, utilisation: f64) -> Value {
    let rate = utilisation * 1e10;
    json!({
        "link": format!("{switch}:p{port}:{way}"), "collector": switch, "switch": switch, "port": port, "way": way,
        "peer": if peer.is_empty() { Value::Null } else { peer.into() },
        "capacity_bps": 10_000_000_000_u64,
        "rate_bps": if port == 2 { at_least(rate) } else { within(rate) },
        "smoothed_bps": rate, "utilisation": utilisation,
        "flows": (utilisation * 100.0).ceil() as u32,
        "changed": if utilisation > 0.0 { moment(62_000 + 20 * u64::from(port)) } else { json!({"time": "", "time_ns": 0}) },
    })
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
    let answered = json!([
        { "collector": "tor0", "at": moment(62_345), "error": null },
        { "collector": "tor1", "at": moment(62_100), "error": null },
        { "collector": "tor2", "at": null, "error": "the collector does not answer" },
    ]);
    serde_json::from_value(json!({ "answered": answered, "links": links })).unwrap()
}

fn flow(key: &str, rate: Value, basis: &str, repeated: u64) -> Value {
    let name = json!({ "src": "10.0.0.1", "dst": "10.0.0.2", "src_port": 1, "dst_port": 2, "protocol": 6 });
    let span = json!({ "start": moment(62_344), "end": moment(62_345) });
    json!({
        "flow": name, "key": key, "collector": "tor0", "basis": basis,
        "span": if rate.is_null() { Value::Null } else { span },
        "cheetah": rate["value"].as_f64().is_some_and(|rate| rate > 2e9), "rate_bps": rate,
        "input": "tor0:p1:in", "output": "tor0:p3:out",
        "first": moment(2_000), "last": moment(62_345), "samples": 48_123, "sampled_bytes": 70_000_000,
        "repeated_bytes": repeated, "reordered": 12,
    })
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
        flow("tcp 10.0.0.19:53122 > 10.0.0.1:80", Value::Null, "nothing", 0),
    ];
    for n in 0..40_u32 {
        let key = format!("tcp 172.16.{n}.{}:{} > 10.0.0.80:443", n * 5, 32_768 + n * 613);
        let repeated = 100 * u64::from(n);
        flows.push(flow(&key, within(9e7 / f64::from(n + 1)), "sequence_numbers", repeated));
    }
    let flows: Flows =
        serde_json::from_value(json!({ "answered": [], "total": 1_234, "flows": flows })).unwrap();
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
    json!({ "name": "failed", "error": "no such interface", "retry_at": moment(70_000) })
}

fn snapshot() -> Snapshot {
    let counts = |drops: u64, ratio: Value| {
        json!({
            "frames": 4_812_345, "packets": 4_800_000, "kernel_drops": drops, "flows": 10_234,
            "flow_capacity": 65_536, "sampling_ratio": ratio, "events": 12, "memory_bytes": 12_000_000,
        })
    };
    let Links { answered, links } = links();
    let health = json!({ "status": "ok", "name": "thalweg", "version": "0.4.0", "started": moment(0) });
    Snapshot {
        health: serde_json::from_value(health).unwrap(),
        collectors: serde_json::from_value(json!([
            collector("tor0", "eth2", state("running"), counts(0, within(0.31))),
            collector("tor1", "eth3", state("running"), counts(1_234, Value::Null)),
            collector("tor2", "eth4", failed(), Value::Null),
        ]))
        .unwrap(),
        answered,
        links,
        details: on_link("tor0:p3:out", flows()),
    }
}

fn seen(link: &str) -> SeenLink {
    SeenLink { link: link.to_owned(), collector: "tor0".to_owned() }
}

fn on_link(link: &str, flows: Vec<FlowRow>) -> Details {
    Details { on_link: Some(OnLink { link: seen(link), flows, total: 1_234 }), flow: None }
}

fn event(ms: u64, body: Value) -> Event {
    let moment = moment(ms);
    let mut event = json!({
        "id": ms, "collector": "tor0", "switch": "tor0", "time": moment["time"], "time_ns": moment["time_ns"],
        "emitted": moment,
    });
    event.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
    serde_json::from_value(event).unwrap()
}

fn crossing(way: &str, threshold: f64) -> Value {
    let rate = if way == "upwards" { 9.31e9 } else { 7.94e9 };
    let mut fastest =
        flow("tcp 10.0.0.17:51034 > 192.168.100.200:5201", within(4.12e9), "sequence_numbers", 0);
    fastest["destination_mac"] = json!("02:54:57:00:00:01");
    fastest["source_mac"] = json!("02:54:57:00:00:02");
    json!({
        "type": "link", "link": "tor0:p3:out", "crossing": way, "threshold": threshold, "rule": 0,
        "capacity_bps": 10_000_000_000_u64, "rate_bps": within(rate), "smoothed_bps": rate, "utilisation": rate / 1e10,
        "version": 1, "flows": [fastest], "flows_left_out": 11,
    })
}

fn cheetah() -> Value {
    json!({
        "type": "cheetah", "key": "tcp 10.0.0.17:51034 > 192.168.100.200:5201", "first": moment(2_000),
        "flow": { "src": "10.0.0.17", "dst": "192.168.100.200", "src_port": 51034, "dst_port": 5201, "protocol": 6 },
        "flight_rate_bps": 4_000_000_000_u64, "bytes": 1_000_000,
    })
}

fn events() -> Vec<News> {
    let happened = |ms, body| News::Event(Box::new(event(ms, body)));
    vec![
        News::Subscribed,
        happened(2_105, cheetah()),
        happened(2_400, crossing("upwards", 0.9)),
        News::Lost(Loss::TooSlow(1_234)),
        happened(9_000, crossing("downwards", 0.8)),
        happened(10_000, json!({ "type": "collector", "state": failed() })),
        happened(11_000, json!({ "type": "collector", "state": state("running") })),
        News::Lost(Loss::OtherRun),
    ]
}

/// Link 0 is congested, and a flow is sent from there by address 2.
fn decision() -> Value {
    let way =
        |address: u8, expected: u64| json!({ "address": address, "expected_bps": expected, "tightest": "x" });
    json!({
        "type": "decision", "source": "h0", "destination": "h8", "verdict": "goes", "link": "tor0:p3:out",
        "rate_bps": 470_000_000_u64, "from": 0, "to": 2,
        "alternatives": [way(0, 500_000_000), way(2, 1_000_000_000)],
    })
}

fn outcome(outcome: &str, took_ns: Option<u64>) -> Value {
    json!({
        "type": "action", "action": 1, "source": "h0", "destination": "h8", "address": 2, "decided": moment(1),
        "deadline": moment(51), "outcome": outcome, "took_ns": took_ns, "error": null,
    })
}

fn view_of(news: impl IntoIterator<Item = News>) -> TopView {
    let mut view = TopView::new(Theme::ANSI, "http://127.0.0.1:9477");
    news.into_iter().for_each(|news| view.update(news));
    view
}

fn asked(snapshot: Snapshot) -> News {
    News::Asked(Box::new(snapshot))
}

fn view() -> TopView {
    let mut view = view_of(events());
    view.update(asked(snapshot()));
    view
}

fn trouble() -> News {
    let error = RequestError::Unreachable("Connection refused (os error 111)".to_owned());
    News::Trouble { error, retry_in: Duration::from_secs(2) }
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
        other => panic!("{other:?} asks for nothing"),
    }
}

/// Compares a frame with `golden/NAME.txt`, or writes that.
#[track_caller]
fn check(name: &str, view: &mut TopView, width: u16, height: u16) {
    test_screen::check("top/golden", name, view, width, height);
}

#[test]
fn the_links_are_as_recorded_at_every_size() {
    for (width, height) in [(60, 10), (80, 24), (120, 40), (200, 50)] {
        check("links", &mut view(), width, height);
    }
}

#[test]
fn one_link_is_as_recorded() {
    let mut view = view();
    let wanted = query(press(&mut view, KeyCode::Enter));
    assert_eq!(wanted.link, Some(seen("tor0:p3:out")));
    assert_eq!(press(&mut view, KeyCode::Down), Action::None);
    check("one_link", &mut view, 80, 24);
    check("one_link", &mut view, 120, 40);
}

#[test]
fn one_flow_is_as_recorded() {
    let mut view = view();
    query(press(&mut view, KeyCode::Enter));
    let key = query(press(&mut view, KeyCode::Enter)).flow.unwrap();
    assert_eq!(key.to_string(), "tcp 10.0.0.17:51034 > 192.168.100.200:5201");
    for n in 0..60_u32 {
        let rate = within(3e9 + f64::from(n * n % 17) * 8e7);
        let json = flow(&key.to_string(), rate, "sequence_numbers", 812_345);
        let seen = FlowRow { key, flow: serde_json::from_value(json).unwrap() };
        view.update(News::Chosen(Box::new(Details { flow: Some(vec![seen]), ..Details::default() })));
    }
    check("one_flow", &mut view, 80, 24);
    view.update(News::Chosen(Box::new(Details { flow: Some(Vec::new()), ..Details::default() })));
    assert!(screen(&mut view, 80, 24).contains("no collector sees it any more"));
    assert_eq!(query(press(&mut view, KeyCode::Esc)).flow, None);
}

#[test]
fn the_events_and_the_help_are_as_recorded() {
    let mut view = view();
    assert_eq!(press(&mut view, KeyCode::Char('e')), Action::None);
    check("events", &mut view, 80, 24);
    assert_eq!(press(&mut view, KeyCode::Char('?')), Action::None);
    check("help", &mut view, 80, 24);
}

#[test]
fn a_reroute_and_what_came_of_it_have_a_line_each_and_what_is_told_again_has_none() {
    let happened = |ms, body| News::Event(Box::new(event(ms, body)));
    let mut view = view_of([
        happened(1, decision()),
        happened(2, outcome("confirmed", Some(2_500_000))),
        happened(3, crossing("remains", 0.9)),
        happened(4, outcome("expired", None)),
    ]);
    assert_eq!(press(&mut view, KeyCode::Char('e')), Action::None);
    let screen = screen(&mut view, 140, 24);
    for line in [
        "↪ h0 > h8 goes by address 2, not 0: 1.00 Gbit/s expected there, 500 Mbit/s here; tor0:p3:out is congested",
        "✓ h0 > h8 by address 2: seen, 2.50 ms after the decision",
        "✗ h0 > h8 by address 2: not seen in time",
    ] {
        assert!(screen.contains(line), "{screen}");
    }
    assert!(!screen.contains("still"), "{screen}");
    assert!(screen.contains("─ 4"), "it is counted: {screen}");
}

#[test]
fn a_daemon_that_has_not_answered_yet_and_one_that_cannot_be_reached_are_as_recorded() {
    check("asking", &mut view_of([]), 80, 24);
    let mut gone = view();
    gone.update(trouble());
    gone.update(News::Unsubscribed {
        error: "cannot be reached: Connection refused (os error 111)".to_owned(),
        retry_in: Duration::from_millis(500),
    });
    check("unreachable", &mut gone, 80, 24);
    let cells = buffer(&mut gone, 80, 24);
    assert_eq!(cells[find(&cells, "! cannot be reached: Connection refused; again in 2 s")].fg, Color::Red);
    gone.update(asked(snapshot()));
    assert!(!screen(&mut gone, 80, 24).contains("again in 2 s"));
}

#[test]
fn a_collector_that_failed_is_red_and_says_why_and_when_it_is_tried_again() {
    let cells = buffer(&mut view(), 80, 24);
    assert_eq!(cells[find(&cells, "failed: no such interface; again at 10:01:10")].fg, Color::Red);
    assert_eq!(cells[find(&cells, ", 1,234 dropped")].fg, Color::Red);
    let small = buffer(&mut view(), 80, 12);
    assert_eq!(
        small[find(&small, "1 of 3 collectors failed")].fg,
        Color::Red,
        "without a line of its own, too"
    );
}

#[test]
fn a_link_that_two_collectors_see_is_told_apart_by_their_names() {
    let mut twice = snapshot();
    let again = |link: &Link| Link { collector: "tor0-emulated".to_owned(), ..link.clone() };
    twice.links = twice.links.iter().flat_map(|link| [link.clone(), again(link)]).collect();
    let mut view = view_of([asked(twice)]);
    check("twice", &mut view, 80, 24);
    check("twice", &mut view, 60, 12);
    check("twice", &mut view, 140, 24);
    query(press(&mut view, KeyCode::Down));
    let second = query(press(&mut view, KeyCode::Down)).link.unwrap();
    assert_eq!((second.link.as_str(), second.collector.as_str()), ("tor0:p3:out", "tor0-emulated"));
}

#[test]
fn a_link_is_green_amber_or_red_by_how_full_it_is() {
    let cells = buffer(&mut view(), 80, 24);
    for (percent, colour) in [(" 93 %", Color::Red), (" 73 %", Color::Yellow), (" 41 %", Color::Green)] {
        let (x, y) = find(&cells, percent);
        assert_eq!(cells[(x + 1, y)].fg, colour, "{percent}");
    }
}

#[test]
fn without_colours_the_frame_has_none() {
    let mut plain = TopView::new(Theme::PLAIN, "http://127.0.0.1:9477");
    events().into_iter().for_each(|news| plain.update(news));
    plain.update(asked(snapshot()));
    let plain = buffer(&mut plain, 120, 40);
    assert!(plain.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert!(plain[find(&plain, "failed: no such")].modifier.contains(Modifier::BOLD));
}

#[test]
fn the_flows_are_those_of_the_chosen_link_and_never_of_the_one_before() {
    let mut view = view();
    assert_eq!(query(press(&mut view, KeyCode::Down)).link, Some(seen("tor0:p3:out")));
    assert_eq!(query(press(&mut view, KeyCode::Down)).link, Some(seen("tor0:p1:in")));
    let text = screen(&mut view, 80, 24);
    assert!(
        text.contains("flows on tor0:p1:in")
            && text.contains("asking")
            && !text.contains("192.168.100.200:5201  ")
    );
    view.update(News::Chosen(Box::new(on_link("tor0:p1:in", flows()))));
    assert!(screen(&mut view, 80, 24).contains("10.0.0.17:51034"));
    // An answer to the question before, which was on its way.
    view.update(News::Chosen(Box::new(on_link("tor0:p3:out", flows()))));
    assert!(screen(&mut view, 80, 24).contains("asking"));
}

#[test]
fn the_cursor_follows_its_link_when_links_change_places() {
    let mut view = view();
    query(press(&mut view, KeyCode::Down));
    query(press(&mut view, KeyCode::Down));
    let mut next = snapshot();
    next.links.iter_mut().find(|link| link.link == "tor0:p1:in").unwrap().utilisation = 0.1;
    view.update(asked(next));
    assert_eq!(view.chosen_link(), Some(&seen("tor0:p1:in")));
}

#[test]
fn links_are_sorted_and_filtered_by_what_is_typed() {
    let mut view = view();
    let first = |view: &TopView| view.link_rows[0].link.clone();
    let firsts: Vec<String> = (0..5)
        .map(|_| {
            assert_eq!(press(&mut view, KeyCode::Char('s')), Action::None);
            first(&view)
        })
        .collect();
    assert_eq!(firsts, ["tor0:p3:out", "tor0:p3:out", "tor1:p39:in", "tor0:p0:in", "tor0:p3:out"]);
    assert_eq!(press(&mut view, KeyCode::Char('r')), Action::None);
    assert_eq!(first(&view), "tor0:p0:out");
    type_text(&mut view, "/HOST1 in");
    assert!(view.link_rows.iter().all(|row| row.peer.as_deref().unwrap().starts_with("host1")));
    assert_eq!(view.link_rows.len(), 11);
    assert!(view.chosen_link().is_some(), "the flows below are those of a link that is seen");
    assert_eq!(press(&mut view, KeyCode::Enter), Action::None);
    assert!(
        screen(&mut view, 80, 24).contains("filter: host1 in")
            && screen(&mut view, 80, 24).contains(" 11 of 39")
    );
    assert_eq!(press(&mut view, KeyCode::Esc), Action::None);
    assert_eq!(view.link_rows.len(), 39);
    query(press(&mut view, KeyCode::Esc));
    assert_eq!(view.chosen_link(), None);
}

#[test]
fn flows_are_filtered_as_in_watch_and_what_is_wrong_keeps_the_last_filter() {
    let mut view = view();
    query(press(&mut view, KeyCode::Enter));
    type_text(&mut view, "/udp");
    assert_eq!(view.flow_rows.len(), 1);
    type_text(&mut view, " nonsense");
    assert_eq!(press(&mut view, KeyCode::Enter), Action::None);
    check("filter_error", &mut view, 80, 24);
    assert_eq!(view.flow_rows.len(), 1);
    assert_eq!(press(&mut view, KeyCode::Esc), Action::None);
    assert_eq!(view.flow_rows.len(), flows().len());
}

#[test]
fn a_paused_view_stands_still_and_shows_what_came_meanwhile_afterwards() {
    let mut view = view();
    assert_eq!(press(&mut view, KeyCode::Char(' ')), Action::None);
    let before = screen(&mut view, 80, 24);
    assert!(before.contains(" PAUSED "));
    view.update(asked(Snapshot { links: Vec::new(), ..snapshot() }));
    view.update(News::Event(Box::new(event(20_000, cheetah()))));
    view.update(trouble());
    assert_eq!(screen(&mut view, 80, 24), before);
    assert_eq!(press(&mut view, KeyCode::Char(' ')), Action::None);
    let after = screen(&mut view, 80, 24);
    assert!(
        after.contains("10:00:20.000000") && after.contains("Connection refused") && !after.contains("host0")
    );
}

#[test]
fn q_and_control_c_quit_from_everywhere() {
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    for keys in ["", "?", "e", " "] {
        let mut view = view();
        type_text(&mut view, keys);
        assert_eq!(press(&mut view, KeyCode::Char('q')), Action::Quit, "{keys:?}");
    }
    let mut view = view();
    type_text(&mut view, "/q");
    assert_eq!(view.key(control_c), Action::Quit);
    assert_eq!(view.key(KeyEvent { kind: KeyEventKind::Release, ..control_c }), Action::None);
}

#[test]
fn events_are_kept_within_a_bound() {
    let mut view = view();
    for ms in 0..3_000 {
        view.update(News::Event(Box::new(event(ms, cheetah()))));
    }
    assert_eq!(view.shown().events.len(), 1_000);
    assert_eq!(view.shown().came, 3_005);
    assert!(screen(&mut view, 80, 24).contains(" 3,005, 1,234 lost"));
}

/// A stream that comes in pieces, and ends or breaks.
struct Pieces(Vec<io::Result<Vec<u8>>>);

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return Ok(0);
        }
        let piece = self.0.remove(0)?;
        buffer[..piece.len()].copy_from_slice(&piece);
        Ok(piece.len())
    }
}

/// What is told of a stream, and why it ended.
fn heard(decoder: &mut Decoder, pieces: Vec<io::Result<Vec<u8>>>) -> (Vec<News>, String) {
    let (tell, news) = crossbeam_channel::unbounded();
    let ended = subscription::take(Pieces(pieces), decoder, &mut |heard| tell.send(heard.into()).is_ok());
    let ended = ended.unwrap();
    (news.try_iter().collect(), ended)
}

fn sent(id: &str, event: &str, data: &impl serde::Serialize) -> String {
    format!("id: {id}\nevent: {event}\ndata: {}\n\n", serde_json::to_string(data).unwrap())
}

#[test]
fn a_stream_in_pieces_gives_its_events_and_goes_on_after_the_last_whole_one() {
    let (first, second) = (event(1, cheetah()), event(2, crossing("upwards", 0.9)));
    let stream = sent("1f-1", "cheetah", &first) + &sent("1f-2", "link", &second);
    let (all, cut) = stream.split_at(stream.len() - 20);
    let mut pieces: Vec<_> = all.as_bytes().chunks(7).map(|piece| Ok(piece.to_vec())).collect();
    pieces.push(Err(io::ErrorKind::Interrupted.into()));
    pieces.push(Err(io::Error::other("connection reset")));
    let mut decoder = Decoder::default();
    let (news, ended) = heard(&mut decoder, pieces);
    assert_eq!(ended, "connection reset");
    assert!(matches!(&news[..], [News::Event(event)] if **event == first), "{news:?}");
    assert_eq!(decoder.last_id(), Some("1f-1"), "what was cut off is asked for again");
    decoder.reconnect();
    assert!(!cut.is_empty());
    let (news, ended) = heard(&mut decoder, vec![Ok(sent("1f-2", "link", &second).into_bytes())]);
    assert!(matches!(&news[..], [News::Event(event)] if **event == second), "{news:?}");
    assert_eq!(ended, "the daemon has closed the connection");
    assert_eq!(decoder.last_id(), Some("1f-2"));
}

#[test]
fn what_was_lost_or_not_understood_is_told() {
    let lost = json!({ "type": "lost", "count": 7, "total": 9, "last": 12 });
    let other_run = json!({ "type": "lost", "count": null, "total": 0, "last": 0 });
    let stream = sent("1-12", "lost", &lost)
        + &sent("2-0", "lost", &other_run)
        + &sent("2-1", "earthquake", &json!({ "type": "earthquake" }))
        + "data: no JSON\n\n";
    let (news, _) = heard(&mut Decoder::default(), vec![Ok(stream.into_bytes())]);
    let losses: Vec<Loss> = news
        .iter()
        .map(|news| match news {
            News::Lost(loss) => *loss,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(losses, [Loss::TooSlow(7), Loss::OtherRun, Loss::NotUnderstood(1), Loss::NotUnderstood(1)]);
    let mut view = view_of(news);
    assert!(screen(&mut view, 80, 24).contains("9 lost"), "of another run nobody knows how many");
}

#[test]
fn the_table_has_the_links_by_utilisation_and_who_did_not_answer() {
    let table = links_table::table(&links());
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "link         to                       utilisation          rate           of  flows  changed                  collector",
            "tor0:p3:out  spine-of-the-second-pod       93.1 %   9.31 Gbit/s  10.0 Gbit/s     94  2026-11-21 10:01:02.060  tor0",
            "tor0:p1:in   host1                         73.1 %   7.31 Gbit/s  10.0 Gbit/s     74  2026-11-21 10:01:02.020  tor0",
        ]
    );
    assert!(table.contains("≥ 380 Mbit/s"), "{table}");
    assert!(lines.iter().any(|line| line.starts_with("tor0:p0:out") && line.contains("never")));
    assert_eq!(lines.last(), Some(&"tor2 does not answer: the collector does not answer"));
}

fn any_key() -> impl Strategy<Value = KeyCode> {
    let letters =
        prop::sample::select("?h /srSejkgG1.:x".chars().collect::<Vec<_>>()).prop_map(KeyCode::Char);
    let named = prop::sample::select(vec![
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::PageDown,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::Backspace,
        KeyCode::Left,
    ]);
    prop_oneof![letters, named]
}

fn any_news() -> impl Strategy<Value = News> {
    let extreme = |mut snapshot: Snapshot| {
        for link in &mut snapshot.links {
            (link.utilisation, link.rate_bps.value) = (f64::MAX, -1.0);
            (link.capacity_bps, link.flows, link.changed.time_ns) = (u64::MAX, u32::MAX, u64::MAX);
            link.link = "ü".repeat(300);
        }
        for row in snapshot.details.on_link.iter_mut().flat_map(|on_link| &mut on_link.flows) {
            (row.flow.sampled_bytes, row.flow.repeated_bytes) = (1, u64::MAX);
            row.flow.rate_bps = row.flow.rate_bps.take().map(|mut rate| {
                (rate.value, rate.upper) = (f64::MAX, Some(f64::MAX));
                rate
            });
        }
        snapshot.collectors.iter_mut().for_each(|collector| collector.source = "long ".repeat(100));
        snapshot
    };
    let nothing = Snapshot { collectors: Vec::new(), answered: Vec::new(), links: Vec::new(), ..snapshot() };
    prop_oneof![
        Just(asked(snapshot())),
        Just(asked(extreme(snapshot()))),
        Just(asked(Snapshot { details: Details::default(), ..nothing })),
        Just(News::Chosen(Box::new(on_link("tor0:p1:in", flows())))),
        Just(trouble()),
        prop::sample::select(events()),
        Just(News::Unsubscribed { error: "gone".repeat(100), retry_in: Duration::MAX }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_key_news_or_size_makes_it_panic(
        steps in prop::collection::vec((any_key(), any_news(), 0..230u16, 0..60u16), 1..12),
    ) {
        let mut view = TopView::new(Theme::ANSI, "http://127.0.0.1:9477");
        for (code, news, width, height) in steps {
            prop_assert!(press(&mut view, code) != Action::Quit);
            view.update(news);
            let cells = buffer(&mut view, width, height);
            prop_assert_eq!(lines(&cells).len(), usize::from(height));
        }
    }
}
