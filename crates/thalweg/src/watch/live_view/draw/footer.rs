//! The last line: the state of the view and its keys; above it, the filter while one is typed.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Span;

use super::super::view::{LiveView, Pane};
use crate::terminal::screen::{draw_keys, draw_line_box, state_badge};

/// Draws state and keys.
pub(super) fn draw(view: &LiveView, frame: &mut Frame, area: Rect) {
    let keys = keys(view).iter().filter(|(key, _)| *key != "t" || view.has_tasks());
    draw_keys(view.theme, state(view), keys, frame, area);
}

fn state(view: &LiveView) -> Vec<Span<'static>> {
    let badge = |text| state_badge(view.theme, text);
    match (view.is_paused(), view.has_ended()) {
        (true, _) => vec![badge(" PAUSED "), Span::raw(" measuring goes on ")],
        (false, true) => vec![badge(" END "), Span::raw(" all input read ")],
        (false, false) => Vec::new(),
    }
}

fn keys(view: &LiveView) -> &'static [(&'static str, &'static str)] {
    if view.filter_box.is_some() {
        return &[("enter", "apply"), ("esc", "clear"), ("ctrl-u", "empty the line")];
    }
    match view.pane {
        Pane::Flows if view.is_paused() => {
            &[("q", "quit"), ("?", "help"), ("/", "filter"), ("s", "sort"), ("space", "go on")]
        }
        Pane::Flows if view.has_ended() => &[
            ("q", "quit"),
            ("?", "help"),
            ("/", "filter"),
            ("s", "sort"),
            ("t", "tasks"),
            ("enter", "one flow"),
            ("c", "cheetahs"),
        ],
        Pane::Flows => &[
            ("q", "quit"),
            ("?", "help"),
            ("/", "filter"),
            ("s", "sort"),
            ("space", "pause"),
            ("t", "tasks"),
            ("enter", "one flow"),
            ("c", "cheetahs"),
        ],
        Pane::Cheetahs => &[
            ("q", "quit"),
            ("?", "help"),
            ("esc", "flows"),
            ("/", "filter"),
            ("enter", "one flow"),
            ("space", "pause"),
        ],
        Pane::Tasks if view.shown().snapshot.no_table => {
            &[("q", "quit"), ("?", "help"), ("↑↓", "choose"), ("enter", "one task"), ("space", "pause")]
        }
        Pane::Tasks => &[
            ("q", "quit"),
            ("?", "help"),
            ("esc", "flows"),
            ("↑↓", "choose"),
            ("enter", "one task"),
            ("space", "pause"),
        ],
        Pane::OneTask | Pane::Detail { .. } => {
            &[("q", "quit"), ("?", "help"), ("esc", "back"), ("space", "pause")]
        }
    }
}

/// Draws the filter being typed, and under it what is wrong with it or what can be typed.
pub(super) fn draw_filter_box(view: &LiveView, frame: &mut Frame, area: Rect) {
    let Some(filter_box) = &view.filter_box else { return };
    draw_line_box(view.theme, filter_box.line(), ("filter", filter_box.remark()), frame, area);
}
