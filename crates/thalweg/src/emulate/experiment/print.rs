//! An experiment with all its defaults, and the reference of experiment files.

use std::fmt::Write;

use super::key::{Default, Key, Section};
use super::table::SECTIONS;
use super::{Entry, Experiment};
use crate::config::paragraph::wrapped;
use crate::config::print::REFERENCE_WIDTH;

impl Experiment {
    /// The experiment as it was understood, every key that matters with its value. It can be read back.
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

const INTRODUCTION: &str = "\
# Experiment file

<!-- Generated: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test reference -->

`thalweg emulate EXPERIMENT.toml` reads what to emulate from a file in [TOML](https://toml.io). The file is checked as a
whole before the first slot: every unknown section, unknown key, wrong and missing value is named with its line, and the
program ends with [code 2](exit-codes.md). `thalweg emulate --print EXPERIMENT.toml` prints the experiment as it was
understood, with all defaults; `thalweg emulate --list` shows what there is to choose from.

A key can be set from outside, for one run or many: `--sweep scheme=droptail,dctcp --sweep workload.load=0.1..0.8`.
`SECTION.KEY` is a key of a section, `SECTION` alone its selector, and `KEY` alone will do if only one section has it.

Some keys belong to one thing among those that can be selected, as `threshold` to the schemes `dctcp` and `hull`. A
section of its own, `[scheme.hull]`, has keys that wait until that is selected.

| kind | written | |
|---|---|---|
| time | `\"200us\"`, `\"100ms\"`, `\"1.5s\"`, `\"30min\"` | |
| rate | `\"40mbps\"`, `\"10gbps\"` | decimal; without a unit bits per second |
| amount | `\"1500B\"`, `\"1.5GB\"`, `\"64KiB\"`, `600` | `GB` is decimal, `GiB` binary; without a unit bytes |
| text, list | `\"web_search\"`, `[\"h0\", \"h1\"]` | a list of one may be written as text |
| number, boolean | `10`, `0.5`, `true` | |

The shortest experiment:

```toml
duration = \"100ms\"

[topology]
shape = \"rack\"

[[workload]]
pattern = \"incast\"
sizes = \"1MB\"
```
";

/// `docs/reference/experiment-file.md`.
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    for section in SECTIONS {
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
