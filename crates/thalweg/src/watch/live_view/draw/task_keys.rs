//! The result of one task: a table of keys, or the history of its figure.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table};
use thalweg_measure::tasks::{self, Headline};

use super::super::mouse::List;
use super::super::view::LiveView;
use super::task_figures::draw_scalar;
use crate::figures::{interval, number, percent};
use crate::task_text;
use crate::terminal::Theme;
use crate::terminal::endpoint::elided;
use crate::terminal::mouse::below_titles;
use crate::terminal::quantity::{clock, short};
use crate::terminal::screen::row_styles;
use crate::terminal::screen::{rule, width_of};
use thalweg_watch::snapshot::TaskRow;

/// Columns of an estimate and of its bound: short as in `12.3k`, or in full.
const SHORT: [u16; 3] = [7, 8, 13];
const FULL: [u16; 3] = [14, 22, 30];

/// Wider than this, the numbers would be far from their key.
const MAX_KEY_WIDTH: u16 = 90;

/// Draws the selected task below the list of tasks.
pub(super) fn draw(view: &mut LiveView, frame: &mut Frame, area: Rect) {
    draw_task(view, false, frame, area);
}

/// Draws the selected task instead of the list, with a selectable key.
pub(super) fn draw_alone(view: &mut LiveView, frame: &mut Frame, area: Rect) {
    draw_task(view, true, frame, area);
}

fn draw_task(view: &mut LiveView, alone: bool, frame: &mut Frame, area: Rect) {
    let theme = view.theme;
    let Some(row) = view.task().cloned() else { return };
    let table = row.latest.as_ref();
    let block = rule(theme, title(theme, &row), Line::from(right_title(&row, area.width)));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    match table {
        Some(table) if matches!(table.headline, Headline::Estimate { .. }) => {
            draw_scalar(theme, &row, frame, inner);
        }
        Some(table) if !table.rows.is_empty() => {
            let height = usize::from(inner.height.saturating_sub(1));
            let visible = match alone {
                true => view.task_keys.visible_rows(height, table.rows.len()),
                false => 0..height.min(table.rows.len()),
            };
            view.hits.add_rows(List::TaskKeys, below_titles(inner), visible.start, table.rows.len());
            let selected = if alone { view.task_keys.index() } else { None };
            draw_keys(theme, table, (visible, selected), frame, inner);
        }
        _ => {
            let message = if row.latest.is_some() { "no keys" } else { "no result yet" };
            frame
                .render_widget(Paragraph::new(format!("\n{message}")).centered().style(theme.muted()), inner);
        }
    }
}

fn title(theme: Theme, row: &TaskRow) -> Line<'static> {
    let mut spans = vec![Span::styled(format!(" {} ", row.spec), theme.strong())];
    if row.latest.is_some() {
        spans.push(Span::raw(format!("{} to {} ", &clock(row.start)[..8], &clock(row.end)[..8])));
    }
    Line::from(spans)
}

/// Returns the confidence of the bounds and the size of the sketches.
fn right_title(row: &TaskRow, width: u16) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    if let Some(confidence) = row.latest.as_ref().and_then(tasks::Table::confidence) {
        spans.push(Span::raw(format!(" confidence {} ", percent(confidence))));
    }
    let size = Span::raw(format!(" {} ", row.size));
    if usize::from(width) > 50 + width_of(&spans) + size.width() {
        spans.push(size);
    }
    spans
}

fn draw_keys(
    theme: Theme,
    table: &tasks::Table,
    (visible, selected): (std::ops::Range<usize>, Option<usize>),
    frame: &mut Frame,
    area: Rect,
) {
    let is_full = area.width >= 112;
    let widths = if is_full { FULL } else { SHORT };
    let key_width =
        area.width.saturating_sub(2 + widths.iter().map(|width| width + 1).sum::<u16>()).min(MAX_KEY_WIDTH);
    let rows = visible.map(|index| {
        let (text, style) = row_styles(theme, selected == Some(index));
        row(text, table, index, is_full, usize::from(key_width)).style(style)
    });
    let aside = table.aside_name();
    let aside = if is_full || aside.len() <= usize::from(SHORT[1]) { aside } else { "" };
    let header = ["key", table.unit, aside, "bound"].into_iter().enumerate().map(|(column, name)| {
        let line = Line::styled(name, theme.muted());
        Cell::from(if column == 0 { line } else { line.alignment(Alignment::Right) })
    });
    let mut header: Vec<Cell> = header.collect();
    header.insert(0, Cell::from(""));
    let columns = [1, key_width].into_iter().chain(widths).map(Constraint::Length);
    frame.render_widget(Table::new(rows, columns).header(Row::new(header)), area);
}

fn row(theme: Theme, table: &tasks::Table, index: usize, is_full: bool, key_width: usize) -> Row<'static> {
    let row = &table.rows[index];
    let right = |text: String| Cell::from(Line::from(text).alignment(Alignment::Right));
    let (estimate, aside) = (&table.listed_for(row), task_text::aside(table, row));
    let (value, aside, bound) = match is_full {
        true => (number(estimate.value, 0), aside, interval(estimate, 0)),
        false => {
            let bound = match (estimate.lower(), estimate.upper()) {
                (Some(lower), Some(upper)) => format!("{}..{}", signed_short(lower), signed_short(upper)),
                _ => interval(estimate, 0),
            };
            let aside = Some(aside).filter(|aside| aside.len() <= usize::from(SHORT[1]));
            (signed_short(estimate.value), aside.unwrap_or_default(), bound)
        }
    };
    Row::new([
        Cell::from(""),
        Cell::from(elided(&row.name.to_string(), key_width)),
        right(value).style(theme.strong()),
        right(aside).style(theme.muted()),
        right(bound).style(theme.muted()),
    ])
}

fn signed_short(value: f64) -> String {
    let text = short(value.abs().round() as u64);
    if value <= -0.5 { format!("-{text}") } else { text }
}
