//! Schemas of configuration files: sections, keys, defaults.
//!
//! The macros [`section!`](macro@crate::section) and [`keys!`](crate::keys) generate these tables, and a type for each
//! section.

use std::fmt;

use super::Document;
use super::kind::{Choice, Kind};
use super::literal::{Form, Literal};
use super::text::join_lines;

/// The schema of a kind of file.
#[derive(Debug)]
pub struct Schema {
    /// The kind of file, for messages such as "the experiment has no duration".
    pub file_kind: &'static str,
    /// The sections in the order in which a document is printed. A section without a name has the top-level keys.
    pub sections: &'static [&'static Section],
    /// Returns the choice of a selector that is not set and has no default value, once all other selectors are
    /// resolved.
    pub default_choice: fn(&Document, &'static Section) -> &'static str,
    /// Whether files may also be JSON. Messages then avoid TOML syntax.
    pub may_be_json: bool,
}

impl Schema {
    /// Creates the schema of a kind of TOML file.
    pub const fn new(file_kind: &'static str, sections: &'static [&'static Section]) -> Schema {
        Schema { file_kind, sections, default_choice: |_, _| "", may_be_json: false }
    }
}

impl Schema {
    /// Checks the declarations, for tests: keys accept their defaults and samples, key names are unique, every key has
    /// a meaning.
    ///
    /// # Panics
    /// If a check fails.
    pub fn check(&self) {
        for section in self.sections {
            section.check();
        }
    }
}

/// The declaration of a section.
#[derive(Debug)]
pub struct Section {
    /// The name in brackets in the file; empty for the top-level keys.
    pub name: &'static str,
    /// The description, one element per line.
    pub about: &'static [&'static str],
    /// Whether the section may repeat, as `[[workload]]`.
    pub repeats: bool,
    /// The maximum number of sections, if it may repeat.
    pub max_count: usize,
    /// The key that selects one of several choices.
    pub selector: Option<&'static Selector>,
    /// The other keys.
    pub groups: &'static [&'static Group],
    /// Lists of tables in the section, each a section that repeats.
    pub lists: &'static [&'static Section],
}

/// The key of a section that selects one of several choices.
#[derive(Debug)]
pub struct Selector {
    /// The key.
    pub key: Key,
    /// For each choice, the groups of keys that apply to it. A group in none of the lists applies to all choices.
    pub groups: &'static [(&'static str, &'static [&'static str])],
}

/// A group of keys.
#[derive(Debug)]
pub struct Group {
    /// The name of its type, unique in a section.
    pub name: &'static str,
    /// The keys.
    pub keys: &'static [Key],
}

/// The declaration of a key.
pub struct Key {
    /// The name of its group.
    pub group: &'static str,
    /// The name of the key.
    pub name: &'static str,
    /// The values that it accepts.
    pub kind: &'static dyn Kind,
    /// Whether a value parses to the type of the key.
    pub accepts: fn(&Literal) -> bool,
    /// The default.
    pub default: Default,
    /// The meaning, one element per line.
    pub meaning: &'static [&'static str],
    /// Its flag and sample value.
    pub extra: Extra,
}

/// The default of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    /// No default: the key must be set.
    Required,
    /// A value.
    Value(&'static str),
    /// A behaviour, described in words.
    Description(&'static str),
}

/// Optional properties of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extra {
    /// The flag that sets the key.
    pub flag: Option<Flag>,
    /// An example value without quotes, for a key without a default.
    pub sample: &'static str,
}

/// A flag of the command line that sets a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The placeholder of the value in help, as in `--tracks <N>`.
    pub value_name: &'static str,
    /// The short form.
    pub short: Option<char>,
    /// The name and help of a flag that sets the opposite of the key.
    pub opposite: Option<(&'static str, &'static str)>,
}

/// No flag and no sample.
pub const NO_EXTRA: Extra = Extra { flag: None, sample: "" };

/// Adds a flag with the name of the key, hyphenated.
pub const fn flag(value_name: &'static str) -> Extra {
    Extra { flag: Some(Flag { value_name, short: None, opposite: None }), ..NO_EXTRA }
}

impl Extra {
    /// Adds a short form.
    ///
    /// # Panics
    /// If there is no flag.
    pub const fn short(self, short: char) -> Extra {
        let flag = self.flag.expect("a flag");
        Extra { flag: Some(Flag { short: Some(short), ..flag }), ..self }
    }

    /// Names the flag after the opposite of the key.
    ///
    /// # Panics
    /// If there is no flag.
    pub const fn opposite(self, name: &'static str, help: &'static str) -> Extra {
        let flag = self.flag.expect("a flag");
        Extra { flag: Some(Flag { opposite: Some((name, help)), ..flag }), ..self }
    }

    /// Adds an example value.
    pub const fn sample(self, sample: &'static str) -> Extra {
        Extra { sample, ..self }
    }
}

impl Section {
    /// Returns all keys, the selector first.
    pub fn keys(&self) -> impl Iterator<Item = &'static Key> {
        let selector = self.selector.into_iter().map(|selector| &selector.key);
        selector.chain(self.groups.iter().flat_map(|group| group.keys))
    }

    /// Returns the choices to which a key applies; empty if it always applies.
    pub fn choices_with(&self, key: &Key) -> Vec<&'static str> {
        let Some(selector) = self.selector else { return Vec::new() };
        let has_it = |(_, groups): &&(&'static str, &'static [&'static str])| groups.contains(&key.group);
        selector.groups.iter().filter(has_it).map(|(choice, _)| *choice).collect()
    }

    /// Whether a key applies when `chosen` is selected.
    pub fn applies(&self, key: &Key, chosen: &str) -> bool {
        let choices = self.choices_with(key);
        choices.is_empty() || choices.contains(&chosen)
    }

    /// Returns the key of this name that applies when `chosen` is selected.
    pub fn key(&self, name: &str, chosen: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.name == name && self.applies(key, chosen))
    }

    /// Returns the keys that apply when `chosen` is selected.
    pub fn keys_for(&self, chosen: &str) -> impl Iterator<Item = &'static Key> {
        self.keys().filter(move |key| self.applies(key, chosen))
    }

    /// Whether the section has a key of this name for any choice.
    pub fn has(&self, name: &str) -> bool {
        self.keys().any(|key| key.name == name)
    }

    /// Returns the name of the selector.
    pub fn selector_name(&self) -> Option<&'static str> {
        self.selector.map(|selector| selector.key.name)
    }

    /// Returns the choices of the selector.
    pub fn choices(&self) -> Vec<Choice> {
        self.selector.map(|selector| selector.key.kind.choices()).unwrap_or_default()
    }

    /// Returns the heading in a file: `[scheme]`, `[[workload]]`.
    pub fn heading(&self) -> String {
        if self.repeats { format!("[[{}]]", self.name) } else { format!("[{}]", self.name) }
    }

    /// Returns what a name given by `key` is the name of, for messages: `scheme` for the key `name` of `[scheme]`.
    pub(super) fn noun(&self, key: &Key) -> &'static str {
        if key.name == "name" { self.name } else { key.name }
    }

    /// Returns the description in paragraphs.
    pub fn about(&self) -> String {
        join_lines(self.about)
    }

    fn check(&self) {
        self.lists.iter().for_each(|list| list.check());
        for key in self.keys() {
            let meaning = key.meaning();
            assert!(meaning.len() > 5 && meaning.ends_with('.'), "{key:?}: {meaning}");
            assert_ne!(key.kind.expected(), "", "{key:?}");
            if let Some(literal) = key.default_value() {
                assert!((key.accepts)(&literal), "{key:?}: {literal:?}");
            }
            let sample = Literal::from_text(key.form(), key.extra.sample);
            assert!(key.extra.sample.is_empty() || (key.accepts)(&sample), "{key:?}: {sample:?}");
        }
        let choices = self.choices();
        for chosen in choices.iter().map(|(name, _)| *name).chain(choices.is_empty().then_some("")) {
            let mut names: Vec<&str> = self.keys_for(chosen).map(|key| key.name).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{} with {chosen}", self.heading());
        }
    }
}

impl Group {
    /// Returns the key of this name.
    ///
    /// # Panics
    /// If there is none.
    pub fn key(&'static self, name: &str) -> &'static Key {
        self.keys.iter().find(|key| key.name == name).expect("the macro that reads a key also declares it")
    }
}

impl Key {
    /// The form of the value in TOML.
    pub fn form(&self) -> Form {
        self.kind.form()
    }

    /// Returns the meaning in paragraphs.
    pub fn meaning(&self) -> String {
        join_lines(self.meaning)
    }

    /// Returns the default value, or a description of the default.
    pub fn default_description(&self) -> &'static str {
        match self.default {
            Default::Value(text) | Default::Description(text) => text,
            Default::Required => "none: required",
        }
    }

    /// Returns the default value, if it has one.
    pub fn default_value(&self) -> Option<Literal> {
        match self.default {
            Default::Value(text) => Some(Literal::from_text(self.form(), text)),
            _ => None,
        }
    }
}

/// Compares group and name: keys of two groups may share a name.
impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        (self.group, self.name) == (other.group, other.name)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.group, self.name)
    }
}
