//! The configuration file with every default, and the reference that explains it.

use std::fmt::Write;

use thalweg_config::paragraph::wrapped;
use thalweg_config::{Key, reference as reference_of};

use super::settings::SCHEMA;

/// Width of the printed file.
const WIDTH: usize = 100;

/// The configuration file that says what holds without one, each key with its meaning. It can be read back.
pub fn default_file() -> String {
    let mut file = comment(
        "Thalweg's configuration, with every key at its default. To use it: thalweg watch --config FILE. \
         Keys may be left out, flags override them, and thalweg config --check FILE finds mistakes.\n\n\
         Times are written \"200us\", \"100ms\", \"1.5s\", \"30min\"; rates \"800kbps\", \"50mbps\", \"1.5gbps\"; \
         amounts \"600B\", \"1.5GB\" (decimal), \"64MiB\" (binary).",
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

`thalweg watch --config FILE` reads a file in [TOML](https://toml.io). Every key is also a flag, which overrides it; a
key that is not set has its default. No file is read unless it is named.

`thalweg config` prints a file with every key at its default, to be edited. `thalweg config --check FILE` names every
unknown section, unknown key and wrong value with its line, and exits with [code 2](exit-codes.md) if there are any.

A key waits until it is needed: `tracks` may stand in a file whose detector is `cfinf`. A flag without effect is
refused.

| kind | written | |
|---|---|---|
| time | `\"200us\"`, `\"100ms\"`, `\"1.5s\"`, `\"30min\"`, `\"1h\"` | longer than zero |
| rate | `\"800kbps\"`, `\"50mbps\"`, `\"1.5gbps\"`, `9600` | decimal; without a unit bits per second |
| amount | `\"600B\"`, `\"1.5GB\"`, `\"64MiB\"`, `600` | `GB` is decimal, `GiB` binary; without a unit bytes |
| text, list | `\"tcp port 443\"`, `[\"icmp\", \"icmp6\"]` | |
| number, boolean | `10`, `0.5`, `true` | |
";

/// `docs/reference/configuration.md`.
pub fn reference() -> String {
    reference_of(&SCHEMA, INTRODUCTION)
}

/// Meaning, and the choices if it is one.
fn explained(key: &Key) -> String {
    let mut text = key.meaning();
    for (index, (name, meaning)) in key.kind.choices().into_iter().enumerate() {
        let _ = write!(text, "{}- {name}: {meaning}", if index == 0 { "\n\n" } else { "\n" });
    }
    text
}

/// `key = value`, as a comment if there is no default value.
fn assignment(key: &Key) -> String {
    match key.default_value() {
        Some(literal) => format!("{} = {}", key.name, literal.in_toml(key.form())),
        None => format!(
            "# By default {}. As an example:\n# {} = {}",
            key.default_description(),
            key.name,
            key.form().in_toml(key.extra.sample)
        ),
    }
}

/// Each line behind a `#`.
fn comment(text: &str) -> String {
    text.lines().map(|paragraph| wrapped(paragraph, "# ", "# ", WIDTH)).collect()
}
