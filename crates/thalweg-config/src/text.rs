//! Words of a file in messages, and the known name that a misspelt one was probably meant to be.

use std::fmt;

pub use thalweg_wire::nearest::nearest;

/// Text from the file, shown shortened and without control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(pub String);

/// A sentence that quotes the file, shown as a [`Name`] is but longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words(pub String);

/// What may have been meant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// Nothing known comes near.
    Nothing,
    /// A known name is written much the same.
    Nearest(String),
    /// The key exists, in another section.
    BelongsIn(&'static str),
}

impl Hint {
    /// The known name that is most like `name`, if one is much like it.
    pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Hint {
        nearest(name, known).map_or(Hint::Nothing, |known| Hint::Nearest(known.to_owned()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_harmless(f, &self.0, 40)
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_harmless(f, &self.0, 240)
    }
}

fn write_harmless(f: &mut fmt::Formatter<'_>, text: &str, longest: usize) -> fmt::Result {
    let mut characters = text.chars();
    for character in characters.by_ref().take(longest) {
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
            Hint::Nothing => Ok(()),
            Hint::Nearest(name) => write!(f, "; did you mean {name}?"),
            Hint::BelongsIn(section) => write!(f, "; it belongs in [{section}]"),
        }
    }
}

/// Lines of a comment to paragraphs, with an empty line between them.
pub(crate) fn joined(lines: &[&str]) -> String {
    let paragraphs = lines.split(|line| line.trim().is_empty());
    let paragraphs =
        paragraphs.map(|lines| lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" "));
    paragraphs.filter(|paragraph| !paragraph.is_empty()).collect::<Vec<_>>().join("\n\n")
}
