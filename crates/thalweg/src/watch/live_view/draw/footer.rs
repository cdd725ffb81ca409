//! The last line: the state of the view and its keys; above it, the filter while one is typed.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::super::theme::Theme;
use super::super::view::{LiveView, Pane};
use super::width_of;

const FILTER_HINT: &str = "words that all match: 10.0.0.0/8  2001:db8::1  10.0.0.1:443  443  tcp  cheetah";

/// Draws state and keys.
pub(super) fn draw(view: &LiveView, frame: &mut Frame, area: Rect) {
    let theme = view.theme;
    let mut spans = state(view);
    for (key, meaning) in keys(view) {
        if *key == "t" && !view.has_tasks() {
            continue;
        }
        if width_of(&spans) + key.len() + meaning.len() + 2 > usize::from(area.width) {
            break;
        }
        spans.push(Span::styled(format!(" {key}"), theme.strong()));
        spans.push(Span::styled(format!(" {meaning} "), theme.muted()));
    }
    frame.render_widget(Line::from(spans), area);
}

fn state(view: &LiveView) -> Vec<Span<'static>> {
    let theme = view.theme;
    let badge = |text: &'static str| Span::styled(text, theme.warning().add_modifier(Modifier::REVERSED));
    match (view.is_paused(), view.has_ended()) {
        (true, _) => vec![badge(" PAUSED "), Span::raw(" measuring goes on ")],
        (false, true) => vec![badge(" END "), Span::raw(" all input read ")],
        (false, false) => Vec::new(),
    }
}

fn keys(view: &LiveView) -> &'static [(&'static str, &'static str)] {
    if view.filter_box.is_some() {
        return &[("enter", "keep"), ("esc", "clear"), ("ctrl-u", "empty the line")];
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
        Pane::Cheetahs => {
            &[("q", "quit"), ("?", "help"), ("esc", "flows"), ("enter", "one flow"), ("space", "pause")]
        }
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
    let Some(line) = &view.filter_box else { return };
    let theme = view.theme;
    let (before, after) = line.halves();
    let (under, after) = split_first(after);
    let typed = Line::from(vec![
        Span::styled(" filter ", theme.badge()),
        Span::raw(" "),
        Span::raw(tail(&before, usize::from(area.width).saturating_sub(12))),
        Span::styled(under, theme.selected()),
        Span::raw(after),
    ]);
    frame.render_widget(Paragraph::new(vec![typed, remark(theme, view)]), area);
}

fn remark(theme: Theme, view: &LiveView) -> Line<'static> {
    match view.filter_error() {
        Some(error) => Line::styled(format!("         {error}"), theme.loss()),
        None => Line::styled(format!("         {FILTER_HINT}"), theme.muted()),
    }
}

/// The character that the cursor is on, a blank at the end of the line, and those after it.
fn split_first(text: String) -> (String, String) {
    let mut chars = text.chars();
    let first = chars.next().unwrap_or(' ');
    (first.to_string(), chars.collect())
}

/// The last `width` characters.
fn tail(text: &str, width: usize) -> String {
    let skipped = text.chars().count().saturating_sub(width);
    text.chars().skip(skipped).collect()
}
