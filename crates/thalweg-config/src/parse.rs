//! A file to a document.

use std::ops::Range;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::error::{DocumentError, Place, Problem, ProblemKind};
use super::form::{Form, text_of};
use super::key::{Default, Key, Kind, Schema, Section};
use super::text::{Hint, Name, Words, nearest};
use super::{Document, Entry, Written};

/// Most sections of one kind: more were hardly meant.
const MOST_REPEATED: usize = 1_000;

impl Document {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or as [`Document::parse`].
    pub fn load(schema: &'static Schema, path: &Path) -> Result<Document, DocumentError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => {
                let folder = path.parent().unwrap_or(Path::new("")).to_owned();
                Ok(Document { folder, ..Document::parse(schema, &text, &file)? })
            }
            Err(source) => Err(DocumentError::Unreadable { what: schema.what, file, source }),
        }
    }

    /// Reads the text of a file; `file` is its name for messages.
    ///
    /// # Errors
    /// With every unknown section, unknown key, wrong or missing value; or with the first error of syntax.
    pub fn parse(schema: &'static Schema, text: &str, file: &str) -> Result<Document, DocumentError> {
        let document = Document::empty(schema, file);
        let mut reader =
            Reader { text, document, waiting: Vec::new(), refused: Vec::new(), problems: Vec::new() };
        match DeTable::parse(text) {
            Ok(table) => reader.read_document(table.get_ref()),
            Err(error) => {
                let message = Words(error.message().replace('\n', "; "));
                reader.complain(&error.span().unwrap_or_default(), ProblemKind::Syntax { message });
                return Err(reader.document.error(reader.problems));
            }
        }
        reader.finish()
    }
}

struct Reader<'a> {
    text: &'a str,
    document: Document,
    /// Keys by entry, whose meaning depends on what will have been selected.
    waiting: Vec<(usize, Found)>,
    /// Keys by entry that are there, but wrong: they are not missing.
    refused: Vec<(usize, &'static str)>,
    problems: Vec<Problem>,
}

/// A key and a value as the file has them.
struct Found {
    name: String,
    name_span: Range<usize>,
    value: String,
    value_span: Range<usize>,
    texts: Vec<(Form, String)>,
}

impl Reader<'_> {
    fn read_document(&mut self, document: &DeTable<'_>) {
        let schema = self.document.schema;
        for (name, value) in document {
            let (span, name) = (name.span(), name.get_ref().as_ref());
            let section =
                schema.sections.iter().copied().find(|section| section.name == name && !name.is_empty());
            match (section, value.get_ref()) {
                (Some(section), DeValue::Table(table)) if !section.repeats => {
                    let index = self.position(section);
                    self.document.entries[index].place = self.place(&span);
                    self.read_entry(index, table);
                }
                (Some(section), DeValue::Array(elements)) if section.repeats => {
                    for element in elements.iter().take(MOST_REPEATED) {
                        match element.get_ref() {
                            DeValue::Table(table) => {
                                let place = self.place(&element.span());
                                self.document.entries.push(Entry::new(section, place));
                                self.read_entry(self.document.entries.len() - 1, table);
                            }
                            _ => self.complain_of_section(section, &element.span()),
                        }
                    }
                }
                (Some(section), _) => self.complain_of_section(section, &span),
                (None, DeValue::Table(_)) => {
                    let hint = nearest(name, schema.named());
                    self.complain(
                        &span,
                        ProblemKind::UnknownSection { name: Name(format!("[{name}]")), hint },
                    );
                }
                (None, _) => match schema.top() {
                    Some(top) => {
                        let found = self.found(name, span, value.get_ref(), value.span());
                        let top = self.position(top);
                        self.waiting.push((top, found));
                    }
                    None => {
                        let elsewhere = schema.sections.iter().find(|section| section.has(name));
                        let hint = elsewhere.map_or_else(
                            || nearest(name, schema.named()),
                            |section| Hint::BelongsIn(section.name),
                        );
                        self.complain(&span, ProblemKind::UnknownKey { name: Name(name.to_owned()), hint });
                    }
                },
            }
        }
    }

    fn position(&self, section: &'static Section) -> usize {
        let place = self.document.entries.iter().position(|entry| std::ptr::eq(entry.section, section));
        place.expect("each section that does not repeat is there")
    }

    fn read_entry(&mut self, index: usize, table: &DeTable<'_>) {
        let section = self.document.entries[index].section;
        let choices = section.selector().map(|selector| selector.kind.choices()).unwrap_or_default();
        for (name, value) in table {
            match value.get_ref() {
                // [scheme.hull]: keys that wait.
                DeValue::Table(inner) if choices.iter().any(|(choice, _)| choice == name.get_ref()) => {
                    for (key, value) in inner {
                        let found = self.found(key.get_ref(), key.span(), value.get_ref(), value.span());
                        self.take(index, name.get_ref(), found);
                    }
                }
                found => {
                    let found = self.found(name.get_ref(), name.span(), found, value.span());
                    match section.selector == Some(found.name.as_str()) {
                        true => self.take(index, "", found),
                        false => self.waiting.push((index, found)),
                    }
                }
            }
        }
    }

    fn found(&self, name: &str, name_span: Range<usize>, value: &DeValue<'_>, span: Range<usize>) -> Found {
        let forms = [Form::Text, Form::Quantity, Form::Integer, Form::Number, Form::Boolean, Form::List];
        Found {
            name: name.to_owned(),
            name_span,
            value: self.text.get(span.clone()).unwrap_or_default().to_owned(),
            value_span: span,
            texts: forms.into_iter().filter_map(|form| Some((form, text_of(value, form)?))).collect(),
        }
    }

    /// Takes a key into an entry, in which `chosen` is selected.
    fn take(&mut self, index: usize, chosen: &str, found: Found) {
        let section = self.document.entries[index].section;
        match section.key(&found.name, chosen) {
            Some(key) => self.take_value(index, key, &found),
            None => {
                let kind = self.document.schema.unknown_key(section, chosen, &found.name);
                if let ProblemKind::UnknownKey { hint: Hint::Nearest(meant), .. } = &kind {
                    self.refused.push((index, meant));
                }
                self.complain(&found.name_span, kind);
            }
        }
    }

    fn take_value(&mut self, index: usize, key: &'static Key, found: &Found) {
        let place = self.place(&found.name_span);
        match found.text(key.kind).filter(|text| key.kind.accepts(text)) {
            Some(text) => {
                let text = text.to_owned();
                self.document.entries[index].values.push(Written { key, text, place });
            }
            None => {
                let kind = wrong_value(key, &found.value, found.text(key.kind), true);
                self.refused.push((index, key.name));
                self.complain(&found.value_span, kind);
            }
        }
    }

    /// All that is left, once it is known what is selected.
    fn finish(mut self) -> Result<Document, DocumentError> {
        self.document.settle();
        for (index, found) in std::mem::take(&mut self.waiting) {
            // What the key means cannot be said where nothing is selected.
            if self.is_settled(index) {
                let chosen = self.chosen_for(index, &found.name);
                self.take(index, &chosen, found);
            }
        }
        self.complain_of_missing();
        let sections = self.document.schema.sections;
        let order = |entry: &Entry| sections.iter().position(|section| std::ptr::eq(*section, entry.section));
        self.document.entries.sort_by_key(order);
        if self.problems.is_empty() { Ok(self.document) } else { Err(self.document.error(self.problems)) }
    }

    /// What a key is taken to be about: what is selected; or, if nobody has selected it and the default changes with
    /// another key, whatever has such a key.
    fn chosen_for(&self, index: usize, name: &str) -> String {
        let entry = &self.document.entries[index];
        let (section, chosen) = (entry.section, &entry.chosen);
        let follows = section.selector().is_some_and(|selector| {
            matches!(selector.default, Default::Words(_)) && entry.written(selector).is_none()
        });
        if !follows || section.key(name, chosen).is_some() {
            return chosen.clone();
        }
        let other = section.keys.iter().find(|key| key.name == name).and_then(|key| key.of.first());
        other.map_or_else(|| chosen.clone(), |other| (*other).to_owned())
    }

    /// Whether it is known what an entry describes.
    fn is_settled(&self, index: usize) -> bool {
        let entry = &self.document.entries[index];
        let Some(selector) = entry.section.selector else { return true };
        !entry.chosen.is_empty() && !self.refused.contains(&(index, selector))
    }

    fn complain_of_missing(&mut self) {
        let mut missing = Vec::new();
        for (index, entry) in self.document.entries.iter().enumerate() {
            let heading = match entry.section.name {
                "" => format!("the {}", self.document.schema.what),
                _ => entry.section.heading(),
            };
            let needed = entry.section.keys.iter().filter(|key| {
                let matters = key.of.is_empty() || self.is_settled(index) && key.matters_to(&entry.chosen);
                key.default == Default::Needed && matters
            });
            for key in needed {
                if entry.written(key).is_none() && !self.refused.contains(&(index, key.name)) {
                    let (heading, expected) = (heading.clone(), in_file(key.kind));
                    let kind = ProblemKind::MissingKey { heading, key: key.name, expected };
                    missing.push(Problem { place: entry.place.clone(), kind });
                }
            }
        }
        self.problems.append(&mut missing);
    }

    fn complain_of_section(&mut self, section: &'static Section, span: &Range<usize>) {
        let kind = ProblemKind::NotASection { section: section.name, heading: section.heading() };
        self.complain(span, kind);
    }

    fn complain(&mut self, span: &Range<usize>, kind: ProblemKind) {
        let place = self.place(span);
        self.problems.push(Problem { place, kind });
    }

    /// The line where a span begins.
    fn place(&self, span: &Range<usize>) -> Place {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        Place::Line(1 + before.iter().filter(|&&byte| byte == b'\n').count())
    }
}

impl Found {
    /// The value as a kind takes it; `None` if it is of another form. One text may stand for a list of one.
    fn text(&self, kind: Kind) -> Option<&str> {
        let of = |form| self.texts.iter().find(|(of, _)| *of == form).map(|(_, text)| text.as_str());
        match kind.form() {
            Form::List => of(Form::List).or(of(Form::Text)),
            form => of(form),
        }
    }
}

impl Schema {
    /// The section of the keys above all sections.
    pub(super) fn top(&self) -> Option<&'static Section> {
        self.sections.iter().copied().find(|section| section.name.is_empty())
    }

    /// Names of all sections that have one.
    pub(super) fn named(&self) -> impl Iterator<Item = &'static str> {
        self.sections.iter().map(|section| section.name).filter(|name| !name.is_empty())
    }

    /// That a section has no such key for what is selected.
    pub(super) fn unknown_key(&self, section: &'static Section, chosen: &str, name: &str) -> ProblemKind {
        let of: Vec<&str> =
            section.keys.iter().filter(|key| key.name == name).flat_map(|key| key.of).copied().collect();
        if let Some(key) = section.keys.iter().find(|key| key.name == name) {
            return ProblemKind::NotFor { key: key.name, chosen: chosen.to_owned(), of };
        }
        let here = section.keys.iter().filter(|key| key.matters_to(chosen)).map(|key| key.name);
        let elsewhere = self.sections.iter().find(|other| other.has(name));
        let hint = match (nearest(name, here), elsewhere) {
            (_, Some(section)) if !section.name.is_empty() => Hint::BelongsIn(section.name),
            (hint, _) => hint,
        };
        ProblemKind::UnknownKey { name: Name(name.to_owned()), hint }
    }
}

/// That a value is not as expected; `text` is it without quotes, if it has the right form.
pub(super) fn wrong_value(key: &'static Key, found: &str, text: Option<&str>, is_toml: bool) -> ProblemKind {
    let hint = match (key.kind, text) {
        (Kind::Name(choices), Some(text)) => nearest(text, choices().into_iter().map(|(name, _)| name)),
        _ => Hint::Nothing,
    };
    let expected = if is_toml { in_file(key.kind) } else { key.kind.expected() };
    ProblemKind::WrongValue { key: key.name, found: Name(found.to_owned()), expected, hint }
}

/// What a file should say, quotes and brackets included.
fn in_file(kind: Kind) -> String {
    let expected = kind.expected();
    match kind {
        Kind::Name(_) | Kind::Time | Kind::Delay => format!("{expected}, in quotes"),
        Kind::Rate | Kind::Amount => format!("{expected}, in quotes"),
        _ => expected,
    }
}
