//! Sets one key by its path: `workload.load`, `scheme`, or `load` if only one section has it.

use super::error::{DocumentError, Place, ProblemKind};
use super::literal::Literal;
use super::parse::wrong_value;
use super::section::Section;
use super::text::{Hint, Name, SafeText};
use super::{Document, Key};

impl Document {
    /// Sets the key at `path` to `value`. `flag` is the text that the user typed, for messages.
    ///
    /// `SECTION.KEY` sets the key in all sections of that name to which it applies. `SECTION.CHOICE.KEY` sets a key
    /// that applies while `CHOICE` is selected. `SECTION` sets its selector. `KEY` alone suffices if one section has
    /// it.
    ///
    /// # Errors
    /// If the key does not exist, or does not accept the value.
    pub fn set(&mut self, path: &str, value: &str, flag: &str) -> Result<(), DocumentError> {
        let wrong = |kind| DocumentError::Override { flag: flag.to_owned(), kind: Box::new(kind) };
        let target = self.resolve(path).map_err(wrong)?;
        let schema = self.schema;
        let place = Place::Flag(flag.to_owned());
        let mut is_set = false;
        let mut refusal = None;
        for entry in self.entries.iter_mut().filter(|entry| std::ptr::eq(entry.section, target.section)) {
            let chosen = target.chosen.as_deref().unwrap_or(&entry.chosen);
            let Some(key) = target.section.key(target.name, chosen) else {
                refusal.get_or_insert_with(|| schema.unknown_key(target.section, chosen, target.name));
                continue;
            };
            let literal = Literal::from_text(key.form(), value);
            if !(key.accepts)(&literal) {
                return Err(wrong(wrong_value(target.section, key, value, Some(&literal), false)));
            }
            entry.set(key, literal, place.clone());
            is_set = true;
        }
        if !is_set {
            let absent = || ProblemKind::Refused {
                key: "",
                reason: SafeText(format!("{} has no section {}", self.file, target.section.heading())),
            };
            return Err(wrong(refusal.unwrap_or_else(absent)));
        }
        self.resolve_selectors();
        Ok(())
    }

    /// Sets a key of a section that does not repeat to the value of its flag, which the key must accept.
    ///
    /// # Panics
    /// If the schema has no such section.
    pub fn set_by_flag(&mut self, section: &'static Section, key: &'static Key, value: &str, flag: &str) {
        let entry = self.entries.iter_mut().find(|entry| std::ptr::eq(entry.section, section));
        let entry = entry.expect("each section that does not repeat is present");
        entry.set(key, Literal::from_text(key.form(), value), Place::Flag(flag.to_owned()));
        self.resolve_selectors();
    }

    fn resolve<'p>(&self, path: &'p str) -> Result<Target<'p>, ProblemKind> {
        let named = |name: &str| {
            self.schema.sections.iter().copied().find(|section| !name.is_empty() && section.name == name)
        };
        let mut parts = path.splitn(3, '.');
        match (parts.next().unwrap_or_default(), parts.next(), parts.next()) {
            (section, Some(key), last) => {
                let section = named(section).ok_or_else(|| {
                    let hint = Hint::nearest(section, self.schema.section_names());
                    ProblemKind::UnknownSection { name: Name(section.to_owned()), hint }
                })?;
                Ok(match last {
                    Some(last) => Target { section, chosen: Some(key.to_owned()), name: last },
                    None => Target { section, chosen: None, name: key },
                })
            }
            (name, None, _) => {
                match named(name).and_then(|section| Some((section, section.selector_name()?))) {
                    Some((section, selector)) => Ok(Target { section, chosen: None, name: selector }),
                    None => self.resolve_key(name),
                }
            }
        }
    }

    /// Resolves a key by its name alone.
    fn resolve_key<'p>(&self, name: &'p str) -> Result<Target<'p>, ProblemKind> {
        let sections = self.schema.sections;
        let holders: Vec<&'static Section> =
            sections.iter().copied().filter(|section| section.has(name)).collect();
        // Of several sections, prefer those in the document to which the key applies.
        let applies = |section: &&&'static Section| {
            let mut entries = self.entries.iter().filter(|entry| std::ptr::eq(entry.section, **section));
            entries.any(|entry| section.key(name, &entry.chosen).is_some())
        };
        let here: Vec<&'static Section> = holders.iter().filter(applies).copied().collect();
        let path = |section: &&Section| match section.name {
            "" => name.to_owned(),
            section => format!("{section}.{name}"),
        };
        match (&holders[..], &here[..]) {
            (_, [section]) | ([section], _) => Ok(Target { section, chosen: None, name }),
            ([], _) => {
                let selectors =
                    sections.iter().filter(|section| section.selector.is_some()).map(|section| section.name);
                // In a section of the document a key must fit its choice; in an absent one any choice is possible.
                let fits = |section: &'static Section, key: &str| {
                    let mut present =
                        self.entries.iter().filter(|entry| std::ptr::eq(entry.section, section)).peekable();
                    present.peek().is_none() || present.any(|entry| section.key(key, &entry.chosen).is_some())
                };
                let keys = sections.iter().copied().flat_map(|section| {
                    section.keys().map(|key| key.name).filter(move |key| fits(section, key))
                });
                let hint = Hint::nearest(name, keys.chain(selectors));
                Err(ProblemKind::UnknownKey { name: Name(name.to_owned()), section: None, hint })
            }
            (absent, []) => {
                let requirement = |section: &&'static Section| {
                    let present = self.entries.iter().find(|entry| std::ptr::eq(entry.section, *section));
                    let path = path(section);
                    match (present, section.selector_name()) {
                        (Some(entry), Some(selector)) => {
                            format!("{path} requires another {selector} than \"{}\"", entry.chosen)
                        }
                        _ => format!("{path} requires a section {}", section.heading()),
                    }
                };
                let (file, choices) = (self.file.clone(), absent.iter().map(requirement).collect());
                Err(ProblemKind::NoSection { file, name: Name(name.to_owned()), choices })
            }
            (_, several) => {
                let named = several.iter().filter(|section| !section.name.is_empty());
                let choices = named.map(path).collect();
                Err(ProblemKind::Ambiguous { name: Name(name.to_owned()), choices })
            }
        }
    }
}

/// The key that a path names.
struct Target<'p> {
    section: &'static Section,
    chosen: Option<String>,
    name: &'p str,
}

impl Document {
    /// Whether a path names the selector of a section.
    pub fn is_selector(&self, path: &str) -> bool {
        self.resolve(path).is_ok_and(|target| target.section.selector_name() == Some(target.name))
    }
}
