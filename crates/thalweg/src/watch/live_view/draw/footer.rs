//! The last line with state and keys; the filter input.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Span;

use thalweg_watch::groups::Grouping;

use super::super::view::{LiveView, Pane};
use crate::terminal::screen::{draw_keys, draw_text_input, state_badge};

/// Draws state and keys.
pub(super) fn draw(view: &LiveView, frame: &mut Frame, area: Rect) {
    let keys = keys(view).iter().filter(|(key, _)| *key != "t" || view.has_tasks());
    draw_keys(view.theme, state(view), keys, frame, area);
}

fn state(view: &LiveView) -> Vec<Span<'static>> {
    let badge = |text| state_badge(view.theme, text);
    let mut spans = if view.running_capture().is_some() { vec![badge(" REC ")] } else { Vec::new() };
    spans.extend(pause_or_end(view));
    spans
}

fn pause_or_end(view: &LiveView) -> Vec<Span<'static>> {
    let badge = |text| state_badge(view.theme, text);
    match (view.is_paused(), view.has_ended()) {
        (true, _) => vec![badge(" PAUSED "), Span::raw(" measurement continues ")],
        (false, true) => vec![badge(" END "), Span::raw(" all input read ")],
        (false, false) => Vec::new(),
    }
}

fn keys(view: &LiveView) -> &'static [(&'static str, &'static str)] {
    if view.filter_input.is_some() {
        return &[("enter", "apply"), ("esc", "clear the filter"), ("ctrl-u", "clear the line")];
    }
    match view.pane {
        Pane::Flows if view.is_paused() => {
            &[("q", "quit"), ("?", "help"), ("/", "filter"), ("s", "sort"), ("b", "by"), ("space", "resume")]
        }
        Pane::Flows if view.query.scope.is_some() => &[
            ("q", "quit"),
            ("?", "help"),
            ("esc", "back"),
            ("/", "filter"),
            ("s", "sort"),
            ("space", "pause"),
            ("enter", "open flow"),
        ],
        Pane::Flows if view.query.grouping != Grouping::Flow => &[
            ("q", "quit"),
            ("?", "help"),
            ("/", "filter"),
            ("s", "sort"),
            ("b", "by"),
            ("n", "names"),
            ("space", "pause"),
            ("enter", "flows"),
            ("t", "tasks"),
            ("c", "cheetahs"),
        ],
        Pane::Flows if view.has_ended() => &[
            ("q", "quit"),
            ("?", "help"),
            ("/", "filter"),
            ("s", "sort"),
            ("b", "by"),
            ("t", "tasks"),
            ("enter", "open flow"),
            ("c", "cheetahs"),
        ],
        Pane::Flows => &[
            ("q", "quit"),
            ("?", "help"),
            ("/", "filter"),
            ("s", "sort"),
            ("b", "by"),
            ("n", "names"),
            ("space", "pause"),
            ("t", "tasks"),
            ("enter", "open flow"),
            ("c", "cheetahs"),
        ],
        Pane::Cheetahs => &[
            ("q", "quit"),
            ("?", "help"),
            ("esc", "flows"),
            ("/", "filter"),
            ("enter", "open flow"),
            ("space", "pause"),
        ],
        Pane::Tasks if view.displayed().snapshot.no_table => {
            &[("q", "quit"), ("?", "help"), ("↑↓", "select"), ("enter", "open task"), ("space", "pause")]
        }
        Pane::Tasks => &[
            ("q", "quit"),
            ("?", "help"),
            ("esc", "flows"),
            ("↑↓", "select"),
            ("enter", "open task"),
            ("space", "pause"),
        ],
        Pane::Detail { .. } if view.running_capture().is_some() => &[
            ("q", "quit"),
            ("?", "help"),
            ("esc", "back"),
            ("f", "capture filter"),
            ("w", "stop writing"),
            ("space", "pause"),
        ],
        Pane::Detail { .. } => &[
            ("q", "quit"),
            ("?", "help"),
            ("esc", "back"),
            ("f", "capture filter"),
            ("w", "write packets"),
            ("space", "pause"),
        ],
        Pane::OneTask => &[("q", "quit"), ("?", "help"), ("esc", "back"), ("space", "pause")],
    }
}

/// Draws the filter input, with its error or a hint below.
pub(super) fn draw_filter_input(view: &LiveView, frame: &mut Frame, area: Rect) {
    let Some(input) = &view.filter_input else { return };
    draw_text_input(view.theme, input.line(), ("filter", input.remark()), frame, area);
}
