//! Reading the sections of a file, and noting what is wrong with them.

use std::ops::Range;

use super::document::{Format, Kind, Table, Value};
use super::error::{Excerpt, Hint, Problem, ProblemKind, TopologyFileError};

/// Most problems that are reported of one file.
const MAX_PROBLEMS: usize = 32;

/// Most names that are compared with one that is not known: a bound on the time that a wrong file takes.
const MAX_COMPARED: usize = 4_096;

/// Longest name for which a near one is looked for.
const MAX_GUESSED: usize = crate::topology::MAX_NAME;

/// Least similarity of a name to one that is suggested for it, 0 to 1 (Jaro and Winkler's).
const LEAST_SIMILARITY: f64 = 0.75;

/// A part of a file: its name, and its keys.
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) keys: &'static [&'static str],
}

/// A table of the file.
pub(crate) struct Entry<'t> {
    pub(crate) section: &'static Section,
    pub(crate) table: &'t Table,
    pub(crate) span: Range<usize>,
}

impl<'t> Entry<'t> {
    pub(crate) fn get(&self, key: &str) -> Option<&'t Value> {
        self.table.entry(key).map(|(_, value)| value)
    }
}

/// A text, and what was found wrong with it so far.
pub(crate) struct Reader<'a> {
    text: &'a str,
    format: Format,
    problems: Vec<Problem>,
    omitted: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str, format: Format) -> Self {
        Reader { text, format, problems: Vec::new(), omitted: 0 }
    }

    /// The text as a tree, if it is of its format and has no other sections than these.
    pub(crate) fn parse(&mut self, sections: &[&Section]) -> Option<Table> {
        match Table::parse(self.text, self.format) {
            Ok(document) => {
                self.check_sections(&document, sections);
                Some(document)
            }
            Err((span, kind)) => {
                self.complain(&span, kind);
                None
            }
        }
    }

    /// What was read, if all was well, and else all that was not; `file` is the text's name for messages.
    pub(crate) fn finish<T>(mut self, read: Option<T>, file: &str) -> Result<T, TopologyFileError> {
        match read {
            Some(read) if self.is_content() => Ok(read),
            _ => {
                self.problems.sort_by_key(|problem| problem.line);
                Err(TopologyFileError {
                    file: file.to_owned(),
                    problems: self.problems,
                    omitted: self.omitted,
                })
            }
        }
    }

    /// Whether nothing was found wrong yet.
    pub(crate) fn is_content(&self) -> bool {
        self.problems.is_empty()
    }

    /// Whether further problems are only counted: then nobody will see a hint, and looking for one takes time.
    pub(crate) fn is_full(&self) -> bool {
        self.problems.len() == MAX_PROBLEMS
    }

    /// The section of which there is one, if it is there.
    pub(crate) fn single<'t>(&mut self, document: &'t Table, section: &'static Section) -> Option<Entry<'t>> {
        let (name, value) = document.entry(section.name)?;
        let Kind::Table(table) = &value.kind else {
            self.complain_of_section(
                &name.span,
                section,
                value,
                ProblemKind::NotASection { section: section.name },
            );
            return None;
        };
        let entry = Entry { section, table, span: name.span.clone() };
        self.check_keys(&entry);
        Some(entry)
    }

    /// The sections of which there may be several.
    pub(crate) fn list<'t>(&mut self, document: &'t Table, section: &'static Section) -> Vec<Entry<'t>> {
        let Some((name, value)) = document.entry(section.name) else { return Vec::new() };
        let not_a_list = || ProblemKind::NotAList { section: section.name };
        let Kind::List(elements) = &value.kind else {
            self.complain_of_section(&name.span, section, value, not_a_list());
            return Vec::new();
        };
        let mut entries = Vec::with_capacity(elements.len());
        for element in elements {
            match &element.kind {
                Kind::Table(table) => entries.push(Entry { section, table, span: element.span.clone() }),
                _ => self.complain_of_section(&element.span, section, element, not_a_list()),
            }
        }
        entries.iter().for_each(|entry| self.check_keys(entry));
        entries
    }

    /// A text that may be left out, read, and where it is.
    pub(crate) fn optional<T: std::str::FromStr>(
        &mut self,
        entry: &Entry<'_>,
        key: &'static str,
        expected: &'static str,
    ) -> Option<(T, Range<usize>)> {
        let value = entry.get(key)?;
        if let Kind::Text(text) = &value.kind
            && let Ok(parsed) = text.parse()
        {
            return Some((parsed, value.span.clone()));
        }
        self.complain_of_value(key, expected, &value.span);
        None
    }

    /// A text that may not be left out, read, and where it is.
    pub(crate) fn needed<T: std::str::FromStr>(
        &mut self,
        entry: &Entry<'_>,
        key: &'static str,
        expected: &'static str,
    ) -> Option<(T, Range<usize>)> {
        if entry.get(key).is_none() {
            self.complain_missing(entry, key);
        }
        self.optional(entry, key, expected)
    }

    /// A number that may be left out, and where it is.
    pub(crate) fn integer(
        &mut self,
        entry: &Entry<'_>,
        key: &'static str,
        expected: &'static str,
    ) -> Option<(u64, Range<usize>)> {
        let value = entry.get(key)?;
        if let Kind::Integer(integer) = value.kind {
            return Some((integer, value.span.clone()));
        }
        self.complain_of_value(key, expected, &value.span);
        None
    }

    pub(crate) fn complain_of_value(
        &mut self,
        key: &'static str,
        expected: &'static str,
        span: &Range<usize>,
    ) {
        let found = Excerpt(self.text.get(span.clone()).unwrap_or_default().to_owned());
        self.complain(span, ProblemKind::WrongValue { key, found, expected });
    }

    pub(crate) fn complain_missing(&mut self, entry: &Entry<'_>, key: &'static str) {
        self.complain(&entry.span, ProblemKind::MissingKey { section: entry.section.name, key });
    }

    pub(crate) fn complain(&mut self, span: &Range<usize>, kind: ProblemKind) {
        if self.is_full() {
            self.omitted += 1;
            return;
        }
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        self.problems.push(Problem { line, kind });
    }

    fn check_sections(&mut self, document: &Table, sections: &[&Section]) {
        for (name, _) in &document.0 {
            if !sections.iter().any(|section| section.name == name.text) {
                let hint = nearest(&name.text, sections.iter().map(|section| section.name));
                let name_of = Excerpt(name.text.clone());
                self.complain(&name.span, ProblemKind::UnknownSection { name: name_of, hint });
            }
        }
    }

    pub(crate) fn check_keys(&mut self, entry: &Entry<'_>) {
        let known = |name: &str| entry.section.keys.contains(&name);
        for (name, _) in entry.table.0.iter().filter(|(name, _)| !known(&name.text)) {
            let hint = nearest(&name.text, entry.section.keys.iter().copied());
            let key = Excerpt(name.text.clone());
            self.complain(&name.span, ProblemKind::UnknownKey { section: entry.section.name, key, hint });
        }
    }

    /// What is to be written instead is said in the format's own terms.
    fn complain_of_section(
        &mut self,
        span: &Range<usize>,
        section: &'static Section,
        value: &Value,
        in_toml: ProblemKind,
    ) {
        match (self.format, &in_toml) {
            (Format::Toml, _) => self.complain(span, in_toml),
            (Format::Json, ProblemKind::NotAList { .. }) => {
                self.complain_of_value(section.name, "a list of objects, [{ ... }]", &value.span);
            }
            (Format::Json, _) => self.complain_of_value(section.name, "an object, { ... }", &value.span),
        }
    }
}

/// The known name that is most like this one.
pub(crate) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Hint {
    if name.len() > MAX_GUESSED {
        return Hint::Nothing;
    }
    let name = name.to_lowercase();
    known
        .take(MAX_COMPARED)
        .map(|known| (known, strsim::jaro_winkler(&name, known)))
        .filter(|&(_, similarity)| similarity >= LEAST_SIMILARITY)
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map_or(Hint::Nothing, |(known, _)| Hint::Nearest(known.to_owned()))
}
