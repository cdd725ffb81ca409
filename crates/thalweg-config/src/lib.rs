//! The one way that files are declared, read, checked, printed and documented.
//!
//! | module | what it has |
//! |---|---|
//! | `declare` | the macros [`section!`], [`keys!`] and [`choices!`], by which each section is declared once |
//! | [`section`] | the tables that they write: sections, their keys, what holds without them |
//! | [`kind`] | what a key may say, and the type that it is read as |
//! | [`quantity`] | types that are written as one text or number |
//! | `tree`, `parse` | a file in TOML or JSON to a [`Document`] |
//! | `change` | one key set from outside, as flags and sweeps do |
//! | `print` | a document with all its defaults, and the reference of its kind |
//! | [`json_schema`](mod@json_schema) | JSON Schema of a kind of file, for editors |
//! | `error`, [`text`] | what can be wrong; words of a file in messages, and what a misspelt one may have meant |
//! | [`given`], [`paragraph`] | values as they are written; text in lines of limited width |
//!
//! A [`Document`] holds what was written, checked value by value. A section is read from it as its type, by
//! [`Document::one`] and [`Document::all`]. What the values mean together is for whoever uses it to say:
//! [`Typed::refuse`] makes a problem of what makes no sense, with the line where it was written.

#![forbid(unsafe_code)]

mod change;
mod declare;
mod error;
pub mod given;
pub mod json_schema;
pub mod kind;
pub mod paragraph;
mod parse;
mod print;
pub mod quantity;
pub mod section;
#[cfg(test)]
mod tests;
pub mod text;
mod tree;

use std::ops::Deref;
use std::path::PathBuf;

pub use declare::{Declared, Keys};
pub use error::{DocumentError, Place, Problem, ProblemKind, Problems};
pub use given::{Form, Given};
pub use json_schema::json_schema;
pub use print::{REFERENCE_WIDTH, key_reference, reference};
pub use section::{Default, Group, Key, Schema, Section, Selector};
pub use text::{Hint, Name, Words};
pub use tree::{Format, names_in};

use kind::Reads;

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
    /// Whether it is there.
    is_there: bool,
    values: Vec<Written>,
    /// What its selector selects; empty without one.
    chosen: String,
    /// Whether a value is missing or wrong, so that it cannot be read.
    is_flawed: bool,
    lists: Vec<Entry>,
}

/// A value, and where it was written.
#[derive(Clone, Debug)]
struct Written {
    key: &'static Key,
    given: Given,
    place: Place,
    /// Where the value is, and the elements of a list.
    value_place: Place,
    elements: Vec<Place>,
}

/// A section as its type, and where it was written.
#[derive(Clone, Copy, Debug)]
pub struct Typed<'d, T> {
    /// Where its values are.
    pub entry: &'d Entry,
    value: T,
}

impl Document {
    /// All sections: each that does not repeat, and those there are of each that does, in the order of the table.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The section of which there is one. A document that was read without mistakes has it, if only with defaults.
    ///
    /// # Panics
    /// If there is no such section in this kind of document, or it has mistakes (see [`Document::sound`]).
    pub fn one<T: Declared>(&self) -> Typed<'_, T> {
        self.sound().next().expect("each section that does not repeat is there, without mistakes")
    }

    /// The sections of which there may be several.
    ///
    /// # Panics
    /// If one has mistakes (see [`Document::sound`]).
    pub fn all<T: Declared>(&self) -> impl Iterator<Item = Typed<'_, T>> {
        self.of(T::section()).map(Typed::new)
    }

    /// The sections of a type that have no missing or wrong values, of a document that was read with mistakes.
    pub fn sound<T: Declared>(&self) -> impl Iterator<Item = Typed<'_, T>> {
        self.of(T::section()).filter(|entry| !entry.is_flawed).map(Typed::new)
    }

    /// What the selector of a section of which there is one selects; empty without one.
    ///
    /// # Panics
    /// If there is no such section in this kind of document.
    pub fn chosen(&self, section: &'static Section) -> &str {
        self.of(section).next().expect("each section that does not repeat is there").chosen()
    }

    /// Whether a section is there, be it without keys.
    pub fn has(&self, section: &'static Section) -> bool {
        self.of(section).any(|entry| entry.is_there)
    }

    fn of(&self, section: &'static Section) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| std::ptr::eq(entry.section, section))
    }

    /// An error of this document.
    pub fn error(&self, problems: Vec<Problem>) -> DocumentError {
        DocumentError::Wrong(self.problems(problems))
    }

    /// The problems of this document, in order.
    pub fn problems(&self, problems: Vec<Problem>) -> Problems {
        Problems::new(&self.file, problems)
    }

    /// Finds out what selectors select, now that all is there.
    fn settle(&mut self) {
        for entry in &mut self.entries {
            if let Some(selector) = entry.section.selector {
                entry.chosen = entry.written(&selector.key).map_or_else(
                    || match selector.key.default {
                        Default::Value(text) => text.to_owned(),
                        _ => String::new(),
                    },
                    |written| written.given.text().into_owned(),
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
    pub fn empty(schema: &'static Schema, file: &str) -> Document {
        let singles = schema.sections.iter().filter(|section| !section.repeats);
        let entries = singles.map(|section| Entry::new(section, Place::Line(1))).collect();
        let mut document = Document { schema, file: file.to_owned(), folder: PathBuf::new(), entries };
        document.settle();
        document
    }
}

impl Entry {
    fn new(section: &'static Section, place: Place) -> Entry {
        Entry {
            section,
            place,
            is_there: false,
            values: Vec::new(),
            chosen: String::new(),
            is_flawed: false,
            lists: Vec::new(),
        }
    }

    /// What the selector selects; empty without one.
    pub fn chosen(&self) -> &str {
        &self.chosen
    }

    /// Reads a key; `None` if it is not set and has no default value.
    ///
    /// # Panics
    /// If `kind` is not that of the key.
    pub fn read<T>(&self, key: &'static Key, kind: &impl Reads<T>) -> Option<T> {
        let given = self.given(key)?;
        Some(kind.read(&given).unwrap_or_else(|| panic!("{key:?} was not checked when it was read")))
    }

    /// What a key says, be it its default.
    pub fn given(&self, key: &'static Key) -> Option<Given> {
        self.written(key).map(|written| written.given.clone()).or_else(|| key.default_value())
    }

    /// Whether a key of this name is written in the file, or set from outside.
    pub fn is_set(&self, name: &str) -> bool {
        self.last(name).is_some()
    }

    /// Where the value of a key was set; `None` if it has its default.
    pub fn place_of(&self, name: &str) -> Option<&Place> {
        self.last(name).map(|written| &written.value_place)
    }

    /// That a value, or what follows of it, makes no sense: with the place of this key, if it is set, else of the section.
    pub fn refuse(&self, name: &'static str, reason: impl Into<String>) -> Problem {
        let place = self.last(name).map_or(&self.place, |written| &written.place).clone();
        let key = if name.is_empty() { self.section.name } else { name };
        Problem { place, kind: ProblemKind::Refused { key, reason: Words(reason.into()) } }
    }

    /// That a value, or an element of a list (`element` counts from 0), makes no sense: with its own place, and nothing but
    /// the reason.
    pub fn refuse_value(&self, name: &str, element: usize, reason: impl Into<String>) -> Problem {
        let written = self.last(name);
        let place = written.map_or(&self.place, |w| w.elements.get(element).unwrap_or(&w.value_place));
        Problem { place: place.clone(), kind: ProblemKind::Refused { key: "", reason: Words(reason.into()) } }
    }

    /// That a value, or an element of a list, is not as expected.
    pub fn unexpected(&self, name: &'static str, element: Option<usize>, expected: &str) -> Problem {
        let written = self.last(name);
        let place = written.map_or(&self.place, |w| {
            element.and_then(|element| w.elements.get(element)).unwrap_or(&w.value_place)
        });
        let found = written.map(|written| match (element, &written.given) {
            (Some(element), Given::Several(texts)) if element < texts.len() => {
                Given::One(texts[element].clone()).in_toml(Form::Text)
            }
            (_, given) => given.in_toml(written.key.form()),
        });
        let found = Name(found.unwrap_or_default());
        let kind =
            ProblemKind::WrongValue { key: name, found, expected: expected.to_owned(), hint: Hint::Nothing };
        Problem { place: place.clone(), kind }
    }

    /// That a key must be set after all.
    pub fn missing(&self, name: &'static str) -> Problem {
        let (heading, expected) = (self.section.name.to_owned(), format!("{name} = ..."));
        Problem { place: self.place.clone(), kind: ProblemKind::MissingKey { heading, key: name, expected } }
    }

    /// The tables of a list in this section.
    pub fn list<T: Declared>(&self) -> impl Iterator<Item = Typed<'_, T>> {
        let entries = self.lists.iter().filter(|entry| std::ptr::eq(entry.section, T::section()));
        entries.filter(|entry| !entry.is_flawed).map(Typed::new)
    }

    /// How many tables lists in this section have, those with mistakes included.
    pub fn listed(&self) -> usize {
        self.lists.len()
    }

    /// Sets a key, from outside.
    pub(crate) fn set(&mut self, key: &'static Key, given: Given, place: Place) {
        self.is_there = true;
        let written = Written { key, given, value_place: place.clone(), place, elements: Vec::new() };
        self.values.push(written);
    }

    fn last(&self, name: &str) -> Option<&Written> {
        let matters =
            |written: &&Written| written.key.name == name && self.section.matters(written.key, &self.chosen);
        self.values.iter().rev().find(matters)
    }

    /// The value that was set last.
    fn written(&self, key: &'static Key) -> Option<&Written> {
        self.values.iter().rev().find(|written| written.key == key)
    }
}

impl<'d, T: Declared> Typed<'d, T> {
    fn new(entry: &'d Entry) -> Typed<'d, T> {
        Typed { entry, value: T::read(entry) }
    }
}

impl<T> Typed<'_, T> {
    /// Keys of this section that belong to all that can be selected.
    pub fn keys<K: Keys>(&self) -> K {
        K::read(self.entry)
    }

    /// See [`Entry::is_set`].
    pub fn is_set(&self, name: &str) -> bool {
        self.entry.is_set(name)
    }

    /// See [`Entry::refuse`].
    pub fn refuse(&self, name: &'static str, reason: impl Into<String>) -> Problem {
        self.entry.refuse(name, reason)
    }

    /// The value alone.
    pub fn into_value(self) -> T {
        self.value
    }
}

impl<T> Deref for Typed<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
