//! What screens are put together from.

use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Borders, Clear, Paragraph, RenderDirection, Sparkline};

use super::line_box::LineBox;
use super::theme::Theme;

/// Below this many columns or rows only a message is shown.
const LEAST: (u16, u16) = (60, 10);

/// Whether only a message has room.
pub(crate) fn is_too_small(area: Rect) -> bool {
    area.width < LEAST.0 || area.height < LEAST.1
}

/// Says how large the terminal should be; `remark` is the last line.
pub(crate) fn say_too_small(remark: &'static str, frame: &mut Frame, area: Rect) {
    let (columns, rows) = LEAST;
    let message = vec![
        Line::from("thalweg needs a larger terminal:"),
        Line::from(format!("{columns}x{rows}, this is {}x{}", area.width, area.height)),
        Line::from(remark),
    ];
    frame.render_widget(Paragraph::new(message), area);
}

/// A rule across the screen with titles at its left and right, over what follows.
pub(crate) fn rule<'a>(theme: Theme, left: Line<'a>, right: Line<'a>) -> Block<'a> {
    Block::new()
        .borders(Borders::TOP)
        .border_style(theme.muted())
        .title_style(Style::reset())
        .title_top(left)
        .title_top(right.alignment(Alignment::Right))
}

/// A box with a title.
pub(crate) fn panel<'a>(theme: Theme, title: &'a str) -> Block<'a> {
    Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(theme.muted())
        .title_style(Style::reset())
        .title_top(Span::styled(format!(" {title} "), theme.strong()))
}

/// Columns that these take.
pub(crate) fn width_of(spans: &[Span]) -> usize {
    spans.iter().map(Span::width).sum()
}

/// `1 flow`, `2 flows`.
pub(crate) fn counted(count: &str, one: &str, many: &str) -> String {
    format!("{count} {}", if count == "1" { one } else { many })
}

/// These in at most `width` columns: what does not fit gives way to `…`, as a number that is cut short would be a wrong
/// one.
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

/// Text at the right of its column.
pub(crate) fn right(text: String) -> Line<'static> {
    Line::from(text).alignment(Alignment::Right)
}

/// The theme of a row's text and the style of the whole row: a selected row is reversed, in one colour.
pub(crate) fn row_styles(theme: Theme, selected: bool) -> (Theme, Style) {
    if selected { (Theme::PLAIN, theme.selected()) } else { (theme, Style::new()) }
}

/// A sparkline, the newest value at its right.
pub(crate) fn draw_history(frame: &mut Frame, area: Rect, newest_first: Vec<u64>, style: Style) {
    let sparkline =
        Sparkline::default().data(newest_first).direction(RenderDirection::RightToLeft).style(style);
    frame.render_widget(sparkline, area);
}

/// A state that must not be overlooked: ` PAUSED `.
pub(crate) fn state_badge(theme: Theme, text: &'static str) -> Span<'static> {
    Span::styled(text, theme.warning().add_modifier(Modifier::REVERSED))
}

/// A line of the state, and as many keys with their meanings as there is room for.
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

/// A line being typed after its name, and under it a hint, or what is wrong with it.
pub(crate) fn draw_line_box(
    theme: Theme,
    line: &LineBox,
    (name, remark): (&str, Result<&str, String>),
    frame: &mut Frame,
    area: Rect,
) {
    let (before, after) = line.halves();
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

/// What the keys do, in the middle of the screen; an empty key begins a paragraph.
pub(crate) fn draw_help(theme: Theme, keys: &[(&str, &'static str)], frame: &mut Frame, area: Rect) {
    let block = panel(theme, "help: any key closes it");
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
