//! Screens.

use super::*;

#[test]
fn links_match_the_golden_screens() {
    for (width, height) in [(60, 10), (80, 24), (120, 40), (200, 50)] {
        check("links", &mut view(), width, height);
    }
}

#[test]
fn a_small_screen_shows_the_minimum_size() {
    for (width, height) in [(59, 24), (40, 12), (20, 5)] {
        check("too_small", &mut view(), width, height);
    }
}

#[test]
fn every_key_of_a_pane_is_visible_at_80_columns() {
    let last_line = |view: &mut TopView| lines(&buffer(view, 80, 24)).pop().unwrap();
    let mut view = view();
    let all = " q quit  enter open link  e events  / filter  s sort  f flows  space pause  ? help";
    assert_eq!(last_line(&mut view).trim_end(), all.replace("enter open link", "↵ open"));
    assert_eq!(press(&mut view, KeyCode::Char(' ')), Action::None);
    assert!(last_line(&mut view).starts_with(" PAUSED  q quit "));
}

#[test]
fn one_link_matches_the_golden_screen() {
    let mut view = view();
    let wanted = query(press(&mut view, KeyCode::Enter));
    assert_eq!(wanted.link, Some(seen("tor0:p3:out")));
    assert_eq!(press(&mut view, KeyCode::Down), Action::None);
    check("one_link", &mut view, 80, 24);
    check("one_link", &mut view, 120, 40);
}

#[test]
fn one_flow_matches_the_golden_screen() {
    let mut view = view();
    query(press(&mut view, KeyCode::Enter));
    let key = query(press(&mut view, KeyCode::Enter)).flow.unwrap();
    assert_eq!(key.to_string(), "tcp 10.0.0.17:51034 > 192.168.100.200:5201");
    for n in 0..60_u32 {
        let rate = within(3e9 + f64::from(n * n % 17) * 8e7);
        let json = flow(&key.to_string(), rate, "sequence_numbers", 812_345);
        let seen = FlowRow { key, flow: serde_json::from_value(json).unwrap() };
        view.update(Update::Details(Box::new(Details { flow: Some(vec![seen]), ..Details::default() })));
    }
    check("one_flow", &mut view, 80, 24);
    view.update(Update::Details(Box::new(Details { flow: Some(Vec::new()), ..Details::default() })));
    assert!(screen(&mut view, 80, 24).contains("no longer seen by any collector"));
    assert_eq!(query(press(&mut view, KeyCode::Esc)).flow, None);
}

#[test]
fn events_and_help_match_the_golden_screens() {
    let mut view = view();
    assert_eq!(press(&mut view, KeyCode::Char('e')), Action::None);
    check("events", &mut view, 80, 24);
    assert_eq!(press(&mut view, KeyCode::Char('?')), Action::None);
    check("help", &mut view, 80, 24);
}

#[test]
fn a_reroute_and_its_outcome_are_separate_lines() {
    let happened = |ms, body| Update::Event(Box::new(event(ms, body)));
    let mut view = view_of([
        happened(1, decision()),
        happened(2, outcome("confirmed", Some(2_500_000))),
        happened(3, congestion("repeated", 0.9)),
        happened(4, outcome("timed_out", None)),
    ]);
    assert_eq!(press(&mut view, KeyCode::Char('e')), Action::None);
    let screen = screen(&mut view, 140, 24);
    for line in [
        "↪ rerouted h0 > h8, tree 0 to 2: expected 1.00 Gbit/s, was 500 Mbit/s; tor0:p3:out congested",
        "✓ h0 > h8 on tree 2: confirmed after 2.50 ms",
        "✗ h0 > h8 on tree 2: timed out",
    ] {
        assert!(screen.contains(line), "{screen}");
    }
    assert!(!screen.contains("still"), "{screen}");
    assert!(screen.contains("─ 4"), "repeated events are counted: {screen}");
}

#[test]
fn isolated_flows_are_marked() {
    let text = screen(&mut view(), 140, 40);
    assert!(text.contains("▲ cheetah  ▽ isolated ── "), "{text}");
    assert!(text.contains("▲ tcp   10.0.0.17:51034") && text.contains("▽ tcp   [2001:db8"), "{text}");
    let mut others = snapshot();
    others.details = on_link("tor0:p3:out", flows().split_off(2));
    let text = screen(&mut view_of([polled(others)]), 140, 40);
    assert!(!text.contains('▽'), "{text}");
}

#[test]
fn a_congested_link_has_the_rate_of_its_utilisation() {
    // At the moment of the event, no flow has a current rate, and of the first one only a bound is known.
    let mut congested = congestion("began", 0.9);
    congested["rate_bps"] = json!(0.0);
    congested["flows"][0]["rate_bps"] = Value::Null;
    congested["flows"][0]["rate_lower_bps"] = json!(0.0);
    let mut view = view_of([Update::Event(Box::new(event(1, congested)))]);
    assert_eq!(press(&mut view, KeyCode::Char('e')), Action::None);
    let text = screen(&mut view, 140, 24);
    assert!(
        text.contains("congested: 93 %, 9.31 Gbit/s, 12 flows, first ≤ 4.20 Gbit/s tcp 10.0.0.17"),
        "{text}"
    );
}

#[test]
fn a_link_whose_flows_have_just_stopped_names_none() {
    let mut stopped = congestion("cleared", 0.8);
    (stopped["flows"], stopped["omitted_flows"]) = (json!([]), json!(0));
    let mut view = view_of([Update::Event(Box::new(event(1, stopped)))]);
    assert_eq!(press(&mut view, KeyCode::Char('e')), Action::None);
    let text = screen(&mut view, 140, 24);
    assert!(text.lines().any(|line| line.trim_end().ends_with("cleared: 79 %, 7.94 Gbit/s")), "{text}");
}

#[test]
fn an_unreachable_daemon_matches_the_golden_screen() {
    check("connecting", &mut view_of([]), 80, 24);
    let mut gone = view();
    gone.update(poll_error());
    gone.update(Update::Unsubscribed {
        error: "cannot be reached: Connection refused (os error 111)".to_owned(),
        retry_in: Duration::from_millis(500),
    });
    check("unreachable", &mut gone, 80, 24);
    let cells = buffer(&mut gone, 80, 24);
    assert_eq!(cells[find(&cells, "! cannot be reached: Connection refused; retry in 2 s")].fg, Color::Red);
    gone.update(polled(snapshot()));
    assert!(!screen(&mut gone, 80, 24).contains("retry in 2 s"));
}

#[test]
fn a_failed_collector_shows_its_error_and_retry_time() {
    let cells = buffer(&mut view(), 80, 24);
    assert_eq!(cells[find(&cells, "failed: no such interface; retry at 10:01:10")].fg, Color::Red);
    assert_eq!(cells[find(&cells, ", 1,234 dropped")].fg, Color::Red);
    let small = buffer(&mut view(), 80, 12);
    assert_eq!(small[find(&small, "1 of 3 collectors failed")].fg, Color::Red, "also without its own line");
}

#[test]
fn a_link_of_two_collectors_shows_their_names() {
    let mut twice = snapshot();
    let again = |link: &Link| Link { collector: "tor0-emulated".to_owned(), ..link.clone() };
    twice.links = twice.links.iter().flat_map(|link| [link.clone(), again(link)]).collect();
    let mut view = view_of([polled(twice)]);
    check("twice", &mut view, 80, 24);
    check("twice", &mut view, 60, 12);
    check("twice", &mut view, 140, 24);
    query(press(&mut view, KeyCode::Down));
    let second = query(press(&mut view, KeyCode::Down)).link.unwrap();
    assert_eq!((second.link.as_str(), second.collector.as_str()), ("tor0:p3:out", "tor0-emulated"));
}

#[test]
fn utilisation_sets_the_colour_of_a_link() {
    let cells = buffer(&mut view(), 80, 24);
    for (percent, colour) in [(" 93 %", Color::Red), (" 73 %", Color::Yellow), (" 41 %", Color::Green)] {
        let (x, y) = find(&cells, percent);
        assert_eq!(cells[(x + 1, y)].fg, colour, "{percent}");
    }
}

#[test]
fn the_plain_theme_has_no_colours() {
    let mut plain = TopView::new(Theme::PLAIN, "http://127.0.0.1:9477");
    events().into_iter().for_each(|update| plain.update(update));
    plain.update(polled(snapshot()));
    let plain = buffer(&mut plain, 120, 40);
    assert!(plain.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert!(plain[find(&plain, "failed: no such")].modifier.contains(Modifier::BOLD));
}
