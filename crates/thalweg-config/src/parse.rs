//! A file to a document.

use std::ops::Range;
use std::path::Path;

use super::error::{DocumentError, Place, Problem, ProblemKind, Problems};
use super::given::Given;
use super::section::{Default, Key, Schema, Section};
use super::text::{Hint, Name};
use super::tree::{Format, Kind, Node, Table};
use super::{Document, Entry, Written};

/// Problems of one file after which no near names are looked for any more, which takes time.
const MAX_HINTED: usize = 1_000;

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

    /// Reads the text of a file in TOML; `file` is its name for messages.
    ///
    /// # Errors
    /// With every unknown section, unknown key, wrong or missing value; or with the first error of syntax.
    pub fn parse(schema: &'static Schema, text: &str, file: &str) -> Result<Document, DocumentError> {
        let (document, problems) = Document::read(schema, text, file, Format::Toml)?;
        if problems.is_empty() { Ok(document) } else { Err(document.error(problems)) }
    }

    /// Reads the text of a file as far as it is sound; `file` is its name for messages. Also gives what is wrong with it.
    ///
    /// # Errors
    /// With the first error of syntax.
    pub fn read(
        schema: &'static Schema,
        text: &str,
        file: &str,
        format: Format,
    ) -> Result<(Document, Vec<Problem>), Problems> {
        let document = Document::empty(schema, file);
        let mut reader = Reader {
            text,
            format,
            lines: Lines::of(text),
            document,
            waiting: Vec::new(),
            refused: Vec::new(),
            problems: Vec::new(),
        };
        match Table::parse(text, format) {
            Ok(table) => reader.read_document(&table),
            Err((span, kind)) => {
                reader.complain(&span, kind);
                return Err(reader.document.problems(reader.problems));
            }
        }
        Ok(reader.finish())
    }
}

struct Reader<'a> {
    text: &'a str,
    format: Format,
    lines: Lines,
    document: Document,
    /// Keys by entry, whose meaning depends on what will have been selected.
    waiting: Vec<(usize, Found)>,
    /// Keys by entry that are there, but wrong: they are not missing.
    refused: Vec<(usize, &'static str)>,
    problems: Vec<Problem>,
}

/// Where the lines of a text end.
struct Lines(Vec<usize>);

/// A key and a value as the file has them.
struct Found {
    name: String,
    name_span: Range<usize>,
    node: Node,
}

impl Lines {
    fn of(text: &str) -> Lines {
        Lines(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect())
    }

    /// The line where a span begins.
    fn place(&self, span: &Range<usize>) -> Place {
        Place::Line(1 + self.0.partition_point(|&end| end < span.start))
    }
}

impl Reader<'_> {
    fn read_document(&mut self, document: &Table) {
        let schema = self.document.schema;
        for (key, node) in &document.0 {
            let (span, name) = (key.span.clone(), key.text.as_str());
            let section =
                schema.sections.iter().copied().find(|section| section.name == name && !name.is_empty());
            match (section, &node.kind) {
                (Some(section), Kind::Table(table)) if !section.repeats => {
                    let index = self.position(section);
                    self.document.entries[index].place = self.lines.place(&span);
                    self.document.entries[index].is_there = true;
                    self.read_entry(index, table);
                }
                (Some(section), Kind::List(elements)) if section.repeats => {
                    self.read_list(section, elements, &span);
                }
                (Some(section), _) => {
                    if !section.repeats {
                        let index = self.position(section);
                        let entry = &mut self.document.entries[index];
                        (entry.is_there, entry.is_flawed) = (true, true);
                    }
                    self.complain_of_section(section, &span, node);
                }
                (None, Kind::Table(_)) => self.complain_of_name(&span, format!("[{name}]"), name),
                (None, _) if schema.may_be_json => self.complain_of_name(&span, name.to_owned(), name),
                (None, _) => match schema.top() {
                    Some(top) => {
                        let top = self.position(top);
                        self.waiting.push((top, Found::new(name, span, node)));
                    }
                    None => {
                        let elsewhere = schema.sections.iter().find(|section| section.has(name));
                        let hint = elsewhere.map_or_else(
                            || self.hint(name, schema.named()),
                            |section| Hint::BelongsIn(section.name),
                        );
                        let name = Name(name.to_owned());
                        self.complain(&span, ProblemKind::UnknownKey { name, of: None, hint });
                    }
                },
            }
        }
    }

    fn complain_of_name(&mut self, span: &Range<usize>, shown: String, name: &str) {
        let schema = self.document.schema;
        let hint = self.hint(name, schema.named());
        let shown = if schema.may_be_json { name.to_owned() } else { shown };
        self.complain(span, ProblemKind::UnknownSection { name: Name(shown), hint });
    }

    /// The sections of one name.
    fn read_list(&mut self, section: &'static Section, elements: &[Node], span: &Range<usize>) {
        if elements.len() > section.most {
            let (heading, count, most) = (section.heading(), elements.len(), section.most);
            self.complain(span, ProblemKind::TooMany { heading, count, most });
        }
        for element in elements.iter().take(section.most) {
            match &element.kind {
                Kind::Table(table) => {
                    let place = self.lines.place(&element.span);
                    self.document.entries.push(Entry { is_there: true, ..Entry::new(section, place) });
                    self.read_entry(self.document.entries.len() - 1, table);
                }
                _ => self.complain_of_section(section, &element.span, element),
            }
        }
    }

    fn position(&self, section: &'static Section) -> usize {
        let place = self.document.entries.iter().position(|entry| std::ptr::eq(entry.section, section));
        place.expect("each section that does not repeat is there")
    }

    fn read_entry(&mut self, index: usize, table: &Table) {
        let section = self.document.entries[index].section;
        let choices = section.choices();
        for (key, node) in &table.0 {
            if let Some(list) = section.lists.iter().find(|list| list.name == key.text) {
                self.read_tables(index, list, node);
                continue;
            }
            match &node.kind {
                // [scheme.hull]: keys that wait.
                Kind::Table(inner) if choices.iter().any(|(choice, _)| *choice == key.text) => {
                    for (name, node) in &inner.0 {
                        self.take(index, &key.text, Found::new(&name.text, name.span.clone(), node));
                    }
                }
                _ => {
                    let found = Found::new(&key.text, key.span.clone(), node);
                    match section.selector {
                        Some(selector) if selector.key.name == found.name => {
                            self.take_value(index, &selector.key, &found);
                        }
                        Some(_) => self.waiting.push((index, found)),
                        None => self.take(index, "", found),
                    }
                }
            }
        }
    }

    /// A list of tables in a section.
    fn read_tables(&mut self, index: usize, section: &'static Section, node: &Node) {
        let is_table = |element: &Node| matches!(element.kind, Kind::Table(_));
        let Kind::List(elements) = &node.kind else { return self.complain_of_tables(section, node) };
        if !elements.iter().all(is_table) {
            return self.complain_of_tables(section, node);
        }
        for element in elements {
            let Kind::Table(table) = &element.kind else { continue };
            // Read as if it stood alone, and put in its place then.
            let place = self.lines.place(&element.span);
            self.document.entries.push(Entry { is_there: true, ..Entry::new(section, place) });
            let at = self.document.entries.len() - 1;
            self.read_entry(at, table);
            self.complain_of_missing(at);
            let entry = self.document.entries.pop().expect("it was put there");
            self.refused.retain(|(of, _)| *of != at);
            self.document.entries[index].lists.push(entry);
        }
    }

    fn complain_of_tables(&mut self, section: &'static Section, node: &Node) {
        let mut keys: Vec<&str> = section.keys().map(|key| key.name).collect();
        let last = keys.pop().unwrap_or_default();
        let expected = format!("a list of {}, each with {} and {last}", section.name, keys.join(", "));
        self.complain_of_value(section.name, expected, &node.span);
    }

    /// Takes a key into an entry, in which `chosen` is selected.
    fn take(&mut self, index: usize, chosen: &str, found: Found) {
        let section = self.document.entries[index].section;
        match section.key(&found.name, chosen) {
            Some(key) => self.take_value(index, key, &found),
            None => {
                let kind = self.document.schema.unknown_key(section, chosen, &found.name);
                // What was misspelt is not missing as well.
                if let ProblemKind::UnknownKey { hint: Hint::Nearest(meant), of: None, .. } = &kind
                    && let Some(key) = section.keys().find(|key| key.name == meant)
                {
                    self.refused.push((index, key.name));
                }
                self.complain(&found.name_span, kind);
            }
        }
    }

    fn take_value(&mut self, index: usize, key: &'static Key, found: &Found) {
        let given = found.node.given(key.form());
        match given {
            Some((given, spans)) if (key.accepts)(&given) => {
                let written = Written {
                    key,
                    given,
                    place: self.lines.place(&found.name_span),
                    value_place: self.lines.place(&found.node.span),
                    elements: spans.iter().map(|span| self.lines.place(span)).collect(),
                };
                self.document.entries[index].values.push(written);
            }
            given => {
                let text = self.text.get(found.node.span.clone()).unwrap_or_default();
                let kind = wrong_value(key, text, given.as_ref().map(|(given, _)| given), true);
                self.refused.push((index, key.name));
                self.document.entries[index].is_flawed = true;
                self.complain(&found.node.span, kind);
            }
        }
    }

    /// All that is left, once it is known what is selected.
    fn finish(mut self) -> (Document, Vec<Problem>) {
        self.document.settle();
        for (index, found) in std::mem::take(&mut self.waiting) {
            // What the key means cannot be said where nothing is selected.
            if self.is_settled(index) {
                let chosen = self.chosen_for(index, &found.name);
                self.take(index, &chosen, found);
            }
        }
        for index in 0..self.document.entries.len() {
            self.complain_of_missing(index);
            let is_settled = self.is_settled(index);
            self.document.entries[index].is_flawed |= !is_settled;
        }
        let sections = self.document.schema.sections;
        let order = |entry: &Entry| sections.iter().position(|section| std::ptr::eq(*section, entry.section));
        self.document.entries.sort_by_key(order);
        (self.document, self.problems)
    }

    /// What a key is taken to be about: what is selected; or, if nobody has selected it and the default changes with
    /// another key, whatever has such a key.
    fn chosen_for(&self, index: usize, name: &str) -> String {
        let entry = &self.document.entries[index];
        let (section, chosen) = (entry.section, &entry.chosen);
        let follows = section.selector.is_some_and(|selector| {
            matches!(selector.key.default, Default::Words(_)) && entry.written(&selector.key).is_none()
        });
        if !follows || section.key(name, chosen).is_some() {
            return chosen.clone();
        }
        let other = section.keys().find(|key| key.name == name);
        let other = other.and_then(|key| section.of(key).first().copied());
        other.map_or_else(|| chosen.clone(), str::to_owned)
    }

    /// Whether it is known what an entry describes.
    fn is_settled(&self, index: usize) -> bool {
        let entry = &self.document.entries[index];
        let Some(selector) = entry.section.selector_name() else { return true };
        !entry.chosen.is_empty() && !self.refused.contains(&(index, selector))
    }

    fn complain_of_missing(&mut self, index: usize) {
        let entry = &self.document.entries[index];
        let schema = self.document.schema;
        let heading = match entry.section.name {
            "" => format!("the {}", schema.what),
            name if schema.may_be_json => name.to_owned(),
            _ => entry.section.heading(),
        };
        let mut missing = Vec::new();
        let mut is_flawed = false;
        for key in entry.section.keys().filter(|key| key.default == Default::Needed) {
            let of = entry.section.of(key);
            let matters = of.is_empty() || self.is_settled(index) && of.contains(&&*entry.chosen);
            if !matters || entry.written(key).is_some() {
                continue;
            }
            is_flawed = true;
            if !self.refused.contains(&(index, key.name)) {
                let expected =
                    if schema.may_be_json { format!("{} = ...", key.name) } else { key.kind.in_file() };
                let kind = ProblemKind::MissingKey { heading: heading.clone(), key: key.name, expected };
                missing.push(Problem { place: entry.place.clone(), kind });
            }
        }
        self.document.entries[index].is_flawed |= is_flawed;
        self.problems.append(&mut missing);
    }

    /// What is to be written instead is said in the format's own terms.
    fn complain_of_section(&mut self, section: &'static Section, span: &Range<usize>, node: &Node) {
        match (self.format, section.repeats) {
            (Format::Json, true) => {
                self.complain_of_value(section.name, "a list of objects, [{ ... }]".to_owned(), &node.span);
            }
            (Format::Json, false) => {
                self.complain_of_value(section.name, "an object, { ... }".to_owned(), &node.span);
            }
            (Format::Toml, true) if self.document.schema.may_be_json => {
                self.complain(span, ProblemKind::NotAList { section: section.name });
            }
            (Format::Toml, _) => {
                let kind = ProblemKind::NotASection { section: section.name, heading: section.heading() };
                self.complain(span, kind);
            }
        }
    }

    fn complain_of_value(&mut self, key: &'static str, expected: String, span: &Range<usize>) {
        let found = Name(self.text.get(span.clone()).unwrap_or_default().to_owned());
        self.complain(span, ProblemKind::WrongValue { key, found, expected, hint: Hint::Nothing });
    }

    fn complain(&mut self, span: &Range<usize>, kind: ProblemKind) {
        let place = self.lines.place(span);
        self.problems.push(Problem { place, kind });
    }

    fn hint(&self, name: &str, known: impl Iterator<Item = &'static str>) -> Hint {
        if self.problems.len() >= MAX_HINTED { Hint::Nothing } else { Hint::nearest(name, known) }
    }
}

impl Found {
    fn new(name: &str, name_span: Range<usize>, node: &Node) -> Found {
        Found { name: name.to_owned(), name_span, node: node.clone() }
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
        let keys: Vec<&Key> = section.keys().filter(|key| key.name == name).collect();
        if let Some(key) = keys.first() {
            let of = keys.iter().flat_map(|key| section.of(key)).collect();
            return ProblemKind::NotFor { key: key.name, chosen: chosen.to_owned(), of };
        }
        let lists = section.lists.iter().map(|list| list.name);
        let here = section.keys_of(chosen).map(|key| key.name).chain(lists);
        let elsewhere = self.sections.iter().find(|other| other.has(name) && !self.may_be_json);
        let hint = match elsewhere {
            Some(section) if !section.name.is_empty() => Hint::BelongsIn(section.name),
            _ => Hint::nearest(name, here),
        };
        let of = self.may_be_json.then_some(section.name);
        ProblemKind::UnknownKey { name: Name(name.to_owned()), of, hint }
    }
}

/// That a value is not as expected; `given` is it without quotes, if it has the right form.
pub(super) fn wrong_value(key: &Key, found: &str, given: Option<&Given>, is_toml: bool) -> ProblemKind {
    if let Some(reason) = given.and_then(|given| key.kind.complaint(given)) {
        return ProblemKind::Refused { key: key.name, reason: super::Words(reason) };
    }
    let choices = key.kind.choices();
    let hint = match given {
        Some(given) if !choices.is_empty() => {
            Hint::nearest(&given.text(), choices.iter().map(|(name, _)| *name))
        }
        _ => Hint::Nothing,
    };
    let expected = if is_toml { key.kind.in_file() } else { key.kind.expected() };
    ProblemKind::WrongValue { key: key.name, found: Name(found.to_owned()), expected, hint }
}
