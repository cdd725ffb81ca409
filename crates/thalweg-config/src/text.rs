//! Quoted file text in messages, and "did you mean" hints.

use std::fmt;

pub use thalweg_wire::nearest::nearest;
use thalweg_wire::web_url::hide_secrets_within;

/// A name or value from the file. Displayed with at most 40 characters, escaped control characters, and URLs without passwords.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(pub String);

/// A message that quotes the file. Displayed with at most 240 characters, escaped control characters, and URLs without passwords.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafeText(pub String);

/// A suggestion for a wrong name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// No suggestion.
    None,
    /// A similar known name.
    Nearest(Box<str>),
    /// The key exists in these other sections.
    BelongsIn(Box<[String]>),
}

impl Hint {
    /// Returns the known name closest to `name`, if one is close enough.
    pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Hint {
        nearest(name, known).map_or(Hint::None, |known| Hint::Nearest(known.into()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(f, &self.0, 40)
    }
}

impl fmt::Display for SafeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(f, &self.0, 240)
    }
}

fn write_escaped(f: &mut fmt::Formatter<'_>, text: &str, max_length: usize) -> fmt::Result {
    let text = hide_secrets_within(text);
    let mut characters = text.chars();
    for character in characters.by_ref().take(max_length) {
        match character.is_control() {
            true => write!(f, "{}", character.escape_default())?,
            false => write!(f, "{character}")?,
        }
    }
    if characters.next().is_some() { f.write_str("...") } else { Ok(()) }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hint::None => Ok(()),
            Hint::Nearest(name) => write!(f, "; did you mean \"{name}\"?"),
            Hint::BelongsIn(sections) => write!(f, "; it belongs in {}", sections.join(" or ")),
        }
    }
}

/// Joins the lines of a comment into paragraphs, with an empty line between them.
pub(crate) fn join_lines(lines: &[&str]) -> String {
    let paragraphs = lines.split(|line| line.trim().is_empty());
    let paragraphs =
        paragraphs.map(|lines| lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" "));
    paragraphs.filter(|paragraph| !paragraph.is_empty()).collect::<Vec<_>>().join("\n\n")
}
