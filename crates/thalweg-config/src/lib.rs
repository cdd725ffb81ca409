//! Declares, parses, validates, prints and documents configuration files.
//!
//! | module | contents |
//! |---|---|
//! | `declare` | the macros [`section!`], [`keys!`] and [`choices!`], which declare each section once |
//! | [`mod@section`] | the tables that the macros generate: sections, keys, defaults |
//! | [`kind`] | the values that a key accepts, and the type that they parse to |
//! | [`quantity`] | types written as one string or number |
//! | `tree`, `parse` | TOML or JSON to a [`Document`] |
//! | `set_key` | sets one key from a flag or a sweep |
//! | `print` | prints a document with its defaults, and the reference page of a schema |
//! | [`json_schema`](mod@json_schema) | JSON Schema for editors |
//! | `error`, [`text`] | errors; quoted file text in messages, and "did you mean" hints |
//! | `text_file` | reads a file, and names the byte that is not UTF-8 |
//! | [`literal`], [`paragraph`] | values as written; line wrapping |
//!
//! A [`Document`] holds the written values, each validated on its own. [`Document::one`] and [`Document::all`] return
//! sections as their types. Callers check values against each other, and report a contradiction with [`Typed::refuse`],
//! which adds the line number.

#![forbid(unsafe_code)]

mod declare;
mod error;
pub mod json_schema;
pub mod kind;
pub mod literal;
pub mod paragraph;
mod parse;
mod print;
pub mod quantity;
pub mod section;
mod set_key;
#[cfg(test)]
mod tests;
pub mod text;
mod text_file;
mod tree;

use std::ops::Deref;
use std::path::PathBuf;

pub use declare::{Declared, Keys};
pub use error::{DocumentError, Place, Problem, ProblemKind, Problems};
pub use json_schema::json_schema;
pub use literal::{Form, Literal};
pub use print::{REFERENCE_WIDTH, Sample, example, key_reference, reference};
pub use section::{Default, Group, Key, Schema, Section, Selector};
pub use text::{Hint, Name, SafeText};
pub use text_file::read_text;
pub use tree::{Format, top_level_names};

use kind::Reads;

/// A parsed configuration file.
#[derive(Clone, Debug)]
pub struct Document {
    /// The schema of the file.
    pub schema: &'static Schema,
    /// The name of the file, for messages.
    pub file: String,
    /// The folder to which file names in the document are relative.
    pub folder: PathBuf,
    /// One entry for each section that does not repeat, any number for each that does; in the order of the schema.
    entries: Vec<Entry>,
}

/// A section and its values.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The declaration of the section.
    pub section: &'static Section,
    /// The line of its heading; line 1 if the section is absent.
    place: Place,
    /// Whether the file contains the section.
    is_present: bool,
    values: Vec<Assignment>,
    /// The value of the selector; empty without one.
    chosen: String,
    /// Whether a value is missing or invalid, so that the section cannot be read.
    is_invalid: bool,
    lists: Vec<Entry>,
}

/// A value, and its place in the file or on the command line.
#[derive(Clone, Debug)]
struct Assignment {
    key: &'static Key,
    literal: Literal,
    place: Place,
    /// The place of the value, which may be on a later line than the key.
    value_place: Place,
    /// The places of the elements of a list.
    elements: Vec<Place>,
}

/// A section as its type, with the entry that it was read from.
#[derive(Clone, Copy, Debug)]
pub struct Typed<'d, T> {
    /// The section with the places of its values.
    pub entry: &'d Entry,
    value: T,
}

impl Document {
    /// Returns all sections in the order of the schema: one of each that does not repeat, any number of each that does.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the section of type `T`, which does not repeat. A valid document always has it, if only with defaults.
    ///
    /// # Panics
    /// If the schema has no such section, or the section is invalid (see [`Document::valid`]).
    pub fn one<T: Declared>(&self) -> Typed<'_, T> {
        self.valid().next().expect("each section that does not repeat is present and valid")
    }

    /// Returns the sections of type `T`, which may repeat.
    ///
    /// # Panics
    /// If one is invalid (see [`Document::valid`]).
    pub fn all<T: Declared>(&self) -> impl Iterator<Item = Typed<'_, T>> {
        self.of(T::section()).map(Typed::new)
    }

    /// Returns the sections of type `T` without missing or invalid values.
    pub fn valid<T: Declared>(&self) -> impl Iterator<Item = Typed<'_, T>> {
        self.of(T::section()).filter(|entry| !entry.is_invalid).map(Typed::new)
    }

    /// Returns the value of the selector of a section that does not repeat; empty without a selector.
    ///
    /// # Panics
    /// If the schema has no such section.
    pub fn chosen(&self, section: &'static Section) -> &str {
        self.of(section).next().expect("each section that does not repeat is present").chosen()
    }

    /// Whether the file contains the section, even an empty one.
    pub fn has(&self, section: &'static Section) -> bool {
        self.of(section).any(|entry| entry.is_present)
    }

    /// Whether every one of these sections has all required values, and no invalid one.
    pub fn are_valid(&self, sections: &[&'static Section]) -> bool {
        sections.iter().all(|section| self.of(section).all(|entry| !entry.is_invalid))
    }

    fn of(&self, section: &'static Section) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| std::ptr::eq(entry.section, section))
    }

    /// Returns an error with these problems of the document.
    pub fn error(&self, problems: Vec<Problem>) -> DocumentError {
        DocumentError::Invalid(self.problems(problems))
    }

    /// Returns these problems of the document in line order.
    pub fn problems(&self, problems: Vec<Problem>) -> Problems {
        Problems::new(&self.file, problems)
    }

    /// Resolves the selectors, once all keys are set.
    fn resolve_selectors(&mut self) {
        for entry in &mut self.entries {
            if let Some(selector) = entry.section.selector {
                entry.chosen = entry.assignment(&selector.key).map_or_else(
                    || match selector.key.default {
                        Default::Value(text) => text.to_owned(),
                        _ => String::new(),
                    },
                    |assignment| assignment.literal.text().into_owned(),
                );
            }
        }
        for index in 0..self.entries.len() {
            let Entry { section, chosen, .. } = &self.entries[index];
            if section.selector.is_some() && chosen.is_empty() {
                (self.schema.default_choice)(self, section).clone_into(&mut self.entries[index].chosen);
            }
        }
    }

    /// Returns a document in which every key has its default.
    pub fn empty(schema: &'static Schema, file: &str) -> Document {
        let singles = schema.sections.iter().filter(|section| !section.repeats);
        let entries = singles.map(|section| Entry::new(section, Place::Line(1))).collect();
        let mut document = Document { schema, file: file.to_owned(), folder: PathBuf::new(), entries };
        document.resolve_selectors();
        document
    }
}

impl Entry {
    fn new(section: &'static Section, place: Place) -> Entry {
        Entry {
            section,
            place,
            is_present: false,
            values: Vec::new(),
            chosen: String::new(),
            is_invalid: false,
            lists: Vec::new(),
        }
    }

    /// Returns the value of the selector; empty without one.
    pub fn chosen(&self) -> &str {
        &self.chosen
    }

    /// Returns the value of a key; `None` if it is not set and has no default value.
    ///
    /// # Panics
    /// If `kind` is not the kind of the key.
    pub fn read<T>(&self, key: &'static Key, kind: &impl Reads<T>) -> Option<T> {
        let literal = self.literal(key)?;
        Some(kind.read(&literal).unwrap_or_else(|| panic!("{key:?} was not validated when it was parsed")))
    }

    /// Returns the value of a key as written, or its default value.
    pub fn literal(&self, key: &'static Key) -> Option<Literal> {
        self.assignment(key).map(|assignment| assignment.literal.clone()).or_else(|| key.default_value())
    }

    /// Whether a key of this name is set in the file or by a flag.
    pub fn is_set(&self, name: &str) -> bool {
        self.last(name).is_some()
    }

    /// Returns the place where the key was set; `None` if it has its default.
    pub fn place_of(&self, name: &str) -> Option<&Place> {
        self.last(name).map(|assignment| &assignment.value_place)
    }

    /// Returns a problem with the value of key `name`, at the place of the key, or of the section if the key is not
    /// set.
    pub fn refuse(&self, name: &'static str, reason: impl Into<String>) -> Problem {
        let place = self.last(name).map_or(&self.place, |assignment| &assignment.place).clone();
        let key = if name.is_empty() { self.section.name } else { name };
        Problem { place, kind: ProblemKind::Refused { key, reason: SafeText(reason.into()) } }
    }

    /// Returns a problem with the value of key `name`, or with one `element` of its list (from 0), at the place of that
    /// value. The message is `reason` alone, without the key.
    pub fn refuse_value(&self, name: &str, element: usize, reason: impl Into<String>) -> Problem {
        let assignment = self.last(name);
        let place = assignment.map_or(&self.place, |a| a.elements.get(element).unwrap_or(&a.value_place));
        Problem {
            place: place.clone(),
            kind: ProblemKind::Refused { key: "", reason: SafeText(reason.into()) },
        }
    }

    /// Returns a problem that names the value of key `name`, or one `element` of its list, and the expected value.
    pub fn unexpected(&self, name: &'static str, element: Option<usize>, expected: &str) -> Problem {
        let assignment = self.last(name);
        let place = assignment.map_or(&self.place, |a| {
            element.and_then(|element| a.elements.get(element)).unwrap_or(&a.value_place)
        });
        let found = assignment.map(|assignment| match (element, &assignment.literal) {
            (Some(element), Literal::List(texts)) if element < texts.len() => {
                Literal::Single(texts[element].clone()).in_toml(Form::Text)
            }
            (_, literal) => literal.in_toml(assignment.key.form()),
        });
        let found = Name(found.unwrap_or_default());
        let kind =
            ProblemKind::WrongValue { key: name, found, expected: expected.to_owned(), hint: Hint::None };
        Problem { place: place.clone(), kind }
    }

    /// Returns the problem that key `name` is required but not set.
    pub fn missing(&self, name: &'static str) -> Problem {
        let key = self.section.key(name, &self.chosen);
        let expected = key.map(|key| key.kind.expected_in_file()).unwrap_or_default();
        let kind =
            ProblemKind::MissingKey { section: Some(self.section.name.to_owned()), key: name, expected };
        Problem { place: self.place.clone(), kind }
    }

    /// Returns the valid tables of a list in this section.
    pub fn list<T: Declared>(&self) -> impl Iterator<Item = Typed<'_, T>> {
        let entries = self.lists.iter().filter(|entry| std::ptr::eq(entry.section, T::section()));
        entries.filter(|entry| !entry.is_invalid).map(Typed::new)
    }

    /// The number of tables in the lists of this section, invalid ones included.
    pub fn table_count(&self) -> usize {
        self.lists.len()
    }

    /// Sets a key to a value that did not come from the file.
    pub(crate) fn set(&mut self, key: &'static Key, literal: Literal, place: Place) {
        self.is_present = true;
        let assignment = Assignment { key, literal, value_place: place.clone(), place, elements: Vec::new() };
        self.values.push(assignment);
    }

    fn last(&self, name: &str) -> Option<&Assignment> {
        let applies = |assignment: &&Assignment| {
            assignment.key.name == name && self.section.applies(assignment.key, &self.chosen)
        };
        self.values.iter().rev().find(applies)
    }

    /// Returns the last assignment to a key, which wins.
    fn assignment(&self, key: &'static Key) -> Option<&Assignment> {
        self.values.iter().rev().find(|assignment| assignment.key == key)
    }
}

impl<'d, T: Declared> Typed<'d, T> {
    fn new(entry: &'d Entry) -> Typed<'d, T> {
        Typed { entry, value: T::read(entry) }
    }
}

impl<T> Typed<'_, T> {
    /// Returns the keys of this section that apply to every choice of its selector.
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

    /// Returns the value without its entry.
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
