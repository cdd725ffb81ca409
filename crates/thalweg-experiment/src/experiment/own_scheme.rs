//! Schemes that a program adds to the section `[scheme]`, each with keys of its own.
//!
//! A scheme declares its keys with [`keys!`](thalweg_config::keys) and implements [`DeclaredScheme`]. The program adds it
//! once, before it reads a file ([`add`]). Parsing, messages, sweeps, `--print-config`, the reference and the JSON Schema then
//! know it like any other.

use std::sync::{LazyLock, OnceLock};

use thalweg_config::kind::Named;
use thalweg_config::{Declared, Entry, Group, Key, Keys, Section, Selector};
use thalweg_emulator::schemes::{Own, OwnScheme, SCHEMES};

use super::schemes::{BUILT_IN_SCHEME, BuiltInScheme, scheme_summary};

/// A scheme whose settings are keys of an experiment file.
pub trait DeclaredScheme: OwnScheme + Keys {
    /// The value of `name` in `[scheme]`.
    const NAME: &'static str;
    /// A description in one line, at most 60 characters.
    const SUMMARY: &'static str;

    /// Checks settings that contradict each other.
    ///
    /// # Errors
    /// Names the key, and says what it should be.
    fn check(&self) -> Result<(), (&'static str, String)> {
        Ok(())
    }
}

/// A scheme to add.
#[derive(Clone, Copy, Debug)]
pub struct AddedScheme {
    name: &'static str,
    summary: &'static str,
    keys: &'static Group,
    read: fn(&Entry) -> Reading,
}

/// A scheme, or a key with what it should be.
type Reading = Result<Own, (&'static str, String)>;

impl AddedScheme {
    /// The scheme `S`.
    pub const fn of<S: DeclaredScheme>() -> AddedScheme {
        fn read<S: DeclaredScheme>(entry: &Entry) -> Reading {
            let scheme = <S as Keys>::read(entry);
            scheme.check().map(|()| Own::new(scheme))
        }
        AddedScheme { name: S::NAME, summary: S::SUMMARY, keys: S::GROUP, read: read::<S> }
    }
}

static ADDED: OnceLock<Vec<AddedScheme>> = OnceLock::new();

/// Adds schemes to experiment files. A program calls it once, before it reads a file.
///
/// # Panics
/// If it is called twice or too late, or a name or a type of keys is in use.
pub fn add(schemes: &[AddedScheme]) {
    for (number, scheme) in schemes.iter().enumerate() {
        let is_known = SCHEMES.iter().any(|known| known.name == scheme.name);
        let is_repeated = schemes[..number].iter().any(|other| other.name == scheme.name);
        assert!(!is_known && !is_repeated, "there is a scheme {} already", scheme.name);
        let group = scheme.keys.name;
        let is_used = BUILT_IN_SCHEME.groups.iter().any(|known| known.name == group);
        let is_repeated = schemes[..number].iter().any(|other| other.keys.name == group);
        assert!(!is_used && !is_repeated, "there are keys of the type name {group} already");
    }
    assert!(ADDED.set(schemes.to_vec()).is_ok(), "schemes are added once, before files are read");
}

fn added() -> &'static [AddedScheme] {
    ADDED.get_or_init(Vec::new)
}

/// The section `[scheme]`.
#[derive(Clone, Debug, PartialEq)]
pub enum Scheme {
    /// A scheme of the emulator.
    BuiltIn(BuiltInScheme),
    /// A scheme of this program, or the key that contradicts another.
    Own(Reading),
}

impl Declared for Scheme {
    fn section() -> &'static Section {
        static SECTION: LazyLock<&'static Section> = LazyLock::new(section);
        *SECTION
    }

    fn read(entry: &Entry) -> Scheme {
        match added().iter().find(|added| added.name == entry.chosen()) {
            Some(added) => Scheme::Own((added.read)(entry)),
            None => Scheme::BuiltIn(BuiltInScheme::read(entry)),
        }
    }
}

/// The section with the added schemes. It lives as long as the program, like those that are declared.
fn section() -> &'static Section {
    if added().is_empty() {
        return &BUILT_IN_SCHEME;
    }
    let built_in = BUILT_IN_SCHEME.selector.expect("the section selects a scheme");
    let mut groups = BUILT_IN_SCHEME.groups.to_vec();
    groups.extend(added().iter().map(|added| added.keys));
    let mut choices = built_in.groups.to_vec();
    for added in added() {
        choices.push((added.name, &*Vec::leak(vec![added.keys.name])));
    }
    let names: Vec<&'static str> = choices.iter().map(|(name, _)| *name).collect();
    let key = Key {
        kind: Box::leak(Box::new(Named { names: Vec::leak(names), summary: summary_of })),
        accepts: |literal| {
            let text = literal.text();
            let is_known = SCHEMES.iter().any(|known| known.name == text);
            is_known || added().iter().any(|added| added.name == text)
        },
        extra: built_in.key.extra,
        meaning: built_in.key.meaning,
        default: built_in.key.default,
        ..built_in.key
    };
    Box::leak(Box::new(Section {
        selector: Some(Box::leak(Box::new(Selector { key, groups: Vec::leak(choices) }))),
        groups: Vec::leak(groups),
        ..BUILT_IN_SCHEME
    }))
}

fn summary_of(name: &str) -> &'static str {
    let added = added().iter().find(|added| added.name == name);
    added.map_or_else(|| scheme_summary(name), |added| added.summary)
}
