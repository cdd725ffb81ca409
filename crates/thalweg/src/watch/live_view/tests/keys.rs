//! Key handling.

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
fn a_filter_applies_as_it_is_typed_and_escape_clears_it() {
    let mut view = view();
    let actions = type_text(&mut view, "/icmp");
    let queries: Vec<&Action> = actions.iter().filter(|action| **action != Action::None).collect();
    assert_eq!(queries.len(), 1, "i, ic and icm are not valid filters: {actions:?}");
    assert_eq!(query_of(queries[0].clone()).filter.to_string(), "icmp");
    assert_eq!(press(&mut view, KeyCode::Enter), Action::None);
    assert_eq!(view.rows.len(), 1);
    assert!(query_of(press(&mut view, KeyCode::Esc)).filter.is_empty());
    assert_eq!(view.rows.len(), flows().len());
}

#[test]
fn an_invalid_filter_keeps_the_last_valid_one() {
    let mut view = view();
    type_text(&mut view, "/tcp nonsense");
    assert_eq!(press(&mut view, KeyCode::Enter), Action::None);
    assert!(view.filter_error().is_some());
    assert_eq!(view.query().filter.to_string(), "tcp");
    assert!(query_of(press(&mut view, KeyCode::Esc)).filter.is_empty());
    assert!(view.filter_error().is_none());
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
    next.top.iter_mut().find(|row| row.key == selected).unwrap().rate = [BitRate(1); 2];
    view.update(next);
    let selected = selected_lines(&buffer(&mut view, 80, 24));
    assert_eq!(selected.len(), 1);
    assert!(selected[0].contains("udp"), "{selected:?}");
}
