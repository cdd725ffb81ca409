//! The help overlay: a list of keys in the middle of the screen, which scrolls if the screen is too short for it.

use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use super::cursor::{Step, step_of};
use super::screen::panel;
use super::theme::Theme;

/// Whether the overlay is open, and what it shows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Help {
    is_open: bool,
    /// First visible line.
    first: usize,
    /// Visible lines when last drawn, and those before or after them.
    visible: usize,
    hidden: usize,
}

impl Help {
    /// Opens the overlay at its first line.
    pub(crate) fn open(&mut self) {
        *self = Help { is_open: true, ..Help::default() };
    }

    /// Closes the overlay.
    pub(crate) fn close(&mut self) {
        self.is_open = false;
    }

    /// Whether the overlay covers the screen.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Handles a key: a movement scrolls if lines are hidden, any other key closes the overlay.
    pub(crate) fn key(&mut self, code: KeyCode) {
        match step_of(code) {
            Some(step) if self.hidden > 0 => self.scroll(step),
            _ => self.close(),
        }
    }

    /// Scrolls, as far as there are hidden lines.
    pub(crate) fn scroll(&mut self, step: Step) {
        let first = match step {
            Step::Up => self.first.saturating_sub(1),
            Step::Down => self.first + 1,
            Step::PageUp => self.first.saturating_sub(self.visible),
            Step::PageDown => self.first + self.visible,
            Step::First => 0,
            Step::Last => self.hidden,
        };
        self.first = first.min(self.hidden);
    }

    /// Draws the overlay. An empty key is an empty line.
    pub(crate) fn draw(
        &mut self,
        theme: Theme,
        keys: &[(&str, &'static str)],
        frame: &mut Frame,
        area: Rect,
    ) {
        let place = middle(area, 64, keys.len() as u16 + 2);
        self.visible = usize::from(place.height.saturating_sub(2)).min(keys.len());
        self.hidden = keys.len() - self.visible;
        self.first = self.first.min(self.hidden);
        let block = match self.hidden {
            0 => panel(theme, "help: press any key to close"),
            hidden => {
                let (above, below) = (self.first, hidden - self.first);
                let rest = format!(" hidden lines: {above} above, {below} below ");
                panel(theme, "help: ↑ ↓ scroll, any other key closes").title_bottom(Span::raw(rest))
            }
        };
        let shown = &keys[self.first..self.first + self.visible];
        let lines: Vec<Line> = shown.iter().map(|(key, meaning)| line(theme, key, meaning)).collect();
        frame.render_widget(Clear, place);
        frame.render_widget(Paragraph::new(lines).block(block), place);
    }
}

fn line(theme: Theme, key: &str, meaning: &'static str) -> Line<'static> {
    let style = if key == "▲" { theme.cheetah() } else { theme.strong() };
    Line::from(vec![Span::styled(format!("  {key:<10}"), style), Span::raw(meaning)])
}

fn middle(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    const KEYS: [(&str, &str); 5] =
        [("a", "one"), ("b", "two"), ("c", "three"), ("d", "four"), ("e", "five")];

    fn drawn(help: &mut Help, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(64, height)).unwrap();
        terminal.draw(|frame| help.draw(Theme::PLAIN, &KEYS, frame, frame.area())).unwrap();
        let cells = terminal.backend().buffer();
        let row = |y| (0..64).map(|x| cells[(x, y)].symbol()).collect::<String>();
        (0..height).map(row).collect::<Vec<_>>().join("\n")
    }

    fn opened() -> Help {
        let mut help = Help::default();
        help.open();
        help
    }

    #[test]
    fn any_key_closes_a_help_that_is_whole() {
        let mut help = opened();
        let text = drawn(&mut help, 7);
        assert!(
            text.contains("press any key to close") && text.contains("five") && !text.contains("below"),
            "{text}"
        );
        help.key(KeyCode::Down);
        assert!(!help.is_open());
    }

    #[test]
    fn a_help_beyond_the_screen_scrolls() {
        let mut help = opened();
        let text = drawn(&mut help, 5);
        assert!(text.contains("↑ ↓ scroll") && text.contains("0 above, 2 below"), "{text}");
        assert!(text.contains("three") && !text.contains("four"), "{text}");
        for (key, first) in [
            (KeyCode::Down, "two"),
            (KeyCode::PageDown, "three"),
            (KeyCode::Up, "two"),
            (KeyCode::Home, "one"),
            (KeyCode::Char('G'), "three"),
        ] {
            help.key(key);
            let text = drawn(&mut help, 5);
            let second_row = text.lines().nth(1).unwrap();
            assert!(second_row.contains(first), "{key:?}: {text}");
        }
        help.key(KeyCode::Esc);
        assert!(!help.is_open());
        help.open();
        assert!(drawn(&mut help, 5).contains("one"), "opens at the first line");
    }

    proptest! {
        #[test]
        fn every_line_can_be_reached(height in 3..12u16, larger in 0..12u16) {
            let mut help = opened();
            let mut text = drawn(&mut help, height);
            for _ in 0..KEYS.len() {
                help.scroll(Step::Down);
                text += &drawn(&mut help, height);
            }
            prop_assert!(KEYS.iter().all(|(_, meaning)| text.contains(meaning)));
            // A screen that grows shows as many lines as it can.
            let shown = drawn(&mut help, height + larger);
            let expected = usize::from(height + larger - 2).min(KEYS.len());
            prop_assert_eq!(KEYS.iter().filter(|(_, meaning)| shown.contains(meaning)).count(), expected);
        }
    }
}
