//! Words of a file in messages, and the known name that a misspelt one was probably meant to be.

use std::fmt;

/// Longest name for which a near one is searched: searching takes time in proportion.
const LONGEST_GUESSED: usize = 64;

/// Least similarity of a name to one that is suggested for it, 0 to 1 (Jaro and Winkler's).
const LEAST_SIMILARITY: f64 = 0.75;

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
    Nearest(&'static str),
    /// The key exists, in another section.
    BelongsIn(&'static str),
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

/// The known name that is most like `name`, if one is much like it.
pub fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Hint {
    if name.len() > LONGEST_GUESSED {
        return Hint::Nothing;
    }
    let name = name.to_lowercase().replace('-', "_");
    known
        .map(|known| (known, similarity(&name, known)))
        .filter(|&(_, similarity)| similarity >= LEAST_SIMILARITY)
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map_or(Hint::Nothing, |(known, _)| Hint::Nearest(known))
}

/// 0 to 1. Jaro and Winkler's knows little of names of three letters; two of them that change places are one slip.
fn similarity(name: &str, known: &str) -> f64 {
    let swapped = name.len() > 2 && name.len() == known.len() && strsim::osa_distance(name, known) == 1;
    strsim::jaro_winkler(name, known).max(if swapped { LEAST_SIMILARITY } else { 0.0 })
}
