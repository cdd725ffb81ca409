//! Documents: TOML files whose sections and keys stand in a table.
//!
//! | file | what it has |
//! |---|---|
//! | `key` | what a kind of document is: its sections, their keys, what these may say |
//! | `parse` | a file to a [`Document`] |
//! | `change` | one key set from outside, as a sweep does |
//! | `print` | a document with all its defaults, and the reference of its kind |
//! | `error` | what can be wrong |
//! | `form`, `text`, `paragraph` | values in TOML, words of a file in messages, text in lines of limited width |
//!
//! A [`Document`] holds what was written, checked value by value. What the values mean together is for whoever uses it
//! to say; [`Entry::refuse`] makes a problem of what makes no sense, with the line where it was written.

mod change;
mod error;
pub mod form;
pub mod key;
pub mod paragraph;
mod parse;
mod print;
pub mod text;

use std::path::PathBuf;

use thalweg_wire::{BitRate, Bytes, Nanos};

pub use error::{DocumentError, Place, Problem, ProblemKind};
use key::{Default, Key, Schema, Section};
pub use print::{REFERENCE_WIDTH, reference};
pub use text::{Hint, Name, Words, nearest};

/// What a file says.
#[derive(Clone, Debug)]
pub struct Document {
    /// What kind it is.
    pub schema: &'static Schema,
    /// Name of the file, for messages.
    pub file: String,
    /// The folder that other files are named from.
    pub folder: PathBuf,
    /// One of each section that does not repeat, as many as there are of each that does; in the order of the table.
    entries: Vec<Entry>,
}

/// A section with what it says.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Which.
    pub section: &'static Section,
    /// Where it begins; the first line if it is not there.
    place: Place,
    values: Vec<Written>,
    /// What its selector selects; empty without one.
    chosen: String,
}

/// A value, and where it was written.
#[derive(Clone, Debug)]
struct Written {
    key: &'static Key,
    text: String,
    place: Place,
}

impl Document {
    /// All sections: each that does not repeat, and those there are of each that does, in the order of the table.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The section of which there is one.
    ///
    /// # Panics
    /// If `section` is none of the table.
    pub fn entry(&self, section: &'static Section) -> &Entry {
        self.all(section).next().expect("each section that does not repeat is there")
    }

    /// The sections of which there may be several.
    pub fn all(&self, section: &'static Section) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| std::ptr::eq(entry.section, section))
    }

    /// An error of this document.
    pub fn error(&self, mut problems: Vec<Problem>) -> DocumentError {
        problems.sort_by(|a, b| a.place.cmp(&b.place));
        DocumentError::Wrong { file: self.file.clone(), problems }
    }

    /// Finds out what selectors select, now that all is there.
    fn settle(&mut self) {
        for entry in &mut self.entries {
            if let Some(selector) = entry.section.selector() {
                entry.chosen = entry.written(selector).map_or_else(
                    || match selector.default {
                        Default::Value(text) => text.to_owned(),
                        _ => String::new(),
                    },
                    |written| written.text.clone(),
                );
            }
        }
        for index in 0..self.entries.len() {
            let Entry { section, chosen, .. } = &self.entries[index];
            if section.selector.is_some() && chosen.is_empty() {
                (self.schema.otherwise)(self, section).clone_into(&mut self.entries[index].chosen);
            }
        }
    }

    /// Every section that does not repeat, with nothing in it.
    fn empty(schema: &'static Schema, file: &str) -> Document {
        let singles = schema.sections.iter().filter(|section| !section.repeats);
        let entries = singles.map(|section| Entry::new(section, Place::Line(1))).collect();
        Document { schema, file: file.to_owned(), folder: PathBuf::new(), entries }
    }
}

/// What an entry says of a key, each as its kind has it. All of them panic if the table has no such key for what is
/// selected, or of another kind: a mistake of the program, found by the first test that builds from a document.
impl Entry {
    /// What the selector selects; empty without one.
    pub fn chosen(&self) -> &str {
        &self.chosen
    }

    /// Whether it is written in the file, or set from outside.
    pub fn is_set(&self, name: &str) -> bool {
        self.written(self.key(name)).is_some()
    }

    /// Text of the value, or of its default; `None` if the default is in words.
    pub fn text(&self, name: &str) -> Option<&str> {
        let key = self.key(name);
        match (self.written(key), key.default) {
            (Some(written), _) => Some(&written.text),
            (None, Default::Value(text)) => Some(text),
            (None, _) => None,
        }
    }

    /// A length of time.
    pub fn time(&self, name: &str) -> Option<Nanos> {
        self.read(name)
    }

    /// Bits a second.
    pub fn rate(&self, name: &str) -> Option<BitRate> {
        self.read(name)
    }

    /// An amount of data.
    pub fn amount(&self, name: &str) -> Option<Bytes> {
        self.read(name)
    }

    /// An integer of a type that holds the key's range.
    pub fn whole<T: TryFrom<u64>>(&self, name: &str) -> Option<T> {
        let whole: u64 = self.read(name)?;
        Some(T::try_from(whole).unwrap_or_else(|_| panic!("{name} = {whole} is beyond its type")))
    }

    /// A number, or a share.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.read(name)
    }

    /// Yes or no.
    pub fn boolean(&self, name: &str) -> Option<bool> {
        self.read(name)
    }

    /// Several texts.
    pub fn texts(&self, name: &str) -> Option<Vec<&str>> {
        self.text(name).map(|text| text.split(',').map(str::trim).collect())
    }

    /// That a value, or what follows of it, makes no sense.
    pub fn refuse(&self, name: &'static str, reason: impl Into<String>) -> Problem {
        let written = self.values.iter().rev().find(|written| written.key.name == name);
        let place = written.map_or(&self.place, |written| &written.place).clone();
        let key = if name.is_empty() { self.section.name } else { name };
        Problem { place, kind: ProblemKind::Refused { key, reason: Words(reason.into()) } }
    }

    fn read<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name).map(|text| {
            text.parse().ok().unwrap_or_else(|| panic!("{name} = {text} was not checked when it was read"))
        })
    }

    fn key(&self, name: &str) -> &'static Key {
        let key = self.section.key(name, &self.chosen);
        key.unwrap_or_else(|| panic!("no key {name} in [{}] of {}", self.section.name, self.chosen))
    }

    /// The value that was set last.
    fn written(&self, key: &'static Key) -> Option<&Written> {
        self.values.iter().rev().find(|written| std::ptr::eq(written.key, key))
    }
}

impl Entry {
    fn new(section: &'static Section, place: Place) -> Entry {
        Entry { section, place, values: Vec::new(), chosen: String::new() }
    }
}
