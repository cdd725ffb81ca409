//! A single-line text input, such as for a filter.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Maximum number of characters.
const MAX_LENGTH: usize = 200;

/// Text and cursor position.
#[derive(Clone, Debug)]
pub(crate) struct TextInput {
    text: Vec<char>,
    cursor: usize,
}

/// The effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// The text changed.
    Changed,
    /// At most the cursor moved.
    Moved,
}

impl TextInput {
    /// Creates an input with this text and the cursor at its end.
    pub(crate) fn new(text: &str) -> TextInput {
        let text: Vec<char> = text.chars().collect();
        TextInput { cursor: text.len(), text }
    }

    /// Returns the text before the cursor, and the text from it on.
    pub(crate) fn split(&self) -> (String, String) {
        (self.text[..self.cursor].iter().collect(), self.text[self.cursor..].iter().collect())
    }

    /// Returns the text.
    pub(crate) fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// Handles an editing key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Edit {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('u') if control => return self.cut(0, self.cursor),
            KeyCode::Char('w') if control => return self.cut(self.word_start(), self.cursor),
            KeyCode::Char('a') if control => self.cursor = 0,
            KeyCode::Char('e') if control => self.cursor = self.text.len(),
            KeyCode::Char(c) if !control => return self.insert(c),
            KeyCode::Backspace => return self.cut(self.cursor.saturating_sub(1), self.cursor),
            KeyCode::Delete => return self.cut(self.cursor, (self.cursor + 1).min(self.text.len())),
            KeyCode::Left => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Right => self.cursor = (self.cursor + 1).min(self.text.len()),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            _ => {}
        }
        Edit::Moved
    }

    fn insert(&mut self, c: char) -> Edit {
        // Filters are ASCII. Other characters may be zero or two columns wide.
        if self.text.len() == MAX_LENGTH || !(c.is_ascii_graphic() || c == ' ') {
            return Edit::Moved;
        }
        self.text.insert(self.cursor, c);
        self.cursor += 1;
        Edit::Changed
    }

    fn cut(&mut self, from: usize, to: usize) -> Edit {
        self.text.drain(from..to);
        self.cursor = from;
        if from == to { Edit::Moved } else { Edit::Changed }
    }

    /// Returns the start of the word before the cursor.
    fn word_start(&self) -> usize {
        let before = &self.text[..self.cursor];
        let end = before.iter().rposition(|c| *c != ' ').map_or(0, |last| last + 1);
        before[..end].iter().rposition(|c| *c == ' ').map_or(0, |blank| blank + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[(KeyCode, KeyModifiers)]) -> (String, String) {
        let mut line = TextInput::new("tcp :443");
        for (code, modifiers) in keys {
            line.key(KeyEvent::new(*code, *modifiers));
        }
        line.split()
    }

    #[test]
    fn the_line_is_edited_like_a_shell_line() {
        const PLAIN: KeyModifiers = KeyModifiers::NONE;
        const CONTROL: KeyModifiers = KeyModifiers::CONTROL;
        let parts = |left: &str, right: &str| (left.to_owned(), right.to_owned());
        assert_eq!(typed(&[]), parts("tcp :443", ""));
        assert_eq!(typed(&[(KeyCode::Backspace, PLAIN), (KeyCode::Char('5'), PLAIN)]), parts("tcp :445", ""));
        assert_eq!(typed(&[(KeyCode::Home, PLAIN), (KeyCode::Delete, PLAIN)]), parts("", "cp :443"));
        assert_eq!(typed(&[(KeyCode::Left, PLAIN), (KeyCode::Char('4'), PLAIN)]), parts("tcp :444", "3"));
        assert_eq!(typed(&[(KeyCode::Char('w'), CONTROL)]), parts("tcp ", ""));
        assert_eq!(typed(&[(KeyCode::Char('w'), CONTROL), (KeyCode::Char('w'), CONTROL)]), parts("", ""));
        assert_eq!(typed(&[(KeyCode::Left, PLAIN), (KeyCode::Char('u'), CONTROL)]), parts("", "3"));
        assert_eq!(typed(&[(KeyCode::Char('é'), PLAIN), (KeyCode::Right, PLAIN)]), parts("tcp :443", ""));
    }

    #[test]
    fn the_line_has_a_maximum_length() {
        let mut line = TextInput::new("");
        for _ in 0..2 * MAX_LENGTH {
            line.key(KeyEvent::from(KeyCode::Char('1')));
        }
        assert_eq!(line.split().0.len(), MAX_LENGTH);
    }
}
