//! What keys do.

use super::*;

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
    assert_eq!(asked(press(&mut view, KeyCode::Enter)).pinned, Some(third));
    assert_eq!(press(&mut view, KeyCode::Enter), Action::None);
    assert_eq!(asked(press(&mut view, KeyCode::Esc)).pinned, None);
    assert_eq!(press(&mut view, KeyCode::Esc), Action::None);
}

#[test]
fn a_cheetah_is_frozen_on_from_its_list_and_escape_goes_back_there() {
    let mut view = view();
    press_quietly(&mut view, KeyCode::Char('c'));
    press_quietly(&mut view, KeyCode::End);
    assert_eq!(asked(press(&mut view, KeyCode::Enter)).pinned, Some(cheetahs()[2].key));
    assert_eq!(asked(press(&mut view, KeyCode::Esc)).pinned, None);
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
