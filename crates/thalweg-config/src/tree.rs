//! A file as a tree of values with their places in the text. TOML and JSON give the same tree.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::error::ProblemKind;
use super::literal::{Form, Literal};
use super::text::SafeText;

/// The maximum nesting depth; deeper values are read as [`Kind::Other`]. No section has more than 3 levels.
const MAX_DEPTH: usize = 8;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// TOML 1.0.
    Toml,
    /// RFC 8259.
    Json,
}

impl Format {
    /// Returns the format of a file by its name: JSON if it ends in `.json`, else TOML.
    pub fn of(path: impl AsRef<Path>) -> Format {
        let ending = path.as_ref().extension();
        match ending.is_some_and(|ending| ending.eq_ignore_ascii_case("json")) {
            true => Format::Json,
            false => Format::Toml,
        }
    }
}

/// A value and its place in the text.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) kind: Kind,
}

/// A parsed value.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Text(String),
    /// In decimal.
    Integer(String),
    Float(String),
    Boolean(bool),
    List(Vec<Node>),
    Table(Table),
    /// Values that no key accepts: dates, null, values nested too deep.
    Other,
}

/// Unique keys with their values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table(pub(crate) Vec<(KeyName, Node)>);

/// A key and its place in the text.
#[derive(Clone, Debug)]
pub(crate) struct KeyName {
    pub(crate) text: String,
    pub(crate) span: Range<usize>,
}

/// The place and the cause of a syntax error.
pub(crate) type SyntaxError = (Range<usize>, ProblemKind);

impl Table {
    /// Parses a text.
    pub(crate) fn parse(text: &str, format: Format) -> Result<Table, SyntaxError> {
        match format {
            Format::Toml => parse_toml(text),
            Format::Json => parse_json(text),
        }
    }
}

impl Node {
    /// Returns the value in `form`, and the places of the elements of a list; `None` if it has another form.
    pub(crate) fn literal(&self, form: Form) -> Option<(Literal, Vec<Range<usize>>)> {
        let one = |text: String| Some((Literal::Single(text), Vec::new()));
        match (&self.kind, form) {
            (Kind::Text(text), Form::Text | Form::Quantity | Form::Shares) => one(text.clone()),
            (Kind::Integer(number), Form::Integer | Form::Number | Form::Quantity | Form::Shares) => {
                one(number.clone())
            }
            (Kind::Float(number), Form::Number | Form::Shares) => one(number.clone()),
            (Kind::Boolean(value), Form::Boolean) => one(value.to_string()),
            (Kind::Text(text), Form::Texts) => Some((Literal::from_text(form, text), Vec::new())),
            (Kind::List(elements), Form::List | Form::Texts | Form::Shares) => {
                let element = |element: &Node| match &element.kind {
                    Kind::Text(text) => Some((text.clone(), element.span.clone())),
                    Kind::Integer(number) | Kind::Float(number) if form == Form::Shares => {
                        Some((number.clone(), element.span.clone()))
                    }
                    _ => None,
                };
                let elements = elements.iter().map(element).collect::<Option<Vec<_>>>()?;
                let (texts, spans) = elements.into_iter().unzip();
                Some((Literal::List(texts), spans))
            }
            _ => None,
        }
    }
}

fn parse_toml(text: &str) -> Result<Table, SyntaxError> {
    match DeTable::parse(text) {
        Ok(document) => Ok(toml_table(document.get_ref())),
        Err(error) => {
            let span = error.span().unwrap_or_default();
            let message = SafeText(toml_message(error.message(), text.get(span.clone()).unwrap_or_default()));
            Err((span, ProblemKind::Syntax { message }))
        }
    }
}

/// Returns what is wrong with a text, and how to mend it.
fn toml_message(message: &str, found: &str) -> String {
    match message.starts_with("duplicate key") {
        true => format!("duplicate key {found:?}: a key or a section may appear once"),
        false => format!("{} (strings need quotes)", message.replace('\n', "; ")),
    }
}

fn toml_table(table: &DeTable<'_>) -> Table {
    let pair = |(key, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
        (KeyName { text: key.get_ref().to_string(), span: key.span() }, toml_value(value))
    };
    Table(table.iter().map(pair).collect())
}

fn toml_value(value: &Spanned<DeValue<'_>>) -> Node {
    let kind = match value.get_ref() {
        DeValue::String(text) => Kind::Text(text.to_string()),
        DeValue::Integer(integer) => i128::from_str_radix(integer.as_str(), integer.radix())
            .map_or(Kind::Other, |number| Kind::Integer(number.to_string())),
        DeValue::Float(number) => Kind::Float(number.as_str().to_owned()),
        DeValue::Boolean(boolean) => Kind::Boolean(*boolean),
        DeValue::Array(elements) => Kind::List(elements.iter().map(toml_value).collect()),
        DeValue::Table(table) => Kind::Table(toml_table(table)),
        DeValue::Datetime(_) => Kind::Other,
    };
    Node { span: value.span(), kind }
}

fn parse_json(text: &str) -> Result<Table, SyntaxError> {
    let whole = serde_json::from_str(text).map_err(|error| json_error(text, &error))?;
    match json_value(text, whole, 0)? {
        Node { kind: Kind::Table(table), .. } => Ok(table),
        Node { span, .. } => Err((
            span,
            ProblemKind::JsonSyntax { message: SafeText("expected an object, { ... }".to_owned()) },
        )),
    }
}

/// Parses a value that is a slice of `text`. The values inside a list or an object stay slices of the text until they
/// are parsed, which gives their places. Each is scanned once per level.
fn json_value(text: &str, raw: &RawValue, depth: usize) -> Result<Node, SyntaxError> {
    let start = raw.get().as_ptr() as usize - text.as_ptr() as usize;
    let span = start..start + raw.get().len();
    // The text is valid JSON as a whole, except for the escapes in its strings.
    let wrong = |error: serde_json::Error| {
        (span.clone(), ProblemKind::JsonSyntax { message: SafeText(without_place(&error)) })
    };
    let kind = match raw.get().as_bytes()[0] {
        b'"' => Kind::Text(serde_json::from_str(raw.get()).map_err(wrong)?),
        b't' => Kind::Boolean(true),
        b'f' => Kind::Boolean(false),
        b'[' | b'{' if depth == MAX_DEPTH => Kind::Other,
        b'[' => {
            let elements: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(wrong)?;
            let elements = elements.into_iter().map(|element| json_value(text, element, depth + 1));
            Kind::List(elements.collect::<Result<_, _>>()?)
        }
        b'{' => {
            let Pairs(pairs) = serde_json::from_str(raw.get()).map_err(wrong)?;
            Kind::Table(json_table(text, start, pairs, depth)?)
        }
        b'n' => Kind::Other,
        _ => number(raw.get()),
    };
    Ok(Node { span, kind })
}

fn json_table(
    text: &str,
    mut after: usize,
    pairs: Vec<(String, &RawValue)>,
    depth: usize,
) -> Result<Table, SyntaxError> {
    let mut seen = BTreeSet::new();
    let mut table = Table::default();
    for (key, raw) in pairs {
        let value = json_value(text, raw, depth + 1)?;
        // The key is the only quoted text between two values.
        let before = &text[after..value.span.start];
        let quote = after + before.find('"').unwrap_or_default();
        let span = quote..after + before.rfind('"').map_or(before.len(), |end| end + 1);
        after = value.span.end;
        if !seen.insert(key.clone()) {
            let message = SafeText(format!("duplicate key {key:?}"));
            return Err((span, ProblemKind::JsonSyntax { message }));
        }
        table.0.push((KeyName { text: key, span }, value));
    }
    Ok(table)
}

/// The keys and values of a JSON object in file order.
struct Pairs<'t>(Vec<(String, &'t RawValue)>);

impl<'t> Deserialize<'t> for Pairs<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'t> Visitor<'t> for InOrder {
            type Value = Pairs<'t>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Pairs<'t>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

fn json_error(text: &str, error: &serde_json::Error) -> SyntaxError {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let at = lines.map(str::len).sum::<usize>();
    (at..at, ProblemKind::JsonSyntax { message: SafeText(without_place(error)) })
}

/// Parses a JSON number; an integer beyond 128 bits becomes a float.
fn number(text: &str) -> Kind {
    match text.parse::<i128>() {
        Ok(number) => Kind::Integer(number.to_string()),
        Err(_) => Kind::Float(text.to_owned()),
    }
}

/// Returns the message without the line and column at its end: the problem has a line of its own.
fn without_place(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rfind(" at line ") {
        Some(end) => message[..end].to_owned(),
        None => message,
    }
}

/// Returns the names of the top-level sections and keys, which identify the kind of a file. If the text has a syntax
/// error, returns the names in brackets that begin a line.
pub fn top_level_names(text: &str, format: Format) -> Vec<String> {
    if let Ok(Table(pairs)) = Table::parse(text, format) {
        return pairs.into_iter().map(|(name, _)| name.text).collect();
    }
    let heading = |line: &str| {
        let name = line.trim().strip_prefix('[')?.trim_start_matches('[');
        let end = name.find(['.', ']'])?;
        Some(name[..end].trim().to_owned())
    };
    text.lines().filter_map(heading).collect()
}
