//! The result of a task in one line, and its history over windows.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use thalweg_measure::tasks::{Headline, Table};
use thalweg_watch::snapshot::TaskRow;

use crate::figures::number;
use crate::task_text;
use crate::terminal::Theme;
use crate::terminal::quantity::grouped;
use crate::terminal::screen::{counted, draw_history};

/// Draws a sparkline of figures from zero, with the newest at the right.
pub(super) fn draw_figures(theme: Theme, figures: &[f64], frame: &mut Frame, area: Rect) {
    const STEPS: f64 = 1e6;
    let newest_first = figures.iter().rev().take(usize::from(area.width));
    let most = newest_first.clone().copied().fold(0.0, f64::max);
    let step = |figure: &f64| if most > 0.0 { (figure.max(0.0) / most * STEPS) as u64 } else { 0 };
    draw_history(frame, area, newest_first.map(step).collect(), theme.outward());
}

/// Returns the result in one line.
pub(super) fn answer_in_words(row: &TaskRow) -> String {
    match &row.latest {
        None if row.spec.period().is_some() => "needs two complete periods".to_owned(),
        None => "needs a complete window".to_owned(),
        Some(table) => task_text::headline(table),
    }
}

/// Draws the history of a scalar task below the list.
pub(super) fn draw_scalar(theme: Theme, row: &TaskRow, frame: &mut Frame, area: Rect) {
    let [words, history] = Layout::vertical([Constraint::Length(2), Constraint::Min(0)]).areas(area);
    let most = row.figures.iter().copied().fold(0.0, f64::max);
    let least = row.figures.iter().copied().fold(f64::INFINITY, f64::min);
    let decimals = match row.latest.as_ref().map(|table| &table.headline) {
        Some(Headline::Estimate { decimals, .. }) => *decimals,
        _ => 0,
    };
    let range = match row.figures.len() {
        0 => String::new(),
        windows => format!(
            "{} to {} in {}",
            number(least, decimals),
            number(most, decimals),
            counted(&grouped(windows as u64), "window", "windows")
        ),
    };
    let lines = vec![
        Line::raw(format!("  {}", more_in_words(row))),
        Line::styled(format!("  {range}"), theme.muted()),
    ];
    frame.render_widget(Paragraph::new(lines), words);
    draw_figures(theme, &row.figures, frame, history);
}

fn more_in_words(row: &TaskRow) -> String {
    let answer = answer_in_words(row);
    match &row.latest {
        Some(Table { headline: Headline::Estimate { more, .. }, .. }) if !more.is_empty() => {
            format!("{answer}; {}", task_text::words(more))
        }
        _ => answer,
    }
}
