//! Parses a file into a document.

use std::ops::Range;
use std::path::Path;

use super::error::{DocumentError, Place, Problem, ProblemKind, Problems};
use super::literal::Literal;
use super::section::{Default, Key, Schema, Section};
use super::text::{Hint, Name};
use super::tree::{Format, Kind, Node, Table};
use super::{Assignment, Document, Entry};

/// The number of problems in a file after which hints are no longer computed, because they take time.
const MAX_HINTED: usize = 1_000;

impl Document {
    /// Reads a file.
    ///
    /// # Errors
    /// If the file cannot be read, or as [`Document::parse`].
    pub fn load(schema: &'static Schema, path: &Path) -> Result<Document, DocumentError> {
        let file = path.display().to_string();
        match crate::read_text(path) {
            Ok(text) => {
                let folder = path.parent().unwrap_or(Path::new("")).to_owned();
                Ok(Document { folder, ..Document::parse(schema, &text, &file)? })
            }
            Err(source) => Err(DocumentError::Unreadable { file_kind: schema.file_kind, file, source }),
        }
    }

    /// Parses TOML; `file` is the name of the file for messages.
    ///
    /// # Errors
    /// Lists every unknown section, unknown key, and invalid or missing value; or the first syntax error.
    pub fn parse(schema: &'static Schema, text: &str, file: &str) -> Result<Document, DocumentError> {
        let (document, problems) = Document::read(schema, text, file, Format::Toml)?;
        if problems.is_empty() { Ok(document) } else { Err(document.error(problems)) }
    }

    /// Parses the valid parts of a text, and returns the problems of the rest. `file` is the name of the file for
    /// messages.
    ///
    /// # Errors
    /// Returns the first syntax error.
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
            pending: Vec::new(),
            rejected: Vec::new(),
            problems: Vec::new(),
        };
        match Table::parse(text, format) {
            Ok(table) => reader.read_document(&table),
            Err((span, kind)) => {
                reader.report(&span, kind);
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
    /// Keys by entry that depend on a selector that is not resolved yet.
    pending: Vec<(usize, ParsedKey)>,
    /// Keys by entry that are present but invalid, so not missing.
    rejected: Vec<(usize, &'static str)>,
    problems: Vec<Problem>,
}

/// The offsets of the line ends of a text.
struct Lines(Vec<usize>);

/// A key with its value as parsed.
struct ParsedKey {
    name: String,
    name_span: Range<usize>,
    node: Node,
}

impl Lines {
    fn of(text: &str) -> Lines {
        Lines(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect())
    }

    /// Returns the line where a span begins.
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
                    self.document.entries[index].is_present = true;
                    self.read_entry(index, table);
                }
                (Some(section), Kind::List(elements)) if section.repeats => {
                    self.read_list(section, elements, &span);
                }
                (Some(section), _) => {
                    if !section.repeats {
                        let index = self.position(section);
                        let entry = &mut self.document.entries[index];
                        (entry.is_present, entry.is_invalid) = (true, true);
                    }
                    self.report_wrong_section(section, &span, node);
                }
                (None, Kind::Table(_)) => self.report_unknown_section(&span, name),
                (None, Kind::List(_)) if schema.may_be_json => self.report_unknown_section(&span, name),
                (None, _) => match schema.top() {
                    Some(top) => {
                        let top = self.position(top);
                        self.pending.push((top, ParsedKey::new(name, span, node)));
                    }
                    None => {
                        let hint = schema
                            .sections_with(name)
                            .unwrap_or_else(|| self.hint(name, schema.section_names()));
                        let name = Name(name.to_owned());
                        self.report(&span, ProblemKind::UnknownKey { name, section: None, hint });
                    }
                },
            }
        }
    }

    fn report_unknown_section(&mut self, span: &Range<usize>, name: &str) {
        let hint = self.hint(name, self.document.schema.section_names());
        self.report(span, ProblemKind::UnknownSection { name: Name(name.to_owned()), hint });
    }

    /// Reads a section that repeats.
    fn read_list(&mut self, section: &'static Section, elements: &[Node], span: &Range<usize>) {
        if elements.len() > section.max_count {
            let (heading, count, max) = (section.heading(), elements.len(), section.max_count);
            self.report(span, ProblemKind::TooMany { heading, count, max });
        }
        for element in elements.iter().take(section.max_count) {
            match &element.kind {
                Kind::Table(table) => {
                    let place = self.lines.place(&element.span);
                    self.document.entries.push(Entry { is_present: true, ..Entry::new(section, place) });
                    self.read_entry(self.document.entries.len() - 1, table);
                }
                _ => self.report_wrong_section(section, &element.span, element),
            }
        }
    }

    fn position(&self, section: &'static Section) -> usize {
        let place = self.document.entries.iter().position(|entry| std::ptr::eq(entry.section, section));
        place.expect("each section that does not repeat is present")
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
                // [scheme.hull]: keys that apply if hull is selected.
                Kind::Table(inner) if choices.iter().any(|(choice, _)| *choice == key.text) => {
                    for (name, node) in &inner.0 {
                        self.add_key(index, &key.text, ParsedKey::new(&name.text, name.span.clone(), node));
                    }
                }
                _ => {
                    let found = ParsedKey::new(&key.text, key.span.clone(), node);
                    match section.selector {
                        Some(selector) if selector.key.name == found.name => {
                            self.add_value(index, &selector.key, &found);
                        }
                        Some(_) => self.pending.push((index, found)),
                        None => self.add_key(index, "", found),
                    }
                }
            }
        }
    }

    /// Reads a list of tables in a section.
    fn read_tables(&mut self, index: usize, section: &'static Section, node: &Node) {
        let is_table = |element: &Node| matches!(element.kind, Kind::Table(_));
        let Kind::List(elements) = &node.kind else { return self.report_wrong_tables(section, node) };
        if !elements.iter().all(is_table) {
            return self.report_wrong_tables(section, node);
        }
        for element in elements {
            let Kind::Table(table) = &element.kind else { continue };
            // Read the table as an entry of its own, then move it into the list.
            let place = self.lines.place(&element.span);
            self.document.entries.push(Entry { is_present: true, ..Entry::new(section, place) });
            let at = self.document.entries.len() - 1;
            self.read_entry(at, table);
            self.report_missing_keys(at);
            let entry = self.document.entries.pop().expect("an entry was pushed above");
            self.rejected.retain(|(of, _)| *of != at);
            self.document.entries[index].lists.push(entry);
        }
    }

    fn report_wrong_tables(&mut self, section: &'static Section, node: &Node) {
        let mut keys: Vec<&str> = section.keys().map(|key| key.name).collect();
        let last = keys.pop().unwrap_or_default();
        let expected = format!("a list of {}, each with {} and {last}", section.name, keys.join(", "));
        self.report_wrong_value(section.name, expected, &node.span);
    }

    /// Adds a key to an entry in which `chosen` is selected.
    fn add_key(&mut self, index: usize, chosen: &str, found: ParsedKey) {
        let section = self.document.entries[index].section;
        match section.key(&found.name, chosen) {
            Some(key) => self.add_value(index, key, &found),
            None => {
                let kind = self.document.schema.unknown_key(section, chosen, &found.name);
                // Do not report the key that was probably meant as missing too.
                if let ProblemKind::UnknownKey { hint: Hint::Nearest(meant), section: None, .. } = &kind
                    && let Some(key) = section.keys().find(|key| key.name == &**meant)
                {
                    self.rejected.push((index, key.name));
                }
                self.report(&found.name_span, kind);
            }
        }
    }

    fn add_value(&mut self, index: usize, key: &'static Key, found: &ParsedKey) {
        let literal = found.node.literal(key.form());
        match literal {
            Some((literal, spans)) if (key.accepts)(&literal) => {
                let assignment = Assignment {
                    key,
                    literal,
                    place: self.lines.place(&found.name_span),
                    value_place: self.lines.place(&found.node.span),
                    elements: spans.iter().map(|span| self.lines.place(span)).collect(),
                };
                self.document.entries[index].values.push(assignment);
            }
            literal => {
                let text = self.text.get(found.node.span.clone()).unwrap_or_default();
                let section = self.document.entries[index].section;
                let literal = literal.as_ref().map(|(literal, _)| literal);
                let kind = wrong_value(section, key, text, literal, true);
                self.rejected.push((index, key.name));
                self.document.entries[index].is_invalid = true;
                self.report(&found.node.span, kind);
            }
        }
    }

    /// Resolves the selectors, adds the pending keys and reports missing ones.
    fn finish(mut self) -> (Document, Vec<Problem>) {
        self.document.resolve_selectors();
        for (index, found) in std::mem::take(&mut self.pending) {
            // Without a valid selector the meaning of the key is unknown.
            if self.is_selector_known(index) {
                let chosen = self.chosen_for(index, &found.name);
                self.add_key(index, &chosen, found);
            }
        }
        for index in 0..self.document.entries.len() {
            self.report_missing_keys(index);
            let is_selector_known = self.is_selector_known(index);
            self.document.entries[index].is_invalid |= !is_selector_known;
        }
        let sections = self.document.schema.sections;
        let order = |entry: &Entry| sections.iter().position(|section| std::ptr::eq(*section, entry.section));
        self.document.entries.sort_by_key(order);
        (self.document, self.problems)
    }

    /// Returns the choice that a key belongs to: the selected one. If the selector is not set and its default depends
    /// on other keys, returns the first choice that has such a key.
    fn chosen_for(&self, index: usize, name: &str) -> String {
        let entry = &self.document.entries[index];
        let (section, chosen) = (entry.section, &entry.chosen);
        let is_open = section.selector.is_some_and(|selector| {
            matches!(selector.key.default, Default::Description(_))
                && entry.assignment(&selector.key).is_none()
        });
        if !is_open || section.key(name, chosen).is_some() {
            return chosen.clone();
        }
        let other = section.keys().find(|key| key.name == name);
        let other = other.and_then(|key| section.choices_with(key).first().copied());
        other.map_or_else(|| chosen.clone(), str::to_owned)
    }

    /// Whether the choice of an entry is known and valid.
    fn is_selector_known(&self, index: usize) -> bool {
        let entry = &self.document.entries[index];
        let Some(selector) = entry.section.selector_name() else { return true };
        !entry.chosen.is_empty() && !self.rejected.contains(&(index, selector))
    }

    /// Returns the name of a section for messages; `None` for the keys above all sections. In files that may be JSON,
    /// where the line may not tell, it has the number of the element in its list, from 1.
    fn section_name(&self, index: usize) -> Option<String> {
        let Document { schema, entries, .. } = &self.document;
        let section = entries[index].section;
        match section.name {
            "" => None,
            _ if !schema.may_be_json => Some(section.heading()),
            name if section.repeats => {
                let elements = entries[..=index].iter().flat_map(|entry| entry.lists.iter().chain([entry]));
                let number = elements.filter(|entry| std::ptr::eq(entry.section, section)).count();
                Some(format!("{name} {number}"))
            }
            name => Some(name.to_owned()),
        }
    }

    fn report_missing_keys(&mut self, index: usize) {
        let entry = &self.document.entries[index];
        let section = self.section_name(index);
        let mut missing = Vec::new();
        let mut is_invalid = false;
        for key in entry.section.keys().filter(|key| key.default == Default::Required) {
            let choices = entry.section.choices_with(key);
            let applies =
                choices.is_empty() || self.is_selector_known(index) && choices.contains(&&*entry.chosen);
            if !applies || entry.assignment(key).is_some() {
                continue;
            }
            is_invalid = true;
            if !self.rejected.contains(&(index, key.name)) {
                let expected = key.kind.expected_in_file();
                let kind = ProblemKind::MissingKey { section: section.clone(), key: key.name, expected };
                missing.push(Problem { place: entry.place.clone(), kind });
            }
        }
        self.document.entries[index].is_invalid |= is_invalid;
        self.problems.append(&mut missing);
    }

    /// Reports a section that is written as a value. The message shows the correct syntax in the format of the file.
    fn report_wrong_section(&mut self, section: &'static Section, span: &Range<usize>, node: &Node) {
        match (self.format, section.repeats) {
            (Format::Json, true) => {
                self.report_wrong_value(section.name, "a list of objects, [{ ... }]".to_owned(), &node.span);
            }
            (Format::Json, false) => {
                self.report_wrong_value(section.name, "an object, { ... }".to_owned(), &node.span);
            }
            (Format::Toml, true) if self.document.schema.may_be_json => {
                self.report(span, ProblemKind::NotAList { section: section.name });
            }
            (Format::Toml, _) => {
                let kind = ProblemKind::NotASection { section: section.name, heading: section.heading() };
                self.report(span, kind);
            }
        }
    }

    fn report_wrong_value(&mut self, key: &'static str, expected: String, span: &Range<usize>) {
        let found = Name(self.text.get(span.clone()).unwrap_or_default().to_owned());
        self.report(span, ProblemKind::WrongValue { key, found, expected, hint: Hint::None });
    }

    fn report(&mut self, span: &Range<usize>, kind: ProblemKind) {
        let place = self.lines.place(span);
        self.problems.push(Problem { place, kind });
    }

    fn hint(&self, name: &str, known: impl Iterator<Item = &'static str>) -> Hint {
        if self.problems.len() >= MAX_HINTED { Hint::None } else { Hint::nearest(name, known) }
    }
}

impl ParsedKey {
    fn new(name: &str, name_span: Range<usize>, node: &Node) -> ParsedKey {
        ParsedKey { name: name.to_owned(), name_span, node: node.clone() }
    }
}

impl Schema {
    /// Returns the section of the top-level keys.
    pub(super) fn top(&self) -> Option<&'static Section> {
        self.sections.iter().copied().find(|section| section.name.is_empty())
    }

    /// Returns the names of all named sections.
    pub(super) fn section_names(&self) -> impl Iterator<Item = &'static str> {
        self.sections.iter().map(|section| section.name).filter(|name| !name.is_empty())
    }

    /// Returns a hint to the named sections with a key `name`; `None` if there are none.
    fn sections_with(&self, name: &str) -> Option<Hint> {
        let holders = self.sections.iter().filter(|section| section.has(name) && !section.name.is_empty());
        let headings: Box<[String]> = holders.map(|section| section.heading()).collect();
        (!headings.is_empty()).then_some(Hint::BelongsIn(headings))
    }

    /// Returns the problem that a section has no key `name` when `chosen` is selected.
    pub(super) fn unknown_key(&self, section: &'static Section, chosen: &str, name: &str) -> ProblemKind {
        let keys: Vec<&Key> = section.keys().filter(|key| key.name == name).collect();
        if let Some(key) = keys.first() {
            let choices = keys.iter().flat_map(|key| section.choices_with(key)).collect();
            let what = section.selector.map_or("", |selector| section.noun(&selector.key));
            return ProblemKind::NotFor { key: key.name, what, chosen: chosen.to_owned(), choices };
        }
        let lists = section.lists.iter().map(|list| list.name);
        let here = section.keys_for(chosen).map(|key| key.name).chain(lists);
        let elsewhere = if self.may_be_json { None } else { self.sections_with(name) };
        let hint = elsewhere.unwrap_or_else(|| Hint::nearest(name, here));
        let section = self.may_be_json.then_some(section.name);
        ProblemKind::UnknownKey { name: Name(name.to_owned()), section, hint }
    }
}

/// Returns the problem that a value is invalid. `literal` is the value without quotes, if it has the right form.
pub(super) fn wrong_value(
    section: &Section,
    key: &Key,
    found: &str,
    literal: Option<&Literal>,
    is_toml: bool,
) -> ProblemKind {
    if let Some(reason) = literal.and_then(|literal| key.kind.rejection(literal)) {
        return ProblemKind::Refused { key: key.name, reason: super::SafeText(reason) };
    }
    let choices = key.kind.choices();
    let Some(name) = literal.filter(|_| !choices.is_empty()).map(|literal| literal.text()) else {
        let expected = if is_toml { key.kind.expected_in_file() } else { key.kind.expected() };
        return ProblemKind::WrongValue {
            key: key.name,
            found: Name(found.to_owned()),
            expected,
            hint: Hint::None,
        };
    };
    let (expected, hint) = (key.kind.expected(), Hint::nearest(&name, choices.iter().map(|(name, _)| *name)));
    if section.selector_name() == Some(key.name) {
        let found = Name(name.into_owned());
        return ProblemKind::UnknownChoice { what: section.noun(key), found, expected, hint };
    }
    ProblemKind::WrongValue { key: key.name, found: Name(found.to_owned()), expected, hint }
}
