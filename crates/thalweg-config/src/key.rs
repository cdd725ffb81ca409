//! What a key of a document is: where it stands, what it may say, what holds without it.
//!
//! A section may have a **selector**, the key that says which of several things it describes (`name` of `[scheme]`).
//! Other keys then belong to some of these things. A table of the file with the name of such a thing
//! (`[scheme.hull]`) has keys that wait until it is chosen, as a sweep does.

use thalweg_wire::{BitRate, Bytes, Nanos};

use super::Document;
use super::form::Form;

/// A kind of document: what files of it may say.
#[derive(Debug)]
pub struct Schema {
    /// What messages call it, as in "the experiment has no duration".
    pub what: &'static str,
    /// Its sections, in the order in which a document is printed. The one without a name, if there is one, has the keys
    /// above all sections.
    pub sections: &'static [&'static Section],
    /// What a selector selects that is not set, and has no default but words; known once all others are.
    pub otherwise: fn(&Document, &'static Section) -> &'static str,
}

/// A part of a document.
#[derive(Debug)]
pub struct Section {
    /// As the file has it between brackets; empty for the keys above all sections.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// Whether there may be several, `[[workload]]`.
    pub repeats: bool,
    /// The key that says which of several things this describes.
    pub selector: Option<&'static str>,
    /// Its keys, the selector first.
    pub keys: &'static [Key],
}

/// One thing that can be set.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it may say.
    pub kind: Kind,
    /// What holds without it.
    pub default: Default,
    /// What must be selected for it to matter; empty if it always does.
    pub of: &'static [&'static str],
    /// What it means.
    pub meaning: &'static str,
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

/// A name to choose, and what it stands for.
pub type Choice = (&'static str, &'static str);

/// What a key may say.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A length of time above zero.
    Time,
    /// A length of time that may be zero.
    Delay,
    /// Bits a second, above zero.
    Rate,
    /// An amount of data, above zero.
    Amount,
    /// An integer of this range, ends included.
    Whole(u64, u64),
    /// A number above the first and not above the second.
    Number(f64, f64),
    /// A part of one, 0 and 1 included.
    Share,
    /// Yes or no.
    Boolean,
    /// One of these names.
    Name(fn() -> Vec<Choice>),
    /// Any text, which is judged when it is used; these words say what is expected.
    Text(&'static str),
    /// Several texts, or one; judged as [`Kind::Text`] is.
    Texts(&'static str),
}

impl Section {
    /// The key of this name that matters when `chosen` is selected.
    pub fn key(&self, name: &str, chosen: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name && key.matters_to(chosen))
    }

    /// Whether it has a key of this name, whatever is selected.
    pub fn has(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key.name == name)
    }

    /// The selector.
    pub fn selector(&self) -> Option<&'static Key> {
        self.selector.and_then(|name| self.keys.iter().find(|key| key.name == name))
    }

    /// `[scheme]`, `[[workload]]`; as it stands in the file.
    pub fn heading(&self) -> String {
        if self.repeats { format!("[[{}]]", self.name) } else { format!("[{}]", self.name) }
    }
}

impl Key {
    /// Whether it says something about what is selected.
    pub fn matters_to(&self, chosen: &str) -> bool {
        self.of.is_empty() || self.of.contains(&chosen)
    }
}

impl Kind {
    /// What TOML writes it as.
    pub fn form(self) -> Form {
        match self {
            Kind::Time | Kind::Delay | Kind::Name(_) | Kind::Text(_) => Form::Text,
            Kind::Rate | Kind::Amount => Form::Quantity,
            Kind::Whole(..) => Form::Integer,
            Kind::Number(..) | Kind::Share => Form::Number,
            Kind::Boolean => Form::Boolean,
            Kind::Texts(_) => Form::List,
        }
    }

    /// Whether this text can be its value.
    pub fn accepts(self, text: &str) -> bool {
        match self {
            Kind::Time => text.parse().is_ok_and(|time| time > Nanos::ZERO),
            Kind::Delay => text.parse::<Nanos>().is_ok(),
            Kind::Rate => text.parse().is_ok_and(|rate: BitRate| rate.0 > 0),
            Kind::Amount => text.parse().is_ok_and(|bytes: Bytes| bytes.0 > 0),
            Kind::Whole(least, most) => {
                text.parse().is_ok_and(|number: u64| (least..=most).contains(&number))
            }
            Kind::Number(above, most) => {
                text.parse().is_ok_and(|number: f64| number > above && number <= most)
            }
            Kind::Share => text.parse().is_ok_and(|share: f64| (0.0..=1.0).contains(&share)),
            Kind::Boolean => text.parse::<bool>().is_ok(),
            Kind::Name(choices) => choices().iter().any(|&(name, _)| name == text),
            Kind::Text(_) => !text.is_empty(),
            Kind::Texts(_) => !text.is_empty() && text.split(',').all(|text| !text.is_empty()),
        }
    }

    /// What is expected, to be read after "expected".
    pub fn expected(self) -> String {
        match self {
            Kind::Time => "a time longer than zero, such as 200us, 100ms, 1.5s or 30min".to_owned(),
            Kind::Delay => "a length of time, such as 0s, 200us, 100ms or 1.5s".to_owned(),
            Kind::Rate => "a bit rate above zero, such as 40mbps or 10gbps".to_owned(),
            Kind::Amount => "an amount of data above zero, such as 1500B, 1.5GB or 64KiB".to_owned(),
            Kind::Whole(least, u64::MAX) => format!("an integer of at least {least}"),
            Kind::Whole(least, most) => format!("an integer from {least} to {most}"),
            Kind::Number(above, f64::INFINITY) => format!("a number above {above}"),
            Kind::Number(above, most) => format!("a number above {above}, at most {most}"),
            Kind::Share => "a number from 0 to 1".to_owned(),
            Kind::Boolean => "true or false".to_owned(),
            Kind::Name(choices) => {
                let names: Vec<&str> = choices().iter().map(|&(name, _)| name).collect();
                format!("one of {}", names.join(", "))
            }
            Kind::Text(what) | Kind::Texts(what) => what.to_owned(),
        }
    }

    /// The names to choose from; none if it is no choice.
    pub fn choices(self) -> Vec<Choice> {
        match self {
            Kind::Name(choices) => choices(),
            _ => Vec::new(),
        }
    }
}
