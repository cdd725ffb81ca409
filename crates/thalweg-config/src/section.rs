//! What a kind of file may say: its sections, their keys, what holds without them.
//!
//! These tables are written by the macros [`section!`](crate::section) and [`keys!`](crate::keys), which make a type of each
//! section as well.

use std::fmt;

use super::Document;
use super::given::{Form, Given};
use super::kind::{Choice, Kind};
use super::text::joined;

/// A kind of file: what files of it may say.
#[derive(Debug)]
pub struct Schema {
    /// What messages call it, as in "the experiment has no duration".
    pub what: &'static str,
    /// Its sections, in the order in which a document is printed. The one without a name, if there is one, has the keys
    /// above all sections.
    pub sections: &'static [&'static Section],
    /// What a selector selects that is not set, and has no default but words; known once all others are.
    pub otherwise: fn(&Document, &'static Section) -> &'static str,
    /// Whether a file of it may also be JSON. Then messages do not lean on how TOML is written.
    pub may_be_json: bool,
}

impl Schema {
    /// A kind of files in TOML, of these sections.
    pub const fn new(what: &'static str, sections: &'static [&'static Section]) -> Schema {
        Schema { what, sections, otherwise: |_, _| "", may_be_json: false }
    }
}

impl Schema {
    /// Checks what is declared, for tests: defaults and examples are accepted, names mean one thing each, and every key says
    /// what it means.
    ///
    /// # Panics
    /// If it does not hold.
    pub fn check(&self) {
        for section in self.sections {
            section.check();
        }
    }
}

/// A part of a file.
#[derive(Debug)]
pub struct Section {
    /// As the file has it between brackets; empty for the keys above all sections.
    pub name: &'static str,
    /// What it is about, a line an element.
    pub about: &'static [&'static str],
    /// Whether there may be several, `[[workload]]`.
    pub repeats: bool,
    /// Most of them, if there may be several.
    pub most: usize,
    /// The key that says which of several things this describes.
    pub selector: Option<&'static Selector>,
    /// Its other keys.
    pub groups: &'static [&'static Group],
    /// Lists of tables in it, each a section that repeats.
    pub lists: &'static [&'static Section],
}

/// The key that says which of several things a section describes.
#[derive(Debug)]
pub struct Selector {
    /// The key.
    pub key: Key,
    /// Which groups of keys belong to what can be selected. A group that is in no list belongs to all.
    pub of: &'static [(&'static str, &'static [&'static str])],
}

/// Keys that belong together.
#[derive(Debug)]
pub struct Group {
    /// Name of its type, by which it is told from others.
    pub name: &'static str,
    /// The keys.
    pub keys: &'static [Key],
}

/// One thing that can be set.
pub struct Key {
    /// Name of its group.
    pub group: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What it may say.
    pub kind: &'static dyn Kind,
    /// Whether a value can be read as the type of the key.
    pub accepts: fn(&Given) -> bool,
    /// What holds without it.
    pub default: Default,
    /// What it means, a line an element.
    pub meaning: &'static [&'static str],
    /// Its flag, and a value for examples.
    pub extra: Extra,
}

/// What holds when a key is not set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    /// Nothing: it must be set.
    Needed,
    /// This value.
    Value(&'static str),
    /// What these words say.
    Words(&'static str),
}

/// What only some keys have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extra {
    /// The flag that sets the same.
    pub flag: Option<Flag>,
    /// A value for examples where there is no default; without quotes.
    pub sample: &'static str,
}

/// A flag of the command line that sets a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    /// What stands for its value in help, as in `--tracks <N>`.
    pub value_name: &'static str,
    /// Its short form.
    pub short: Option<char>,
    /// Its name, if it says the opposite of the key; and its help, in paragraphs.
    pub opposite: Option<(&'static str, &'static str)>,
}

/// Nothing of its own.
pub const PLAIN: Extra = Extra { flag: None, sample: "" };

/// A flag of the key's name, with hyphens.
pub const fn flag(value_name: &'static str) -> Extra {
    Extra { flag: Some(Flag { value_name, short: None, opposite: None }), ..PLAIN }
}

impl Extra {
    /// With a short form.
    ///
    /// # Panics
    /// If there is no flag.
    pub const fn short(self, short: char) -> Extra {
        let flag = self.flag.expect("a flag");
        Extra { flag: Some(Flag { short: Some(short), ..flag }), ..self }
    }

    /// With another name, as it says the opposite of the key.
    ///
    /// # Panics
    /// If there is no flag.
    pub const fn opposite(self, name: &'static str, help: &'static str) -> Extra {
        let flag = self.flag.expect("a flag");
        Extra { flag: Some(Flag { opposite: Some((name, help)), ..flag }), ..self }
    }

    /// With a value for examples.
    pub const fn sample(self, sample: &'static str) -> Extra {
        Extra { sample, ..self }
    }
}

impl Section {
    /// Its keys, the selector first.
    pub fn keys(&self) -> impl Iterator<Item = &'static Key> {
        let selector = self.selector.into_iter().map(|selector| &selector.key);
        selector.chain(self.groups.iter().flat_map(|group| group.keys))
    }

    /// What must be selected for a key to matter; empty if it always does.
    pub fn of(&self, key: &Key) -> Vec<&'static str> {
        let Some(selector) = self.selector else { return Vec::new() };
        let has_it = |(_, groups): &&(&'static str, &'static [&'static str])| groups.contains(&key.group);
        selector.of.iter().filter(has_it).map(|(choice, _)| *choice).collect()
    }

    /// Whether a key says something about what is selected.
    pub fn matters(&self, key: &Key, chosen: &str) -> bool {
        let of = self.of(key);
        of.is_empty() || of.contains(&chosen)
    }

    /// The key of this name that matters when `chosen` is selected.
    pub fn key(&self, name: &str, chosen: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.name == name && self.matters(key, chosen))
    }

    /// The keys that matter when `chosen` is selected.
    pub fn keys_of(&self, chosen: &str) -> impl Iterator<Item = &'static Key> {
        self.keys().filter(move |key| self.matters(key, chosen))
    }

    /// Whether it has a key of this name, whatever is selected.
    pub fn has(&self, name: &str) -> bool {
        self.keys().any(|key| key.name == name)
    }

    /// Name of the selector.
    pub fn selector_name(&self) -> Option<&'static str> {
        self.selector.map(|selector| selector.key.name)
    }

    /// What can be selected.
    pub fn choices(&self) -> Vec<Choice> {
        self.selector.map(|selector| selector.key.kind.choices()).unwrap_or_default()
    }

    /// `[scheme]`, `[[workload]]`; as it stands in the file.
    pub fn heading(&self) -> String {
        if self.repeats { format!("[[{}]]", self.name) } else { format!("[{}]", self.name) }
    }

    /// What it is about, in paragraphs.
    pub fn about(&self) -> String {
        joined(self.about)
    }

    fn check(&self) {
        self.lists.iter().for_each(|list| list.check());
        for key in self.keys() {
            let meaning = key.meaning();
            assert!(meaning.len() > 5 && meaning.ends_with('.'), "{key:?}: {meaning}");
            assert_ne!(key.kind.expected(), "", "{key:?}");
            if let Some(given) = key.default_value() {
                assert!((key.accepts)(&given), "{key:?}: {given:?}");
            }
            let sample = Given::from_text(key.form(), key.extra.sample);
            assert!(key.extra.sample.is_empty() || (key.accepts)(&sample), "{key:?}: {sample:?}");
        }
        let choices = self.choices();
        for chosen in choices.iter().map(|(name, _)| *name).chain(choices.is_empty().then_some("")) {
            let mut names: Vec<&str> = self.keys_of(chosen).map(|key| key.name).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{} with {chosen}", self.heading());
        }
    }
}

impl Group {
    /// The key of this name.
    ///
    /// # Panics
    /// If there is none.
    pub fn key(&'static self, name: &str) -> &'static Key {
        self.keys.iter().find(|key| key.name == name).expect("the macro that reads a key has declared it")
    }
}

impl Key {
    /// What TOML writes it as.
    pub fn form(&self) -> Form {
        self.kind.form()
    }

    /// What it means, in paragraphs.
    pub fn meaning(&self) -> String {
        joined(self.meaning)
    }

    /// The default in words: the value, or what holds without one.
    pub fn default_in_words(&self) -> &'static str {
        match self.default {
            Default::Value(words) | Default::Words(words) => words,
            Default::Needed => "none: it must be set",
        }
    }

    /// The default value.
    pub fn default_value(&self) -> Option<Given> {
        match self.default {
            Default::Value(text) => Some(Given::from_text(self.form(), text)),
            _ => None,
        }
    }
}

/// Keys of two groups may share a name.
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
