//! The list of measurement tasks with their latest results and histories; below it the details of the selected task.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::super::mouse::List;
use super::super::view::LiveView;
use super::task_figures::{answer_in_words, draw_figures};
use super::task_keys;
use crate::terminal::Theme;
use crate::terminal::quantity::{clock, grouped};
use crate::terminal::screen::row_styles;
use crate::terminal::screen::{counted, rule};
use thalweg_watch::snapshot::{TaskRow, TasksView};

/// Widths of the name and of the result of a task.
const NAME_WIDTH: u16 = 20;
const ANSWER_WIDTH: u16 = 46;

/// Draws the list and the selected task.
pub(super) fn draw(view: &mut LiveView, frame: &mut Frame, area: Rect) {
    let Some(tasks) = &view.displayed().snapshot.tasks else { return };
    let count = tasks.rows.len();
    // The keys have at least as much height as the list.
    let listed = (count as u16 + 2).min(area.height.div_ceil(2).max(4));
    let [list, keys] = Layout::vertical([Constraint::Length(listed), Constraint::Min(0)]).areas(area);
    let block = rule(view.theme, title(view.theme, tasks), Line::from(window(tasks)));
    let inner = block.inner(list);
    frame.render_widget(block, list);
    let [header, rows] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(inner);
    draw_header(view.theme, frame, header);
    let visible = view.tasks.visible_rows(usize::from(rows.height), count);
    view.hits.add_rows(List::Tasks, rows, visible.start, count);
    let selected = view.tasks.index().unwrap_or(0);
    for (line, number) in rows.rows().zip(visible) {
        let Some(row) = view.displayed().snapshot.tasks.as_ref().and_then(|tasks| tasks.rows.get(number))
        else {
            break;
        };
        draw_row(view.theme, row, number == selected, frame, line);
    }
    task_keys::draw(view, frame, keys);
}

fn title(theme: Theme, tasks: &TasksView) -> Line<'static> {
    let windows = counted(&grouped(tasks.windows), "window", "windows");
    Line::from(vec![
        Span::styled(" tasks ", theme.strong()),
        Span::raw(format!("after {windows} of {} ", tasks.window)),
    ])
}

/// Returns the period and packets of the last window.
fn window(tasks: &TasksView) -> String {
    let last = tasks.rows.iter().filter(|row| row.spec.period().is_none());
    match last.filter(|row| row.latest.is_some()).map(|row| (row.start, row.end)).max() {
        Some((start, end)) => {
            let packets = counted(&grouped(tasks.packets), "packet", "packets");
            format!(" {} to {}, {packets} ", &clock(start)[..8], &clock(end)[..8])
        }
        None => " first window in progress ".to_owned(),
    }
}

fn columns(area: Rect) -> [Rect; 3] {
    let answer = if area.width >= 100 { ANSWER_WIDTH + 12 } else { ANSWER_WIDTH };
    Layout::horizontal([
        Constraint::Length(2 + NAME_WIDTH),
        Constraint::Length(answer.min(area.width.saturating_sub(NAME_WIDTH + 2))),
        Constraint::Min(0),
    ])
    .areas(area)
}

fn draw_header(theme: Theme, frame: &mut Frame, area: Rect) {
    let [name, answer, history] = columns(area);
    frame.render_widget(Line::styled("  task", theme.muted()), name);
    frame.render_widget(Line::styled("result, bound", theme.muted()), answer);
    frame.render_widget(Line::styled("windows", theme.muted()).right_aligned(), history);
}

fn draw_row(theme: Theme, row: &TaskRow, is_selected: bool, frame: &mut Frame, area: Rect) {
    let (text, style) = row_styles(theme, is_selected);
    let [_, answer, history] = columns(area);
    frame.render_widget(Line::styled(format!("  {}", row.spec), style), area);
    let sampled = row.sampled.filter(|sampled| sampled.inverse() > 1);
    let sampled = sampled.map_or_else(String::new, |sampled| format!("  p {sampled}"));
    let mut words = vec![Span::styled(answer_in_words(row), style)];
    words.push(Span::styled(sampled, text.muted()));
    frame.render_widget(Line::from(words).style(style), answer);
    let filler = Line::styled(" ".repeat(usize::from(history.width)), style);
    frame.render_widget(filler, history);
    draw_figures(theme, &row.figures, frame, history);
}
