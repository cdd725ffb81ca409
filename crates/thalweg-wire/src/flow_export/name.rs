//! Names that many records share: of interfaces, VRFs, exporters and countries.
//!
//! A [`Name`] is the number of a text in one table of the process. So a record with names is a few bytes, copied and
//! compared as a number. Texts stay until the process ends, and there are at most [`MAX_NAMES`] of at most
//! [`MAX_NAME_LENGTH`] bytes (at most 24 MiB in all): networks have some ten thousand interfaces, whose names hardly
//! change. A table that exporters fill with ever new names refuses further ones, which its callers count.

use std::collections::HashMap;
use std::fmt;
use std::sync::{LazyLock, PoisonError, RwLock};

/// The maximum number of different names.
pub const MAX_NAMES: usize = 1 << 18;

/// The maximum length of a name in bytes; longer ones are cut. `ifName` has up to 255 (RFC 2863), devices use far less.
pub const MAX_NAME_LENGTH: usize = 64;

/// A name, or [`Name::NONE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(u32);

#[derive(Default)]
struct Table {
    texts: Vec<&'static str>,
    numbers: HashMap<&'static str, u32>,
}

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(RwLock::default);

impl Name {
    /// No name.
    pub const NONE: Name = Name(0);

    /// Returns the name of a text; [`Name::NONE`] for the empty one. `None` if there are too many names.
    pub fn of(text: &str) -> Option<Name> {
        let text = &text[..text.floor_char_boundary(MAX_NAME_LENGTH)];
        if text.is_empty() {
            return Some(Name::NONE);
        }
        let known = |table: &Table| table.numbers.get(text).map(|&number| Name(number));
        if let Some(name) = known(&TABLE.read().unwrap_or_else(PoisonError::into_inner)) {
            return Some(name);
        }
        let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = known(&table) {
            return Some(name);
        }
        if table.texts.len() >= MAX_NAMES {
            return None;
        }
        let text: &'static str = Box::leak(text.into());
        table.texts.push(text);
        let number = table.texts.len() as u32;
        table.numbers.insert(text, number);
        Some(Name(number))
    }

    /// Returns the name of bytes that an exporter sent: up to the first zero, without characters that are invisible or change
    /// the direction of text, and with a replacement character instead of what is not UTF-8.
    pub fn of_bytes(bytes: &[u8]) -> Option<Name> {
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        let text = String::from_utf8_lossy(&bytes[..end]);
        let printable: String = text.chars().filter(|&character| !is_invisible(character)).collect();
        Name::of(printable.trim())
    }

    /// Whether this is a name.
    pub fn is_some(self) -> bool {
        self != Name::NONE
    }

    /// Returns the text; empty for none.
    pub fn text(self) -> &'static str {
        let Some(index) = (self.0 as usize).checked_sub(1) else { return "" };
        TABLE.read().unwrap_or_else(PoisonError::into_inner).texts[index]
    }

    /// Returns a number that identifies the name in this process; 0 for none.
    pub fn number(self) -> u32 {
        self.0
    }

    /// Returns the name of a number.
    ///
    /// # Panics
    /// If no name has had this number.
    pub fn of_number(number: u32) -> Name {
        let names = TABLE.read().unwrap_or_else(PoisonError::into_inner).texts.len();
        assert!(number as usize <= names, "no name has the number {number}");
        Name(number)
    }
}

/// Whether a character is a control or format character (Unicode, general categories Cc and Cf).
fn is_invisible(character: char) -> bool {
    let is_format = matches!(
        character,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    );
    is_format || character.is_control()
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_name() {
        let (first, again) = (Name::of("xe-0/0/1").unwrap(), Name::of_bytes(b"xe-0/0/1\0\0ignored").unwrap());
        assert_eq!((first, first.text(), first.is_some()), (again, "xe-0/0/1", true));
        assert_eq!(Name::of_number(first.number()), first);
        assert_ne!(Name::of("xe-0/0/2"), Some(first));
        assert_eq!(
            (Name::of(""), Name::of_bytes(b"\0\0"), Name::NONE.text()),
            (Some(Name::NONE), Some(Name::NONE), "")
        );
    }

    #[test]
    fn bytes_of_exporters_become_printable() {
        assert_eq!(Name::of_bytes(b" a\x1b[2Jb\xff ").unwrap().text(), "a[2Jb\u{fffd}");
        assert_eq!(Name::of_bytes("é\u{202e}\u{200b}x".as_bytes()).unwrap().text(), "éx");
        let long = Name::of(&"\u{e9}".repeat(40)).unwrap();
        assert_eq!(long.text(), "\u{e9}".repeat(32));
    }
}
