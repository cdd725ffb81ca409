//! A document with all its defaults, and the reference of its kind.

use std::fmt::Write;

use super::paragraph::wrapped;
use super::section::{Default, Key, Schema, Section};
use super::{Document, Entry};

/// Width of reference pages.
pub const REFERENCE_WIDTH: usize = 120;

impl Document {
    /// The document as it was understood, every key that matters with its value. It can be read back.
    pub fn print(&self) -> String {
        let mut text = String::new();
        for entry in &self.entries {
            if !entry.section.name.is_empty() {
                let _ = write!(text, "\n{}\n", entry.section.heading());
            }
            for key in entry.section.keys_of(entry.chosen()) {
                text.push_str(&line(entry, key));
            }
            text.push_str(&waiting(entry));
        }
        text
    }
}

/// `key = value`; what holds without it, in words, is a comment.
fn line(entry: &Entry, key: &'static Key) -> String {
    let is_selector = entry.section.selector_name() == Some(key.name);
    match (entry.given(key), key.default) {
        (Some(given), _) => format!("{} = {}\n", key.name, given.in_toml(key.form())),
        (None, _) if is_selector => format!("{} = {}\n", key.name, key.form().in_toml(entry.chosen())),
        (None, Default::Words(words)) => format!("# {}: {words}\n", key.name),
        (None, _) => String::new(),
    }
}

/// Values for what is not selected, in sections of their own.
fn waiting(entry: &Entry) -> String {
    let mut text = String::new();
    let section = entry.section;
    for (choice, _) in section.choices() {
        let waits = |key: &&Key| !section.matters(key, entry.chosen()) && section.matters(key, choice);
        let line = |key: &'static Key| {
            let given = &entry.written(key)?.given;
            Some(format!("{} = {}\n", key.name, given.in_toml(key.form())))
        };
        let lines: String = section.keys().filter(waits).filter_map(line).collect();
        // A table of an array element is written below it, as the section of its last element.
        if !lines.is_empty() {
            let _ = write!(text, "\n[{}.{choice}]\n{lines}", section.name);
        }
    }
    text
}

/// A page that describes every section and key, below an introduction.
pub fn reference(schema: &Schema, introduction: &str) -> String {
    let mut page = introduction.to_owned();
    for section in schema.sections {
        let heading = match section.name {
            "" => "Above all sections".to_owned(),
            _ => format!("`{}`", section.heading()),
        };
        let _ = write!(page, "\n## {heading}\n\n{}", prose(&section.about()));
        for key in section.keys() {
            let _ = write!(page, "\n{}", key_reference(section, key));
        }
        for list in section.lists {
            let _ = write!(page, "\n### `{}`\n\n{}", list.name, prose(&list.about()));
            for key in list.keys() {
                let _ = write!(page, "\n#{}", key_reference(list, key));
            }
        }
    }
    page
}

/// What a page says of a key: its heading, what it means, what it may say, what holds without it, its flag.
pub fn key_reference(section: &Section, key: &Key) -> String {
    let of = match &section.of(key)[..] {
        [] => String::new(),
        of => format!(" ({})", of.join(", ")),
    };
    let mut text = format!("### `{}`{of}\n\n{}", key.name, prose(&key.meaning()));
    let choices = key.kind.choices();
    if !choices.is_empty() {
        text.push('\n');
    }
    for (name, summary) in &choices {
        text.push_str(&wrapped(&format!("- `{name}`: {summary}."), "", "  ", REFERENCE_WIDTH));
    }
    let default = match key.default {
        Default::Needed => "It must be set".to_owned(),
        Default::Value(value) => format!("Default: `{}`", key.form().in_toml(value)),
        Default::Words(words) => format!("Default: {words}"),
    };
    let expected =
        if choices.is_empty() { format!("Expects {}. ", key.kind.expected()) } else { String::new() };
    let flag = key.flag_name().map(|flag| format!(" Flag: `{flag}`.")).unwrap_or_default();
    let _ = write!(text, "\n{}", prose(&format!("{expected}{default}.{flag}")));
    text
}

impl Key {
    /// The flag that sets the same, or the opposite; none if there is none.
    pub fn flag_name(&self) -> Option<String> {
        let flag = self.extra.flag?;
        let hyphened = || self.name.replace('_', "-");
        Some(format!("--{}", flag.opposite.map_or_else(hyphened, |(name, _)| name.to_owned())))
    }
}

/// A paragraph a line to Markdown.
fn prose(text: &str) -> String {
    text.lines().map(|paragraph| wrapped(paragraph, "", "", REFERENCE_WIDTH)).collect()
}
