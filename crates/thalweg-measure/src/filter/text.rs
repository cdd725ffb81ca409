//! Texts in filters: names of interfaces, VRFs and exporters, and countries.

use std::fmt;

/// A text to compare with: the whole text, or its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    text: Box<str>,
    /// Whether any text that begins so matches. The empty beginning matches every text except the empty one.
    is_prefix: bool,
}

impl Pattern {
    /// Parses a word: a text, in quotes if it has blanks or signs. After `*` anything may follow.
    pub(super) fn parse(word: &str) -> Pattern {
        let (text, star) = match word.chars().next() {
            Some(quote @ ('"' | '\'')) => match word[1..].rsplit_once(quote) {
                Some((text, rest)) => (text, rest == "*"),
                None => (word, false),
            },
            _ => word.strip_suffix('*').map_or((word, false), |text| (text, true)),
        };
        Pattern { text: text.into(), is_prefix: star }
    }

    /// Returns the pattern of a text without quotes.
    pub(super) fn exactly(text: &str) -> Pattern {
        Pattern { text: text.into(), is_prefix: false }
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        match self.is_prefix {
            true => !text.is_empty() && text.starts_with(&*self.text),
            false => *text == *self.text,
        }
    }
}

/// Displays it, in quotes if it has other signs than those of usual names.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./:".contains(character);
        let star = if self.is_prefix { "*" } else { "" };
        if !self.text.is_empty() && self.text.chars().all(is_plain) {
            return write!(f, "{}{star}", self.text);
        }
        let quote = if self.text.contains('"') { '\'' } else { '"' };
        write!(f, "{quote}{}{quote}{star}", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compared_whole_or_by_their_beginning() {
        for (word, text, expected) in [
            ("xe-0/0/1", "xe-0/0/1", true),
            ("xe-0/0/1", "xe-0/0/10", false),
            ("xe-0/0/1*", "xe-0/0/10", true),
            ("\"to core #1\"", "to core #1", true),
            ("'a*'", "a*", true),
            ("'a'*", "ab", true),
            ("*", "", false),
            ("*", "x", true),
            ("\"\"", "", true),
            ("XE", "xe", false),
        ] {
            let pattern = Pattern::parse(word);
            assert_eq!(pattern.matches(text), expected, "{word} {text}");
            assert_eq!(Pattern::parse(&pattern.to_string()), pattern, "{word}");
        }
    }
}
