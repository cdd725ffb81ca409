//! Drawing. Each file draws one part of the screen. Only the lists change the view: they store how many rows fit and where they
//! are.
//!
//! ```text
//! title       program, sources, packet time
//! panels      rates with sparklines; the flow table and its cheetahs
//! counters    unmeasured and unusual packets
//! hint        merged frames, if there are any and the screen is tall
//! pane        flows, hosts, pairs, cheetah flows, one flow, measurement tasks, or one task
//! filter      the filter input and its error, while open
//! footer      state and keys
//! ```

mod cheetah_table;
mod columns;
mod detail;
mod footer;
mod header;
mod help;
mod panels;
mod table;
mod task_figures;
mod task_keys;
mod tasks;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};

use super::view::{LiveView, Pane};
use crate::terminal::mouse::Hits;
use crate::terminal::screen::{draw_too_small, is_too_small};

/// Draws the whole screen.
pub(super) fn draw(view: &mut LiveView, frame: &mut Frame) {
    view.hits = Hits::default();
    let area = frame.area();
    if is_too_small(area) {
        return draw_too_small("Measurement continues. q quits.", frame, area);
    }
    let box_height = if view.filter_input.is_some() { 2 } else { 0 };
    let [title, panels, counters, hint, pane, filter_input, footer] = Layout::vertical([
        Constraint::Length(header::height(view, area)),
        Constraint::Length(panels::height(area)),
        Constraint::Length(1),
        Constraint::Length(header::hint_height(view, area)),
        Constraint::Min(0),
        Constraint::Length(box_height),
        Constraint::Length(1),
    ])
    .areas(area);
    header::draw(view, frame, title);
    panels::draw(view, frame, panels);
    header::draw_counters(view, frame, counters);
    header::draw_hint(view, frame, hint);
    match view.pane {
        Pane::Flows => table::draw(view, frame, pane),
        Pane::Cheetahs => cheetah_table::draw(view, frame, pane),
        Pane::Tasks => tasks::draw(view, frame, pane),
        Pane::OneTask => task_keys::draw_alone(view, frame, pane),
        Pane::Detail { .. } => detail::draw(view, frame, pane),
    }
    footer::draw_filter_input(view, frame, filter_input);
    let keys = footer::draw(view, frame, footer);
    view.hits.set_keys(keys);
    if view.help.is_open() {
        help::draw(view, frame, area);
        // A click that closes the help hits nothing below it, nor does the next one before the next frame.
        view.hits = Hits::default();
    }
}
