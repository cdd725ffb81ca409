//! A document with all its defaults, and the reference of its kind.

use std::fmt::Write;

use super::key::{Default, Key, Schema, Section};
use super::paragraph::wrapped;
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
            for key in entry.section.keys.iter().filter(|key| key.matters_to(entry.chosen())) {
                text.push_str(&line(entry, key));
            }
            text.push_str(&waiting(entry));
        }
        text
    }
}

/// `key = value`; what holds without it, in words, is a comment.
fn line(entry: &Entry, key: &'static Key) -> String {
    let is_selector = entry.section.selector == Some(key.name);
    match (entry.text(key.name), key.default) {
        (Some(text), _) => assignment(key, text),
        (None, _) if is_selector => assignment(key, entry.chosen()),
        (None, Default::Words(words)) => format!("# {}: {words}\n", key.name),
        (None, _) => String::new(),
    }
}

/// Values for what is not selected, in sections of their own.
fn waiting(entry: &Entry) -> String {
    let mut text = String::new();
    let selector = entry.section.selector();
    for (choice, _) in selector.map(|selector| selector.kind.choices()).unwrap_or_default() {
        let waits = |key: &&Key| !key.matters_to(entry.chosen()) && key.matters_to(choice);
        let lines: String = (entry.section.keys.iter().filter(waits))
            .filter_map(|key| Some(assignment(key, &entry.written(key)?.text)))
            .collect();
        // A table of an array element is written below it, as the section of its last element.
        if !lines.is_empty() {
            let _ = write!(text, "\n[{}.{choice}]\n{lines}", entry.section.name);
        }
    }
    text
}

fn assignment(key: &Key, text: &str) -> String {
    format!("{} = {}\n", key.name, key.kind.form().in_toml(text))
}

/// A page that describes every section and key, below an introduction.
pub fn reference(schema: &Schema, introduction: &str) -> String {
    let mut page = introduction.to_owned();
    for section in schema.sections {
        let heading = match section.name {
            "" => "Above all sections".to_owned(),
            _ => format!("`{}`", section.heading()),
        };
        let _ = write!(page, "\n## {heading}\n\n{}", prose(section.about));
        for key in section.keys {
            let _ = write!(page, "\n{}", described(section, key));
        }
    }
    page
}

fn described(section: &Section, key: &Key) -> String {
    let of = match key.of {
        [] => String::new(),
        of => format!(" ({})", of.join(", ")),
    };
    let mut text = format!("### `{}`{of}\n\n{}", key.name, prose(key.meaning));
    let choices = key.kind.choices();
    if !choices.is_empty() {
        text.push('\n');
    }
    for (name, summary) in &choices {
        text.push_str(&wrapped(&format!("- `{name}`: {summary}."), "", "  ", REFERENCE_WIDTH));
    }
    let default = match key.default {
        Default::Needed if section.repeats => "It must be set".to_owned(),
        Default::Needed => "It must be set".to_owned(),
        Default::Value(value) => format!("Default: `{}`", key.kind.form().in_toml(value)),
        Default::Words(words) => format!("Default: {words}"),
    };
    let expected =
        if choices.is_empty() { format!("Expects {}. ", key.kind.expected()) } else { String::new() };
    let _ = write!(text, "\n{}", prose(&format!("{expected}{default}.")));
    text
}

/// A paragraph a line to Markdown.
fn prose(text: &str) -> String {
    text.lines().map(|paragraph| wrapped(paragraph, "", "", REFERENCE_WIDTH)).collect()
}
