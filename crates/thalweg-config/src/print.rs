//! Prints documents with their defaults, and the reference page of a schema.

use std::fmt::Write;

use super::paragraph::wrapped;
use super::section::{Default, Key, Schema, Section};
use super::{Document, Entry};

/// Line width of reference pages.
pub const REFERENCE_WIDTH: usize = 120;

/// Line width of comments in example files.
const EXAMPLE_WIDTH: usize = 100;

impl Document {
    /// Prints every key that applies with its value, defaults included. The text parses to the same document.
    pub fn print(&self) -> String {
        let mut text = String::new();
        for entry in &self.entries {
            if !entry.section.name.is_empty() {
                let _ = write!(text, "\n{}\n", entry.section.heading());
            }
            for key in entry.section.keys_for(entry.chosen()) {
                text.push_str(&line(entry, key));
            }
            text.push_str(&unselected(entry));
        }
        text
    }
}

/// Prints `key = value`, or the description of the default as a comment.
fn line(entry: &Entry, key: &'static Key) -> String {
    let is_selector = entry.section.selector_name() == Some(key.name);
    match (entry.literal(key), key.default) {
        (Some(literal), _) => format!("{} = {}\n", key.name, literal.in_toml(key.form())),
        (None, _) if is_selector => format!("{} = {}\n", key.name, key.form().in_toml(entry.chosen())),
        (None, Default::Description(text)) => format!("# {}: {text}\n", key.name),
        (None, _) => String::new(),
    }
}

/// Prints the values for choices that are not selected, in sections `[SECTION.CHOICE]`.
fn unselected(entry: &Entry) -> String {
    let mut text = String::new();
    let section = entry.section;
    for (choice, _) in section.choices() {
        let is_unselected =
            |key: &&Key| !section.applies(key, entry.chosen()) && section.applies(key, choice);
        let line = |key: &'static Key| {
            let literal = &entry.assignment(key)?.literal;
            Some(format!("{} = {}\n", key.name, literal.in_toml(key.form())))
        };
        let lines: String = section.keys().filter(is_unselected).filter_map(line).collect();
        // In TOML, `[list.choice]` belongs to the last `[[list]]` above it.
        if !lines.is_empty() {
            let _ = write!(text, "\n[{}.{choice}]\n{lines}", section.name);
        }
    }
    text
}

/// Returns a Markdown page that describes every section and key, below an introduction.
pub fn reference(schema: &Schema, introduction: &str) -> String {
    let mut page = introduction.to_owned();
    for section in schema.sections {
        let heading = match section.name {
            "" => "Top-level keys".to_owned(),
            _ => format!("`{}`", section.heading()),
        };
        let _ = write!(page, "\n## {heading}\n\n{}", wrap_paragraphs(&section.about()));
        for key in section.keys() {
            let _ = write!(page, "\n{}", key_reference(section, key));
        }
        for list in section.lists {
            let _ = write!(page, "\n### `{}`\n\n{}", list.name, wrap_paragraphs(&list.about()));
            for key in list.keys() {
                let _ = write!(page, "\n#{}", key_reference(list, key));
            }
        }
    }
    page
}

/// A key of an example file that is set: section, key, and its line.
pub type Sample = (&'static str, &'static str, &'static str);

/// Returns an example file, with explanations: every key with its default as a comment, except for these `samples`. Sections that repeat
/// are comments if they have no sample.
pub fn example(schema: &Schema, introduction: &str, samples: &[Sample]) -> String {
    let mut text = introduction.to_owned();
    for section in schema.sections {
        let _ = write!(text, "\n{}", wrapped(&section.about(), "# ", "# ", EXAMPLE_WIDTH));
        let is_off = section.repeats && !samples.iter().any(|(of, ..)| *of == section.name);
        let _ = writeln!(text, "{}{}", if is_off { "# " } else { "" }, section.heading());
        for key in section.keys() {
            let form = key.form();
            let sample = samples.iter().find(|(of, name, _)| (*of, *name) == (section.name, key.name));
            let line = match (sample, key.default) {
                (Some((.., line)), _) => format!("{line}\n"),
                (None, Default::Value(value)) => format!("# {} = {}\n", key.name, form.in_toml(value)),
                (None, Default::Description(words)) => {
                    format!("# {} = ...    # default: {words}\n", key.name)
                }
                (None, Default::Required) if is_off => format!("# {} = ...\n", key.name),
                (None, Default::Required) => format!("{} = ...\n", key.name),
            };
            let _ = write!(text, "\n{}{line}", wrapped(&key.meaning(), "# ", "# ", EXAMPLE_WIDTH));
        }
    }
    text
}

/// Describes a key in Markdown: heading, meaning, accepted values, default, flag.
pub fn key_reference(section: &Section, key: &Key) -> String {
    let scope = match &section.choices_with(key)[..] {
        [] => String::new(),
        choices => format!(" ({})", choices.join(", ")),
    };
    let mut text = format!("### `{}`{scope}\n\n{}", key.name, wrap_paragraphs(&key.meaning()));
    let choices = key.kind.choices();
    if !choices.is_empty() {
        text.push('\n');
    }
    for (name, summary) in &choices {
        text.push_str(&wrapped(&format!("- `{name}`: {summary}."), "", "  ", REFERENCE_WIDTH));
    }
    let default = match key.default {
        Default::Required => "Required".to_owned(),
        Default::Value(value) => format!("Default: `{}`", key.form().in_toml(value)),
        Default::Description(text) => format!("Default: {text}"),
    };
    let expected =
        if choices.is_empty() { format!("Expects {}. ", key.kind.expected()) } else { String::new() };
    let flag = key.flag_name().map(|flag| format!(" Flag: `{flag}`.")).unwrap_or_default();
    let _ = write!(text, "\n{}", wrap_paragraphs(&format!("{expected}{default}.{flag}")));
    text
}

impl Key {
    /// Returns the flag that sets this key or its opposite.
    pub fn flag_name(&self) -> Option<String> {
        let flag = self.extra.flag?;
        let hyphened = || self.name.replace('_', "-");
        Some(format!("--{}", flag.opposite.map_or_else(hyphened, |(name, _)| name.to_owned())))
    }
}

/// Wraps text that has one paragraph per line.
fn wrap_paragraphs(text: &str) -> String {
    text.lines().map(|paragraph| wrapped(paragraph, "", "", REFERENCE_WIDTH)).collect()
}
