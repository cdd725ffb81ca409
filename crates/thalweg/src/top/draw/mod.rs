//! Drawing. Each file draws one part of the screen. Only the lists and the footer change the view: they store how many rows fit, and where
//! the mouse can hit what.
//!
//! ```text
//! header      program, daemon, packet time; its collectors
//! pane        links, the flows on one, events; or one of these alone; or one flow
//! filter      the filter input and its error, while open
//! footer      state and keys
//! ```

mod events;
mod flow;
mod flows;
mod footer;
mod header;
mod links;
mod rate;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};

use super::view::{Pane, TopView};
use crate::terminal::mouse::Hits;
use crate::terminal::screen::{draw_too_small, is_too_small};

/// Draws the whole screen.
pub(super) fn draw(view: &mut TopView, frame: &mut Frame) {
    view.hits = Hits::default();
    let area = frame.area();
    if is_too_small(area) {
        return draw_too_small("q quits.", frame, area);
    }
    let box_height = if view.input.is_some() { 2 } else { 0 };
    let [title, pane, filter_input, bottom] = Layout::vertical([
        Constraint::Length(header::height(view, area)),
        Constraint::Min(0),
        Constraint::Length(box_height),
        Constraint::Length(1),
    ])
    .areas(area);
    header::draw(view, frame, title);
    match view.pane {
        Pane::Links => draw_links(view, frame, pane),
        Pane::OnLink => flows::draw(view, frame, pane),
        Pane::Events { .. } => events::draw(view, frame, pane),
        Pane::Flow => flow::draw(view, frame, pane),
    }
    footer::draw_filter_input(view, frame, filter_input);
    let keys = footer::draw(view, frame, bottom);
    view.hits.set_keys(keys);
    if view.help.is_open() {
        footer::draw_help(view, frame, area);
        // A click that closes the help hits nothing below it, nor does the next one before the next frame.
        view.hits = Hits::default();
    }
}

/// Draws links in up to two fifths of the height, events in a quarter if the screen is tall, and flows in the rest.
fn draw_links(view: &mut TopView, frame: &mut Frame, area: Rect) {
    let needed = view.link_rows.len() as u16 + 2;
    let links_height = needed.clamp(4, (area.height * 2 / 5).max(4));
    let events_height = if area.height < 14 { 0 } else { area.height / 4 };
    let [of_links, of_flows, of_events] = Layout::vertical([
        Constraint::Length(links_height),
        Constraint::Min(0),
        Constraint::Length(events_height),
    ])
    .areas(area);
    links::draw(view, frame, of_links);
    flows::draw(view, frame, of_flows);
    if events_height > 0 {
        events::draw(view, frame, of_events);
    }
}
