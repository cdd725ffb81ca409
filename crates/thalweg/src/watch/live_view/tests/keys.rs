//! Key handling.

use thalweg_measure::filter::{FlowFilter, METERED};

use super::*;

#[test]
fn q_and_control_c_quit_in_every_pane() {
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
fn enter_applies_a_filter_and_escape_clears_it() {
    let mut view = view();
    let actions = type_text(&mut view, "/proto icmp");
    assert!(actions.iter().all(|action| *action == Action::None), "{actions:?}");
    assert_eq!(view.rows.len(), flows().len());
    assert_eq!(query_of(press(&mut view, KeyCode::Enter)).filter.text(), "proto icmp");
    assert_eq!(view.rows.len(), 1);
    assert!(query_of(press(&mut view, KeyCode::Esc)).filter.is_empty());
    assert_eq!(view.rows.len(), flows().len());
}

#[test]
fn an_invalid_filter_keeps_the_last_one_and_the_input_open() {
    let mut view = view();
    type_text(&mut view, "/proto tcp");
    query_of(press(&mut view, KeyCode::Enter));
    type_text(&mut view, "/ and src as 5");
    assert_eq!(press(&mut view, KeyCode::Enter), Action::None);
    assert!(view.filter_input.is_some());
    assert!(screen(&mut view, 80, 24).contains("filter, column 19: 'as' is not known here; known: "));
    assert_eq!(view.query().filter.text(), "proto tcp");
    assert!(query_of(press(&mut view, KeyCode::Esc)).filter.is_empty());
    assert!(view.filter_input.is_none());
}

#[test]
fn filters_apply_to_cheetah_flows() {
    let mut view = view();
    press_without_query(&mut view, KeyCode::Char('c'));
    type_text(&mut view, "/dst port 40000");
    assert_eq!(query_of(press(&mut view, KeyCode::Enter)).filter.text(), "dst port 40000");
    let text = screen(&mut view, 80, 24);
    assert!(text.contains("cheetahs newest first filter: dst port 40000"), "{text}");
    assert_eq!(view.cheetah_rows.len(), 1);
    type_text(&mut view, "/ and any and port 1");
    query_of(press(&mut view, KeyCode::Enter));
    assert!(screen(&mut view, 80, 24).contains("no cheetah flows match the filter"));
}

#[test]
fn filters_use_the_values_of_the_columns() {
    for (text, rows) in [
        ("src ip 10.0.0.17", 2),
        ("bps > 100m", 2),
        ("cheetah and ipv6", 1),
        ("bytes > 3g", 1),
        ("in bytes > 3g", 1),
        ("out bytes > 3g", 0),
        ("flags S and port 22", 1),
        ("duration < 500 and dst port 53", 1),
        ("net 172.16/12 and net 10/8", 40),
    ] {
        let mut view = view();
        type_text(&mut view, &format!("/{text}"));
        query_of(press(&mut view, KeyCode::Enter));
        assert_eq!(view.rows.len(), rows, "{text}");
    }
}

#[test]
fn a_command_line_filter_applies_from_the_start() {
    let filter = FlowFilter::compile("proto icmp", &METERED).unwrap();
    let mut view = LiveView::with_filter(Theme::ANSI, filter.clone());
    assert_eq!(view.query().filter, filter);
    view.update(snapshot());
    assert_eq!(view.rows.len(), 1);
    assert!(query_of(press(&mut view, KeyCode::Esc)).filter.is_empty());
    assert_eq!(view.rows.len(), flows().len());
}

#[test]
fn filters_apply_to_the_last_snapshot_after_the_end() {
    let mut view = view();
    view.update(Snapshot { ended: true, ..snapshot() });
    type_text(&mut view, "/proto icmp");
    query_of(press(&mut view, KeyCode::Enter));
    assert!(screen(&mut view, 80, 24).contains(" cheetah ── 1 of 46"));
    query_of(press(&mut view, KeyCode::Esc));
    assert_eq!(view.rows.len(), flows().len());
}

#[test]
fn a_long_filter_leaves_room_for_the_count() {
    let mut view = view();
    type_text(&mut view, &format!("/{}any", "any and ".repeat(20)));
    query_of(press(&mut view, KeyCode::Enter));
    let title = " flows by rate filter: any and any and any and any and any an…─ ▲ cheetah ── 46";
    assert!(screen(&mut view, 80, 24).contains(title), "{}", screen(&mut view, 80, 24));
}

#[test]
fn s_cycles_the_sort_key_and_r_reverses_the_order() {
    let mut view = view();
    let orders: Vec<SortBy> = (0..5).map(|_| query_of(press(&mut view, KeyCode::Char('s'))).sort).collect();
    assert_eq!(orders, [SortBy::Bytes, SortBy::Packets, SortBy::Age, SortBy::Last, SortBy::Rate]);
    let fastest = view.rows[0].key;
    assert!(!query_of(press(&mut view, KeyCode::Char('r'))).descending);
    assert_eq!(view.rows.last().unwrap().key, fastest, "rows are sorted at once");
}

#[test]
fn enter_pins_the_selected_flow_and_escape_unpins_it() {
    let mut view = view();
    for _ in 0..3 {
        press_without_query(&mut view, KeyCode::Down);
    }
    let third = view.rows[2].key;
    assert_eq!(query_of(press(&mut view, KeyCode::Enter)).pinned, Some(third));
    assert_eq!(press(&mut view, KeyCode::Enter), Action::None);
    assert_eq!(query_of(press(&mut view, KeyCode::Esc)).pinned, None);
    assert_eq!(press(&mut view, KeyCode::Esc), Action::None);
}

#[test]
fn a_flow_can_be_pinned_from_the_list_of_cheetahs() {
    let mut view = view();
    press_without_query(&mut view, KeyCode::Char('c'));
    press_without_query(&mut view, KeyCode::End);
    assert_eq!(query_of(press(&mut view, KeyCode::Enter)).pinned, Some(cheetahs()[2].key));
    assert_eq!(query_of(press(&mut view, KeyCode::Esc)).pinned, None);
    assert!(screen(&mut view, 80, 24).contains("cheetahs newest first"));
    press_without_query(&mut view, KeyCode::Esc);
    assert!(screen(&mut view, 80, 24).contains("flows by rate"));
}

#[test]
fn a_flow_pinned_while_paused_is_updated_after_the_pause() {
    let mut view = view();
    press_without_query(&mut view, KeyCode::Char(' '));
    assert!(matches!(press(&mut view, KeyCode::Enter), Action::Query(_)));
    view.update(Snapshot { top: Vec::new(), ..snapshot() });
    assert!(screen(&mut view, 80, 24).contains("live"), "a paused display does not change");
    press_without_query(&mut view, KeyCode::Char(' '));
    assert!(screen(&mut view, 80, 24).contains("not in the flow table"));
}

/// Returns the lines of the pane that are reversed.
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
fn the_selection_follows_its_flow() {
    let mut view = view();
    press_without_query(&mut view, KeyCode::Char('j'));
    press_without_query(&mut view, KeyCode::Char('j'));
    let selected = view.rows[1].key;
    let mut next = snapshot();
    next.top.iter_mut().find(|row| row.key == selected).unwrap().traffic.rate = [BitRate(1); 2];
    view.update(next);
    let selected = selected_lines(&buffer(&mut view, 80, 24));
    assert_eq!(selected.len(), 1);
    assert!(selected[0].contains("udp"), "{selected:?}");
}
