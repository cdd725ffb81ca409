//! Common parts of screens.

use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Borders, Paragraph, RenderDirection, Sparkline};

use super::endpoint::elided;
use super::text_input::TextInput;
use super::theme::Theme;

/// Minimum columns and rows. Smaller terminals show only a message.
const MIN_SIZE: (u16, u16) = (60, 10);

/// Whether the terminal is smaller than the minimum.
pub(crate) fn is_too_small(area: Rect) -> bool {
    area.width < MIN_SIZE.0 || area.height < MIN_SIZE.1
}

/// Draws what is wrong and the minimum size, in as many words as fit. `remark` follows if there is room.
pub(crate) fn draw_too_small(remark: &str, frame: &mut Frame, area: Rect) {
    let (columns, rows) = MIN_SIZE;
    let least = format!("{columns}x{rows}");
    let texts = [
        format!(
            "Terminal too small: thalweg needs {least}, this is {}x{}. {remark}",
            area.width, area.height
        ),
        format!("Terminal too small: needs {least}. q quits."),
        format!("Too small: needs {least}"),
        format!("needs {least}"),
        least,
    ];
    let fits = |lines: &Vec<String>| {
        lines.len() <= usize::from(area.height)
            && lines.iter().all(|line| line.chars().count() <= usize::from(area.width))
    };
    let message = texts.iter().map(|text| wrap(text, usize::from(area.width))).find(fits);
    let lines: Vec<Line> = message.into_iter().flatten().map(Line::from).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

/// Breaks text at blanks into lines of at most `width` columns. A longer word has a line of its own.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines
}

/// Cuts text to `width` columns at a blank, and ends it with `…`.
pub(crate) fn cut_at_word(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    let end = kept.rfind(' ').unwrap_or(0);
    match kept[..end].trim_end() {
        "" => elided(text, width),
        words => format!("{words} …"),
    }
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
    let remark = cut_at_word(&remark, usize::from(area.width).saturating_sub(taken));
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn too_small(width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw_too_small("q quits.", frame, frame.area())).unwrap();
        let cells = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| cells[(x, y)].symbol()).collect::<String>();
        (0..height).map(|y| line(y).trim_end().to_owned() + "/").collect::<String>()
    }

    #[test]
    fn a_small_screen_gets_the_longest_message_that_fits() {
        assert_eq!(too_small(40, 3), "Terminal too small: thalweg needs 60x10,/this is 40x3. q quits.//");
        assert_eq!(too_small(20, 5), "Terminal too small:/thalweg needs 60x10,/this is 20x5. q/quits.//");
        assert_eq!(too_small(20, 2), "Too small: needs/60x10/");
        assert_eq!(too_small(11, 1), "needs 60x10/");
        assert_eq!(too_small(5, 1), "60x10/");
        assert_eq!(too_small(4, 2), "//");
    }

    #[test]
    fn text_is_cut_at_a_word() {
        assert_eq!(cut_at_word("one two three", 13), "one two three");
        assert_eq!(cut_at_word("one two three", 12), "one two …");
        assert_eq!(cut_at_word("one two three", 8), "one …");
        assert_eq!(cut_at_word("one two three", 3), "o…e", "no word fits");
    }

    proptest! {
        #[test]
        fn cut_and_wrapped_text_has_its_width(text in "[a-zé ]{0,40}", width in 1..50usize) {
            prop_assert!(cut_at_word(&text, width).chars().count() <= width);
            for line in wrap(&text, width) {
                prop_assert!(line.chars().count() <= width || !line.contains(' '));
            }
        }

        #[test]
        fn a_small_screen_never_shows_a_part_of_the_size(width in 1..60u16, height in 1..10u16) {
            let text = too_small(width, height);
            prop_assert!(text.contains("60x10") || width < 5, "{}", text);
        }
    }
}
