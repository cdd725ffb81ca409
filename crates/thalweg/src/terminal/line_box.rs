//! A line in which something is typed, such as a filter.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Most characters; as many as anybody types.
const LONGEST: usize = 200;

/// Text, and the place in it.
#[derive(Clone, Debug)]
pub(crate) struct LineBox {
    text: Vec<char>,
    place: usize,
}

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// The text changed.
    Changed,
    /// Only the place in it, or nothing.
    Moved,
}

impl LineBox {
    /// Begins with a text, the place at its end.
    pub(crate) fn new(text: &str) -> LineBox {
        let text: Vec<char> = text.chars().collect();
        LineBox { place: text.len(), text }
    }

    /// What is typed before the place and from it on.
    pub(crate) fn halves(&self) -> (String, String) {
        (self.text[..self.place].iter().collect(), self.text[self.place..].iter().collect())
    }

    /// What is typed.
    pub(crate) fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// Takes an editing key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Edit {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('u') if control => return self.cut(0, self.place),
            KeyCode::Char('w') if control => return self.cut(self.word_start(), self.place),
            KeyCode::Char('a') if control => self.place = 0,
            KeyCode::Char('e') if control => self.place = self.text.len(),
            KeyCode::Char(c) if !control => return self.insert(c),
            KeyCode::Backspace => return self.cut(self.place.saturating_sub(1), self.place),
            KeyCode::Delete => return self.cut(self.place, (self.place + 1).min(self.text.len())),
            KeyCode::Left => self.place = self.place.saturating_sub(1),
            KeyCode::Right => self.place = (self.place + 1).min(self.text.len()),
            KeyCode::Home => self.place = 0,
            KeyCode::End => self.place = self.text.len(),
            _ => {}
        }
        Edit::Moved
    }

    fn insert(&mut self, c: char) -> Edit {
        // Every word is ASCII; other characters could be two columns wide or none.
        if self.text.len() == LONGEST || !(c.is_ascii_graphic() || c == ' ') {
            return Edit::Moved;
        }
        self.text.insert(self.place, c);
        self.place += 1;
        Edit::Changed
    }

    fn cut(&mut self, from: usize, to: usize) -> Edit {
        self.text.drain(from..to);
        self.place = from;
        if from == to { Edit::Moved } else { Edit::Changed }
    }

    /// Start of the word before the place.
    fn word_start(&self) -> usize {
        let before = &self.text[..self.place];
        let end = before.iter().rposition(|c| *c != ' ').map_or(0, |last| last + 1);
        before[..end].iter().rposition(|c| *c == ' ').map_or(0, |blank| blank + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[(KeyCode, KeyModifiers)]) -> (String, String) {
        let mut line = LineBox::new("tcp :443");
        for (code, modifiers) in keys {
            line.key(KeyEvent::new(*code, *modifiers));
        }
        line.halves()
    }

    #[test]
    fn the_line_is_edited_as_a_shell_line_is() {
        const PLAIN: KeyModifiers = KeyModifiers::NONE;
        const CONTROL: KeyModifiers = KeyModifiers::CONTROL;
        let halves = |left: &str, right: &str| (left.to_owned(), right.to_owned());
        assert_eq!(typed(&[]), halves("tcp :443", ""));
        assert_eq!(
            typed(&[(KeyCode::Backspace, PLAIN), (KeyCode::Char('5'), PLAIN)]),
            halves("tcp :445", "")
        );
        assert_eq!(typed(&[(KeyCode::Home, PLAIN), (KeyCode::Delete, PLAIN)]), halves("", "cp :443"));
        assert_eq!(typed(&[(KeyCode::Left, PLAIN), (KeyCode::Char('4'), PLAIN)]), halves("tcp :444", "3"));
        assert_eq!(typed(&[(KeyCode::Char('w'), CONTROL)]), halves("tcp ", ""));
        assert_eq!(typed(&[(KeyCode::Char('w'), CONTROL), (KeyCode::Char('w'), CONTROL)]), halves("", ""));
        assert_eq!(typed(&[(KeyCode::Left, PLAIN), (KeyCode::Char('u'), CONTROL)]), halves("", "3"));
        assert_eq!(typed(&[(KeyCode::Char('é'), PLAIN), (KeyCode::Right, PLAIN)]), halves("tcp :443", ""));
    }

    #[test]
    fn the_line_never_grows_beyond_its_bound() {
        let mut line = LineBox::new("");
        for _ in 0..2 * LONGEST {
            line.key(KeyEvent::from(KeyCode::Char('1')));
        }
        assert_eq!(line.halves().0.len(), LONGEST);
    }
}
