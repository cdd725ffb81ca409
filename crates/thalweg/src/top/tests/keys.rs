//! What keys do.

use thalweg_measure::filter::SAMPLED;

use super::*;

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
fn flows_of_a_link_are_filtered_and_a_wrong_filter_keeps_the_last_one() {
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
    assert_eq!(view.link_rows.len(), links().links.len(), "links stay");
    assert!(screen(&mut view, 80, 24).contains("filter: bps > 2g"));
}

#[test]
fn flows_are_filtered_by_what_the_daemon_says_of_them() {
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
        view.update(asked(snapshot()));
        assert_eq!(view.flow_rows.len(), rows, "{text}");
    }
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
