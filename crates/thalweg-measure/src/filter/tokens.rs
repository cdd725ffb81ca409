//! The words of a filter, each with its position.

use super::error::{FilterError, FilterErrorKind};
use super::{MAX_LENGTH, error};

/// A word; empty at the end of the filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// The word as written.
    pub(super) text: String,
    /// The word in lower case, for comparisons.
    pub(super) key: String,
    /// Number of characters before the word.
    pub(super) place: usize,
}

impl Token {
    fn new(characters: &[char], place: usize) -> Token {
        let text: String = characters.iter().collect();
        Token { key: text.to_ascii_lowercase(), text, place }
    }

    /// Whether this is the end of the filter.
    pub(super) fn is_end(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the word in quotes, or `the end`.
    pub(super) fn quoted(&self) -> String {
        if self.is_end() { "the end".to_owned() } else { format!("'{}'", error::shown(&self.text)) }
    }
}

/// Splits `text` into words, followed by the end.
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
            '"' | '\'' => match quoted(rest) {
                Some(length) => length,
                None => {
                    let kind = FilterErrorKind::Character { character: first };
                    return Err(FilterError::at(text, place, kind));
                }
            },
            _ => length_until(rest, |character| is_blank(character) || "<>=!()[],&|#".contains(character)),
        };
        found.push(Token::new(&rest[..length], place));
        place += length;
    }
    found.push(Token::new(&[], characters.len()));
    Ok(found)
}

/// Returns the length of a text in quotes on one line, with the `*` that may follow; `None` if it does not end.
fn quoted(rest: &[char]) -> Option<usize> {
    let end = rest[1..].iter().position(|&character| character == rest[0] || character == '\n')? + 1;
    let star = rest.get(end + 1) == Some(&'*');
    (rest[end] == rest[0]).then_some(end + 1 + usize::from(star))
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

fn length_until(characters: &[char], ends: impl Fn(char) -> bool) -> usize {
    characters.iter().position(|character| ends(*character)).unwrap_or(characters.len())
}
