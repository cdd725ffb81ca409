//! The words of a filter, each with its place.

use super::error::{FilterError, FilterErrorKind};
use super::{MAX_LENGTH, error};

/// A word; the empty one is the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// As it was written.
    pub(super) text: String,
    /// In lower case, as the language compares words.
    pub(super) key: String,
    /// Characters before it.
    pub(super) place: usize,
}

impl Token {
    fn new(characters: &[char], place: usize) -> Token {
        let text: String = characters.iter().collect();
        Token { key: text.to_ascii_lowercase(), text, place }
    }

    /// Whether it is the end of the filter.
    pub(super) fn is_end(&self) -> bool {
        self.text.is_empty()
    }

    /// The word in quotes, or `the end`.
    pub(super) fn quoted(&self) -> String {
        if self.is_end() { "the end".to_owned() } else { format!("'{}'", error::shown(&self.text)) }
    }
}

/// The words of `text`, and the end after them.
///
/// # Errors
/// If the text is too long, or has a character that starts no word.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, FilterError> {
    if text.chars().nth(MAX_LENGTH).is_some() {
        return Err(FilterError::at(text, 0, FilterErrorKind::TooLong));
    }
    let characters: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut place = 0;
    while let Some(&first) = characters.get(place) {
        let rest = &characters[place..];
        let length = match first {
            first if is_blank(first) => {
                place += 1;
                continue;
            }
            '#' => {
                place += length_until(rest, |character| character == '\n');
                continue;
            }
            '&' | '|' if rest.get(1) == Some(&first) => 2,
            '&' | '|' => {
                let kind = FilterErrorKind::Character { character: first };
                return Err(FilterError::at(text, place, kind));
            }
            '<' | '>' | '=' | '!' => 1 + usize::from(rest.get(1) == Some(&'=')),
            '(' | ')' | '[' | ']' | ',' => 1,
            _ => length_until(rest, |character| is_blank(character) || "<>=!()[],&|#".contains(character)),
        };
        found.push(Token::new(&rest[..length], place));
        place += length;
    }
    found.push(Token::new(&[], characters.len()));
    Ok(found)
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

fn length_until(characters: &[char], ends: impl Fn(char) -> bool) -> usize {
    characters.iter().position(|character| ends(*character)).unwrap_or(characters.len())
}
