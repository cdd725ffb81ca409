//! A configuration file to settings.

use std::ops::Range;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, Hint, Name, Problem, ProblemKind, Words};
use super::key::{KEYS, Key, SECTIONS};
use super::settings::Settings;
use super::value::{Complaint, Form};

/// Longest name for which a near one is searched: searching takes time in proportion.
const LONGEST_GUESSED: usize = 64;

/// Least similarity of a name to one that is suggested for it, 0 to 1 (Jaro and Winkler's).
const LEAST_SIMILARITY: f64 = 0.75;

/// What a configuration file sets. The default is that of no file: nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    pub(super) file: String,
    pub(super) settings: Settings,
    /// Which keys it sets, and on which lines.
    lines: Vec<(&'static str, usize)>,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or as [`Config::parse`].
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Config::parse(&text, &file),
            Err(source) => Err(ConfigError::Unreadable { file, source }),
        }
    }

    /// Reads the text of a file; `file` is its name for messages.
    ///
    /// # Errors
    /// With every unknown section, unknown key and wrong value; or with the first error of syntax.
    pub fn parse(text: &str, file: &str) -> Result<Config, ConfigError> {
        let mut reader = Reader { text, config: Config::default(), problems: Vec::new() };
        match DeTable::parse(text) {
            Ok(document) => reader.read_document(document.get_ref()),
            Err(error) => {
                let message = error.message().replace('\n', "; ");
                reader.complain(&error.span().unwrap_or_default(), ProblemKind::Syntax { message });
            }
        }
        let Reader { mut config, mut problems, .. } = reader;
        if problems.is_empty() {
            file.clone_into(&mut config.file);
            return Ok(config);
        }
        problems.sort_by_key(|problem| problem.line);
        Err(ConfigError::Wrong { file: file.to_owned(), problems })
    }

    /// Number of keys that it sets.
    pub fn key_count(&self) -> usize {
        self.lines.len()
    }

    /// The line that sets a key.
    pub(super) fn line_of(&self, key: &str) -> Option<usize> {
        self.lines.iter().find(|(name, _)| *name == key).map(|&(_, line)| line)
    }
}

struct Reader<'a> {
    text: &'a str,
    config: Config,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn read_document(&mut self, document: &DeTable<'_>) {
        for (name, value) in document {
            let section = SECTIONS.iter().find(|section| section.name == name.get_ref());
            match (section, value.get_ref()) {
                (Some(section), DeValue::Table(table)) => self.read_section(section.name, table),
                (Some(section), _) => {
                    self.complain(&name.span(), ProblemKind::NotASection { section: section.name });
                }
                (None, DeValue::Table(_)) => {
                    let hint = nearest(name.get_ref(), SECTIONS.iter().map(|section| section.name));
                    let name_of = Name(name.get_ref().to_string());
                    self.complain(&name.span(), ProblemKind::UnknownSection { name: name_of, hint });
                }
                (None, _) => self.complain_of_key(name.get_ref(), None, &name.span()),
            }
        }
    }

    fn read_section(&mut self, section: &'static str, table: &DeTable<'_>) {
        for (name, value) in table {
            let key = KEYS.iter().find(|key| key.section.name == section && key.name == name.get_ref());
            match key {
                None => self.complain_of_key(name.get_ref(), Some(section), &name.span()),
                Some(key) => self.read_value(key, value.get_ref(), &value.span()),
            }
        }
    }

    fn read_value(&mut self, key: &'static Key, value: &DeValue<'_>, span: &Range<usize>) {
        let text = text_of(value, key.form());
        if text.as_deref().is_some_and(|text| key.set(&mut self.config.settings, text)) {
            self.config.lines.push((key.name, self.line(span)));
            return;
        }
        if let Some(Complaint::Own(reason)) = text.map(|text| key.complaint(&text)) {
            return self.complain(span, ProblemKind::Refused { key: key.name, reason: Words(reason) });
        }
        let found = self.text.get(span.clone()).unwrap_or_default();
        let (found, expected) = (Name(found.to_owned()), expected(key));
        self.complain(span, ProblemKind::WrongValue { key: key.name, found, expected });
    }

    fn complain_of_key(&mut self, name: &str, section: Option<&str>, span: &Range<usize>) {
        let elsewhere = KEYS.iter().find(|key| key.name == name);
        let here = KEYS.iter().filter(|key| section.is_none_or(|section| key.section.name == section));
        let hint = match elsewhere {
            Some(key) => Hint::BelongsIn(key.section.name),
            None => nearest(name, here.map(|key| key.name)),
        };
        self.complain(span, ProblemKind::UnknownKey { name: Name(name.to_owned()), hint });
    }

    fn complain(&mut self, span: &Range<usize>, kind: ProblemKind) {
        self.problems.push(Problem { line: self.line(span), kind });
    }

    /// The line where a span begins.
    fn line(&self, span: &Range<usize>) -> usize {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        1 + before.iter().filter(|&&byte| byte == b'\n').count()
    }
}

/// A value as [`super::value::Value::read`] takes it; `None` if it is of another form.
fn text_of(value: &DeValue<'_>, form: Form) -> Option<String> {
    match (value, form) {
        (DeValue::String(text), Form::Text | Form::Quantity) => Some(text.to_string()),
        (DeValue::Integer(number), Form::Integer | Form::Number | Form::Quantity) => {
            i128::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string())
        }
        (DeValue::Float(number), Form::Number) => Some(number.as_str().to_owned()),
        (DeValue::Boolean(value), Form::Boolean) => Some(value.to_string()),
        (DeValue::Array(elements), Form::List) => {
            let texts = elements.iter().map(|element| text_of(element.get_ref(), Form::Text));
            let texts = texts.collect::<Option<Vec<String>>>()?;
            let is_plain = texts.iter().all(|text| !text.is_empty() && !text.contains(','));
            is_plain.then(|| texts.join(","))
        }
        _ => None,
    }
}

/// What a file should say, quotes and brackets included.
fn expected(key: &Key) -> String {
    match key.form() {
        Form::Text => format!("{}, in quotes", key.expected()),
        Form::Quantity => format!("{}, in quotes if it has a unit", key.expected()),
        Form::List => format!("a list of {}, each in quotes", key.expected()),
        Form::Integer | Form::Number | Form::Boolean => key.expected(),
    }
}

fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Hint {
    if name.len() > LONGEST_GUESSED {
        return Hint::Nothing;
    }
    let name = name.to_lowercase().replace('-', "_");
    known
        .map(|known| (known, similarity(&name, known)))
        .filter(|&(_, similarity)| similarity >= LEAST_SIMILARITY)
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map_or(Hint::Nothing, |(known, _)| Hint::Nearest(known))
}

/// 0 to 1. Jaro and Winkler's knows little of names of three letters; two of them that change places are one slip.
fn similarity(name: &str, known: &str) -> f64 {
    let swapped = name.len() > 2 && name.len() == known.len() && strsim::osa_distance(name, known) == 1;
    strsim::jaro_winkler(name, known).max(if swapped { LEAST_SIMILARITY } else { 0.0 })
}
