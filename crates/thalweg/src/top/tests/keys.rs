//! Key handling.

use thalweg_measure::filter::SAMPLED;

use super::*;

#[test]
fn the_flows_belong_to_the_selected_link() {
    let mut view = view();
    assert_eq!(query(press(&mut view, KeyCode::Down)).link, Some(seen("tor0:p3:out")));
    assert_eq!(query(press(&mut view, KeyCode::Down)).link, Some(seen("tor0:p1:in")));
    let text = screen(&mut view, 80, 24);
    assert!(
        text.contains("flows on tor0:p1:in")
            && text.contains("loading")
            && !text.contains("192.168.100.200:5201  ")
    );
    view.update(Update::Details(Box::new(on_link("tor0:p1:in", flows()))));
    assert!(screen(&mut view, 80, 24).contains("10.0.0.17:51034"));
    // A late answer to the previous query.
    view.update(Update::Details(Box::new(on_link("tor0:p3:out", flows()))));
    assert!(screen(&mut view, 80, 24).contains("loading"));
}

#[test]
fn the_selection_follows_its_link() {
    let mut view = view();
    query(press(&mut view, KeyCode::Down));
    query(press(&mut view, KeyCode::Down));
    let mut next = snapshot();
    next.links.iter_mut().find(|link| link.link == "tor0:p1:in").unwrap().utilisation = 0.1;
    view.update(polled(next));
    assert_eq!(view.selected_link(), Some(&seen("tor0:p1:in")));
}

#[test]
fn links_are_sorted_and_filtered() {
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
    assert!(view.selected_link().is_some(), "the flows below belong to a visible link");
    assert_eq!(press(&mut view, KeyCode::Enter), Action::None);
    assert!(
        screen(&mut view, 80, 24).contains("filter: host1 in")
            && screen(&mut view, 80, 24).contains(" 11 of 39")
    );
    assert_eq!(press(&mut view, KeyCode::Esc), Action::None);
    assert_eq!(view.link_rows.len(), 39);
    query(press(&mut view, KeyCode::Esc));
    assert_eq!(view.selected_link(), None);
}

#[test]
fn an_invalid_flow_filter_keeps_the_last_valid_one() {
    let mut view = view();
    query(press(&mut view, KeyCode::Enter));
    type_text(&mut view, "/proto udp");
    assert_eq!(view.flow_rows.len(), flows().len());
    assert_eq!(query(press(&mut view, KeyCode::Enter)).filter.text(), "proto udp");
    assert_eq!(view.flow_rows.len(), 1);
    type_text(&mut view, "/ and flags S");
    assert_eq!(press(&mut view, KeyCode::Enter), Action::None);
    check("filter_error", &mut view, 80, 24);
    assert_eq!(view.flow_rows.len(), 1);
    assert!(query(press(&mut view, KeyCode::Esc)).filter.is_empty());
    assert_eq!(view.flow_rows.len(), flows().len());
}

#[test]
fn f_filters_the_flows_under_the_links() {
    let mut view = view();
    type_text(&mut view, "fbps > 2g");
    assert_eq!(query(press(&mut view, KeyCode::Enter)).filter.text(), "bps > 2g");
    assert_eq!(view.flow_rows.len(), 2);
    assert_eq!(view.link_rows.len(), links().links.len(), "all links remain");
    assert!(screen(&mut view, 80, 24).contains("filter: bps > 2g"));
}

#[test]
fn flow_filters_use_the_values_of_the_daemon() {
    for (text, rows) in [
        ("src ip 10.0.0.17", 1),
        ("bps 0", 1),
        ("cheetah", 2),
        ("bytes = 70m and packets 48123 and bpp 1454 and duration 60345 and flows 1", 45),
        ("ipv6 or proto esp", 2),
    ] {
        let filter = FlowFilter::compile(text, &SAMPLED).unwrap();
        let mut view = TopView::with_filter(Theme::ANSI, "http://[::1]:1", filter);
        assert_eq!(view.query().filter.text(), text);
        view.update(polled(snapshot()));
        assert_eq!(view.flow_rows.len(), rows, "{text}");
    }
}

#[test]
fn a_paused_view_shows_later_updates_after_the_pause() {
    let mut view = view();
    assert_eq!(press(&mut view, KeyCode::Char(' ')), Action::None);
    let before = screen(&mut view, 80, 24);
    assert!(before.contains(" PAUSED "));
    view.update(polled(Snapshot { links: Vec::new(), ..snapshot() }));
    view.update(Update::Event(Box::new(event(20_000, cheetah()))));
    view.update(poll_error());
    assert_eq!(screen(&mut view, 80, 24), before);
    assert_eq!(press(&mut view, KeyCode::Char(' ')), Action::None);
    let after = screen(&mut view, 80, 24);
    assert!(
        after.contains("10:00:20.000000") && after.contains("Connection refused") && !after.contains("host0")
    );
}

#[test]
fn q_and_control_c_quit_in_every_pane() {
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
fn the_number_of_events_kept_is_limited() {
    let mut view = view();
    for ms in 0..3_000 {
        view.update(Update::Event(Box::new(event(ms, cheetah()))));
    }
    assert_eq!(view.displayed().events.len(), 1_000);
    assert_eq!(view.displayed().received, 3_005);
    assert!(screen(&mut view, 80, 24).contains(" 3,005, 1,234 lost"));
}
