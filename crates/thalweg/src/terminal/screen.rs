//! Common parts of screens.

use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Borders, Clear, Paragraph, RenderDirection, Sparkline};

use super::text_input::TextInput;
use super::theme::Theme;

/// Minimum columns and rows. Smaller terminals show only a message.
const MIN_SIZE: (u16, u16) = (60, 10);

/// Whether the terminal is smaller than the minimum.
pub(crate) fn is_too_small(area: Rect) -> bool {
    area.width < MIN_SIZE.0 || area.height < MIN_SIZE.1
}

/// Draws a message with the minimum size; `remark` is its last line.
pub(crate) fn draw_too_small(remark: &'static str, frame: &mut Frame, area: Rect) {
    let (columns, rows) = MIN_SIZE;
    let message = vec![
        Line::from("terminal too small for thalweg:"),
        Line::from(format!("need {columns}x{rows}, have {}x{}", area.width, area.height)),
        Line::from(remark),
    ];
    frame.render_widget(Paragraph::new(message), area);
}

/// Returns a horizontal rule with titles at its left and right.
pub(crate) fn rule<'a>(theme: Theme, left: Line<'a>, right: Line<'a>) -> Block<'a> {
    Block::new()
        .borders(Borders::TOP)
        .border_style(theme.muted())
        .title_style(Style::reset())
        .title_top(left)
        .title_top(right.alignment(Alignment::Right))
}

/// Returns a box with a title.
pub(crate) fn panel<'a>(theme: Theme, title: &'a str) -> Block<'a> {
    Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(theme.muted())
        .title_style(Style::reset())
        .title_top(Span::styled(format!(" {title} "), theme.strong()))
}

/// Returns the width of spans.
pub(crate) fn width_of(spans: &[Span]) -> usize {
    spans.iter().map(Span::width).sum()
}

/// Formats a count with its noun: `1 flow`, `2 flows`.
pub(crate) fn counted(count: &str, one: &str, many: &str) -> String {
    format!("{count} {}", if count == "1" { one } else { many })
}

/// Cuts spans to `width` columns and ends them with `…`, because a truncated number would be wrong.
pub(crate) fn cut(spans: Vec<Span<'static>>, width: usize) -> Vec<Span<'static>> {
    if width_of(&spans) <= width {
        return spans;
    }
    let mut room = width.saturating_sub(1);
    let mut kept = Vec::new();
    for span in spans {
        let text: String = span.content.chars().take(room).collect();
        let is_whole = text.len() == span.content.len();
        room -= text.chars().count();
        kept.push(Span::styled(text, span.style));
        if !is_whole {
            break;
        }
    }
    kept.push(Span::raw("…"));
    kept
}

/// Returns right-aligned text.
pub(crate) fn right(text: String) -> Line<'static> {
    Line::from(text).alignment(Alignment::Right)
}

/// Returns the theme of a row's text and the style of the row. A selected row is reversed and in one colour.
pub(crate) fn row_styles(theme: Theme, selected: bool) -> (Theme, Style) {
    if selected { (Theme::PLAIN, theme.selected()) } else { (theme, Style::new()) }
}

/// Draws a sparkline with the newest value at its right.
pub(crate) fn draw_history(frame: &mut Frame, area: Rect, newest_first: Vec<u64>, style: Style) {
    let sparkline =
        Sparkline::default().data(newest_first).direction(RenderDirection::RightToLeft).style(style);
    frame.render_widget(sparkline, area);
}

/// Returns a prominent state, such as ` PAUSED `.
pub(crate) fn state_badge(theme: Theme, text: &'static str) -> Span<'static> {
    Span::styled(text, theme.warning().add_modifier(Modifier::REVERSED))
}

/// Draws a line with the state and as many keys as fit.
pub(crate) fn draw_keys<'a>(
    theme: Theme,
    state: Vec<Span<'static>>,
    keys: impl Iterator<Item = &'a (&'static str, &'static str)>,
    frame: &mut Frame,
    area: Rect,
) {
    let mut spans = state;
    for (key, meaning) in keys {
        if width_of(&spans) + key.len() + meaning.len() + 2 > usize::from(area.width) {
            break;
        }
        spans.push(Span::styled(format!(" {key}"), theme.strong()));
        spans.push(Span::styled(format!(" {meaning} "), theme.muted()));
    }
    frame.render_widget(Line::from(spans), area);
}

/// Draws a text input after its name, with a hint or an error in the next line.
pub(crate) fn draw_text_input(
    theme: Theme,
    line: &TextInput,
    (name, remark): (&str, Result<&str, String>),
    frame: &mut Frame,
    area: Rect,
) {
    let (before, after) = line.split();
    let (under, after) = split_first(after);
    let taken = name.len() + 3;
    let typed = Line::from(vec![
        Span::styled(format!(" {name} "), theme.badge()),
        Span::raw(" "),
        Span::raw(tail(&before, usize::from(area.width).saturating_sub(taken + 3))),
        Span::styled(under, theme.selected()),
        Span::raw(after),
    ]);
    let (remark, style) = match remark {
        Ok(hint) => (hint.to_owned(), theme.muted()),
        Err(error) => (error, theme.loss()),
    };
    let remark = Line::styled(format!("{}{remark}", " ".repeat(taken)), style);
    frame.render_widget(Paragraph::new(vec![typed, remark]), area);
}

/// Returns the character under the cursor, or a blank at the end of the line, and the rest.
fn split_first(text: String) -> (String, String) {
    let mut chars = text.chars();
    let first = chars.next().unwrap_or(' ');
    (first.to_string(), chars.collect())
}

/// Returns the last `width` characters.
fn tail(text: &str, width: usize) -> String {
    let skipped = text.chars().count().saturating_sub(width);
    text.chars().skip(skipped).collect()
}

/// Draws the help overlay in the middle of the screen. An empty key is an empty line.
pub(crate) fn draw_help(theme: Theme, keys: &[(&str, &'static str)], frame: &mut Frame, area: Rect) {
    let block = panel(theme, "help: press any key to close");
    let place = middle(area, 64, keys.len() as u16 + 2);
    frame.render_widget(Clear, place);
    let lines: Vec<Line> = keys.iter().map(|(key, meaning)| help_line(theme, key, meaning)).collect();
    frame.render_widget(Paragraph::new(lines).block(block), place);
}

fn help_line(theme: Theme, key: &str, meaning: &'static str) -> Line<'static> {
    let style = if key == "▲" { theme.cheetah() } else { theme.strong() };
    Line::from(vec![Span::styled(format!("  {key:<10}"), style), Span::raw(meaning)])
}

fn middle(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}
