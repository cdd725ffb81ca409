//! The default configuration file and its reference page.

use std::fmt::Write;

use thalweg_config::paragraph::wrapped;
use thalweg_config::{Key, reference as reference_of};

use super::settings::SCHEMA;

/// Width of the printed file.
const WIDTH: usize = 100;

/// Returns a valid configuration file with every key at its default and commented.
pub fn default_file() -> String {
    let mut file = comment(
        "Configuration of thalweg watch, with every key at its default. Use it with thalweg watch --config FILE. \
         Keys are optional, and flags override them. Check the file with thalweg check FILE.\n\n\
         Times: \"200us\", \"100ms\", \"1.5s\", \"30min\". Rates: \"800kbps\", \"50mbps\", \"1.5gbps\". \
         Sizes: \"600B\", \"1.5GB\" (decimal), \"64MiB\" (binary).",
    );
    for section in SCHEMA.sections {
        let _ = write!(file, "\n\n{}[{}]\n", comment(&section.about()), section.name);
        for key in section.keys() {
            let _ = write!(file, "\n{}{}\n", comment(&explained(key)), assignment(key));
        }
    }
    file
}

const INTRODUCTION: &str = "\
# Configuration file

<!-- Generated: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test it reference -->

`thalweg watch --config FILE` reads a [TOML](https://toml.io) file. Every key is also a flag, which overrides the file.
Keys that are not set have their defaults. No file is read by default.

`thalweg config watch` prints a file with every key at its default. `thalweg check FILE` reports every unknown section,
unknown key and invalid value with its line, and exits with [code 2](exit-codes.md) if there are any.

A key without effect is ignored, such as `tracks` with the detector `cfinf`. A flag without effect is an error.

| kind | examples | notes |
|---|---|---|
| time | `\"200us\"`, `\"100ms\"`, `\"1.5s\"`, `\"30min\"`, `\"1h\"` | above zero |
| rate | `\"800kbps\"`, `\"50mbps\"`, `\"1.5gbps\"`, `9600` | decimal; bits per second without a unit |
| size | `\"600B\"`, `\"1.5GB\"`, `\"64MiB\"`, `600` | `GB` is decimal, `GiB` binary; bytes without a unit |
| text, list | `\"tcp port 443\"`, `[\"icmp\", \"icmp6\"]` | |
| number, boolean | `10`, `0.5`, `true` | |
";

/// `docs/reference/configuration.md`.
pub fn reference() -> String {
    reference_of(&SCHEMA, INTRODUCTION)
}

/// Returns the meaning of a key, with its choices.
fn explained(key: &Key) -> String {
    let mut text = key.meaning();
    for (index, (name, meaning)) in key.kind.choices().into_iter().enumerate() {
        let _ = write!(text, "{}- {name}: {meaning}", if index == 0 { "\n\n" } else { "\n" });
    }
    text
}

/// Formats `key = value`, commented out if there is no default value.
fn assignment(key: &Key) -> String {
    match key.default_value() {
        Some(literal) => format!("{} = {}", key.name, literal.in_toml(key.form())),
        None => format!(
            "# Default: {}. Example:\n# {} = {}",
            key.default_description(),
            key.name,
            key.form().in_toml(key.extra.sample)
        ),
    }
}

/// Prefixes each line with `#`.
fn comment(text: &str) -> String {
    text.lines().map(|paragraph| wrapped(paragraph, "# ", "# ", WIDTH)).collect()
}
