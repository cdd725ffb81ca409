//! State to cells. Each file draws one part of the screen from a shared view of the state; only the lists
//! change it, by how many rows they had room for.
//!
//! ```text
//! title       program, sources, packet time
//! panels      rates with sparklines; the flow table and its cheetahs
//! counters    what was not measured, or was odd
//! pane        flows, cheetahs, one flow, measurement tasks, or one of them
//! filter box  while one is typed: the line, and what is wrong with it
//! footer      state and keys
//! ```

mod cheetah_table;
mod detail;
mod flow_table;
mod footer;
mod header;
mod help;
mod panels;
mod task_figures;
mod task_keys;
mod tasks;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};

use super::view::{LiveView, Pane};
use crate::terminal::screen::{is_too_small, say_too_small};

/// Draws the whole screen.
pub(super) fn draw(view: &mut LiveView, frame: &mut Frame) {
    let area = frame.area();
    if is_too_small(area) {
        return say_too_small("(measuring goes on; q quits)", frame, area);
    }
    let box_height = if view.filter_box.is_some() { 2 } else { 0 };
    let [title, panels, counters, pane, filter_box, footer] = Layout::vertical([
        Constraint::Length(header::height(view, area)),
        Constraint::Length(panels::height(area)),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(box_height),
        Constraint::Length(1),
    ])
    .areas(area);
    header::draw(view, frame, title);
    panels::draw(view, frame, panels);
    header::draw_counters(view, frame, counters);
    match view.pane {
        Pane::Flows => flow_table::draw(view, frame, pane),
        Pane::Cheetahs => cheetah_table::draw(view, frame, pane),
        Pane::Tasks => tasks::draw(view, frame, pane),
        Pane::OneTask => task_keys::draw_alone(view, frame, pane),
        Pane::Detail { .. } => detail::draw(view, frame, pane),
    }
    footer::draw_filter_box(view, frame, filter_box);
    footer::draw(view, frame, footer);
    if view.help {
        help::draw(view, frame, area);
    }
}
