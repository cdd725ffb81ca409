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

mod bar;
mod cheetah_table;
mod detail;
mod endpoint;
mod flow_table;
mod footer;
mod header;
mod help;
mod panels;
mod quantity;
mod task_keys;
mod tasks;

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Borders, Paragraph};

use super::theme::Theme;
use super::view::{LiveView, Pane};

/// Below this many columns or rows only a message is shown.
const LEAST: (u16, u16) = (60, 10);

/// Draws the whole screen.
pub(super) fn draw(view: &mut LiveView, frame: &mut Frame) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        return too_small(frame, area);
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

fn too_small(frame: &mut Frame, area: Rect) {
    let (columns, rows) = LEAST;
    let message = vec![
        Line::from("thalweg needs a larger terminal:"),
        Line::from(format!("{columns}x{rows}, this is {}x{}", area.width, area.height)),
        Line::from("(measuring goes on; q quits)"),
    ];
    frame.render_widget(Paragraph::new(message), area);
}

/// A rule across the screen with titles at its left and right, over what follows.
fn rule<'a>(theme: Theme, left: Line<'a>, right: Line<'a>) -> Block<'a> {
    Block::new()
        .borders(Borders::TOP)
        .border_style(theme.muted())
        .title_style(Style::reset())
        .title_top(left)
        .title_top(right.alignment(Alignment::Right))
}

/// A box with a title.
fn panel<'a>(theme: Theme, title: &'a str) -> Block<'a> {
    Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(theme.muted())
        .title_style(Style::reset())
        .title_top(Span::styled(format!(" {title} "), theme.strong()))
}

/// Columns that these take.
fn width_of(spans: &[Span]) -> usize {
    spans.iter().map(Span::width).sum()
}

/// `1 flow`, `2 flows`.
fn counted(count: &str, one: &str, many: &str) -> String {
    format!("{count} {}", if count == "1" { one } else { many })
}
