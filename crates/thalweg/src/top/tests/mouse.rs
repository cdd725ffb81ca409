//! Clicks and the wheel.

use ratatui::buffer::Buffer;

use super::*;

pub(super) fn mouse(kind: MouseEventKind, column: u16, row: u16) -> MouseEvent {
    MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }
}

fn click(view: &mut TopView, (x, y): (u16, u16)) -> Action {
    view.mouse(mouse(MouseEventKind::Down(MouseButton::Left), x, y))
}

/// Draws the view and clicks on `text`.
#[track_caller]
fn click_on(view: &mut TopView, text: &str) -> Action {
    let place = find(&frame(view), text);
    click(view, place)
}

fn frame(view: &mut TopView) -> Buffer {
    buffer(view, 80, 24)
}

#[test]
fn a_click_selects_a_link_and_a_second_one_opens_it() {
    let mut view = view();
    assert_eq!(query(click_on(&mut view, "tor0:p1:in")).link, Some(seen("tor0:p1:in")));
    assert_eq!(view.pane, Pane::Links);
    assert_eq!(click_on(&mut view, "tor0:p1:in  "), Action::None);
    assert_eq!(view.pane, Pane::OnLink);
    view.update(Update::Details(Box::new(on_link("tor0:p1:in", flows()))));
    assert_eq!(click_on(&mut view, "203.0.113.7"), Action::None);
    let flow = query(click_on(&mut view, "203.0.113.7")).flow.unwrap();
    assert_eq!((view.pane, flow.src().to_string().as_str()), (Pane::Flow, "203.0.113.7"));
}

#[test]
fn a_click_on_a_title_sorts_and_a_second_one_reverses() {
    let mut view = view();
    for (title, sort) in [
        ("rate ", SortBy::Rate),
        ("flows changed", SortBy::Flows),
        ("changed", SortBy::Changed),
        ("link  ", SortBy::Name),
        ("util", SortBy::Utilisation),
    ] {
        // The titles are in line 5, below four lines of header and the rule.
        let line = lines(&frame(&mut view))[5].clone();
        let x = line[..line.find(title).unwrap()].chars().count() as u16;
        assert_eq!(click(&mut view, (x, 5)), Action::None);
        assert_eq!((view.sort, view.is_reversed), (sort, false), "{title}");
        assert_eq!(click(&mut view, (x, 5)), Action::None);
        assert_eq!((view.sort, view.is_reversed), (sort, true), "{title}");
    }
    // "peer" and "of" do not sort.
    let titles = find(&frame(&mut view), "peer");
    assert_eq!(click(&mut view, titles), Action::None);
    assert_eq!((view.sort, view.is_reversed), (SortBy::Utilisation, true));
}

#[test]
fn a_click_on_a_flow_below_the_links_opens_its_link() {
    let mut view = view();
    assert_eq!(query(click_on(&mut view, "10.0.0.18:40022")).link, Some(seen("tor0:p3:out")));
    assert_eq!(view.pane, Pane::OnLink);
    let selected = view.flow_rows[view.flows.index().unwrap()].key;
    assert_eq!(selected.src().to_string(), "10.0.0.18");
    // Flows of a link that the filter hides do not open another link.
    let mut view = super::view();
    type_text(&mut view, "/host1 in");
    assert_eq!(press(&mut view, KeyCode::Enter), Action::None);
    assert_ne!(view.selected_link(), Some(&seen("tor0:p3:out")));
}

#[test]
fn a_click_on_an_event_below_the_links_opens_the_events() {
    let mut view = view();
    assert_eq!(click_on(&mut view, "10:00:11.000000"), Action::None);
    assert_eq!((view.pane, view.events.index()), (Pane::Events { from_link: false }, Some(1)));
    assert_eq!(click_on(&mut view, "cheetah tcp"), Action::None);
    assert!(view.events.index() > Some(1));
}

#[test]
fn a_click_on_a_key_presses_it() {
    let mut view = view();
    assert_eq!(click_on(&mut view, "? help"), Action::None);
    assert!(view.help.is_open());
    // Any click closes the help, also one on a key.
    assert_eq!(click_on(&mut view, "q quit"), Action::None);
    assert!(!view.help.is_open());
    assert_eq!(click_on(&mut view, "/ filter"), Action::None);
    type_text(&mut view, "host1");
    assert_eq!(click(&mut view, (5, 7)), Action::None, "lists wait until the input is closed");
    assert_eq!(click_on(&mut view, "ctrl-u"), Action::None);
    assert_eq!(view.link_filter.text(), "");
    assert_eq!(click_on(&mut view, "enter close"), Action::None);
    assert!(view.input.is_none());
    assert_eq!(click_on(&mut view, "space pause"), Action::None);
    assert!(view.is_paused());
    assert_eq!(click_on(&mut view, "q quit"), Action::Quit);
}

#[test]
fn the_wheel_moves_the_selection() {
    let mut view = view();
    frame(&mut view);
    for (kind, link) in [
        (MouseEventKind::ScrollDown, "tor0:p3:out"),
        (MouseEventKind::ScrollDown, "tor0:p1:in"),
        (MouseEventKind::ScrollUp, "tor0:p3:out"),
    ] {
        assert_eq!(query(view.mouse(mouse(kind, 5, 20))).link, Some(seen(link)));
    }
}
