//! Clicks and the wheel.

use super::groups::{address, by};
use super::*;

#[test]
fn a_click_selects_a_second_one_opens_and_a_title_sorts() {
    let mut view = by(Grouping::Flow);
    let frame = buffer(&mut view, 80, 24);
    let click =
        |view: &mut LiveView, (x, y)| view.mouse(mouse(MouseEventKind::Down(MouseButton::Left), x, y));
    let row = find(&frame, "203.0.113.7");
    assert_eq!(click(&mut view, row), Action::None);
    let selected = view.rows[view.flows.index().unwrap()].key;
    assert_eq!(selected.src(), address("203.0.113.7"));
    assert_eq!(query_of(click(&mut view, row)).pinned, Some(selected));
    query_of(press(&mut view, KeyCode::Esc));
    let frame = buffer(&mut view, 80, 24);
    let title = find(&frame, "bytes  age");
    assert_eq!(query_of(click(&mut view, title)).sort, SortBy::Bytes);
    assert!(!query_of(click(&mut view, title)).descending, "a second click reverses");
    assert!(query_of(click(&mut view, find(&frame, "b/s"))).descending);
    // Outside of the table.
    assert_eq!(click(&mut view, (0, 0)), Action::None);
    assert_eq!(click(&mut view, (200, 100)), Action::None);
}

#[test]
fn the_wheel_moves_the_selection() {
    let mut view = by(Grouping::Pair);
    for (kind, index) in
        [(MouseEventKind::ScrollDown, 0), (MouseEventKind::ScrollDown, 1), (MouseEventKind::ScrollUp, 0)]
    {
        assert_eq!(view.mouse(mouse(kind, 5, 5)), Action::None);
        assert_eq!(view.groups.index(), Some(index));
    }
    type_text(&mut view, "?");
    assert_eq!(view.mouse(mouse(MouseEventKind::ScrollDown, 5, 5)), Action::None);
    assert_eq!(view.groups.index(), Some(0), "not behind the help");
}

/// Draws the view and clicks on `text`.
#[track_caller]
fn click_on(view: &mut LiveView, text: &str) -> Action {
    let (x, y) = find(&buffer(view, 80, 24), text);
    view.mouse(mouse(MouseEventKind::Down(MouseButton::Left), x, y))
}

#[test]
fn a_click_on_a_key_presses_it() {
    let mut view = view();
    assert_eq!(click_on(&mut view, "? help"), Action::None);
    assert!(view.help.is_open());
    assert_eq!(click_on(&mut view, "q quit"), Action::None, "any click closes the help");
    assert!(!view.help.is_open());
    assert_eq!(query_of(click_on(&mut view, "s sort")).sort, SortBy::Bytes);
    assert!(query_of(click_on(&mut view, "↵ open")).pinned.is_some());
    assert!(query_of(click_on(&mut view, "w write packets")).capture.is_some());
    assert!(query_of(click_on(&mut view, "esc back")).pinned.is_none());
    assert_eq!(click_on(&mut view, "/ filter"), Action::None);
    type_text(&mut view, "port 443");
    assert_eq!(click_on(&mut view, "203.0.113.7"), Action::None, "lists wait until the input is closed");
    assert_eq!(query_of(click_on(&mut view, "enter apply")).filter.text(), "port 443");
    assert!(query_of(click_on(&mut view, "esc clear")).filter.is_empty());
    assert_eq!(click_on(&mut view, "q quit"), Action::Quit);
}

#[test]
fn a_click_selects_a_task_and_its_keys() {
    let mut view = view_of(with_tasks());
    press_without_query(&mut view, KeyCode::Char('t'));
    assert_eq!(click_on(&mut view, "entropy:src"), Action::None);
    assert_eq!((view.tasks.index(), view.pane), (Some(1), Pane::Tasks));
    assert_eq!(click_on(&mut view, "heavy:0.1%"), Action::None);
    assert_eq!(click_on(&mut view, "udp ["), Action::None);
    assert_eq!((view.task_keys.index(), view.pane), (Some(1), Pane::OneTask));
}
