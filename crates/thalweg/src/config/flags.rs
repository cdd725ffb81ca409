//! Command-line flags derived from the sections of the configuration file.

use std::sync::LazyLock;

use clap::builder::{PossibleValue, PossibleValuesParser, ValueParser};
use clap::error::Error;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use thalweg_config::{Document, Form, Key, Literal};

use super::settings::keys;

/// The flags of a command line: keys with their values, as in a file without quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags(Vec<(&'static str, String)>);

impl Flags {
    /// Sets a key, replacing its previous value.
    pub fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.0.retain(|(other, _)| *other != name);
        self.0.push((name, value.into()));
    }

    /// Returns the value of a key.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_str())
    }

    /// Returns the number of keys set.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no key is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the document with the values of the flags.
    pub(super) fn over(&self, document: &Document) -> Document {
        let mut document = document.clone();
        for (section, key) in keys() {
            if let (Some(value), Some(flag)) = (self.get(key.name), key.flag_name()) {
                document.set_by_flag(section, key, value, &flag);
            }
        }
        document
    }
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        keys().fold(command, |command, (section, key)| command.arg(argument(section.name, key)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Flags::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Flags, Error> {
        let mut flags = Flags::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for (_, key) in keys() {
            if let Some(value) = matches.get_one::<String>(key.name) {
                self.set(key.name, value.clone());
            }
        }
        Ok(())
    }
}

/// Creates the flag of a key.
fn argument(section: &str, key: &'static Key) -> Arg {
    let Some(flag) = key.extra.flag else { return Arg::new(key.name) };
    let help = flag.opposite.map_or_else(|| key.meaning(), |(_, help)| help.to_owned());
    let argument = Arg::new(key.name)
        .long(long(key))
        .short(flag.short)
        .value_name(flag.value_name)
        .help_heading(heading(section))
        .action(ArgAction::Set)
        .value_parser(parser(key));
    let argument = match help.split_once("\n\n") {
        Some((first, _)) => argument.help(short(first)).long_help(help.clone()),
        None => argument.help(short(&help)),
    };
    match key.form() {
        Form::Boolean => argument.num_args(0..=1).require_equals(true).default_missing_value("true"),
        _ => argument,
    }
}

/// Returns the name of the flag of a key, with the static lifetime that clap requires.
fn long(key: &'static Key) -> &'static str {
    static NAMES: LazyLock<Vec<(&str, String)>> =
        LazyLock::new(|| keys().filter_map(|(_, key)| Some((key.name, key.flag_name()?))).collect());
    let flag = NAMES.iter().find(|(name, _)| *name == key.name);
    flag.map_or(key.name, |(_, flag)| flag.trim_start_matches("--"))
}

/// Removes the full stop of a single sentence, as clap does.
fn short(sentence: &str) -> String {
    sentence.strip_suffix('.').unwrap_or(sentence).to_owned()
}

fn heading(section: &str) -> &'static str {
    match section {
        "output" => "Output",
        "input" => "Input",
        "tasks" => "Measurement tasks",
        "export" => "Export",
        "detection" => "Detection",
        "flow_table" => "Flow table",
        _ => "Live capture",
    }
}

/// Returns a parser that accepts the same values as the file.
fn parser(key: &'static Key) -> ValueParser {
    let choices = key.kind.choices();
    if !choices.is_empty() {
        let values = choices.into_iter().map(|(name, summary)| PossibleValue::new(name).help(summary));
        return PossibleValuesParser::new(values).into();
    }
    let is_opposite = key.extra.flag.is_some_and(|flag| flag.opposite.is_some());
    ValueParser::from(move |text: &str| -> Result<String, String> {
        let literal = Literal::from_text(key.form(), text);
        if !(key.accepts)(&literal) {
            let rejection = key.kind.rejection(&literal);
            return Err(rejection.unwrap_or_else(|| format!("expected {}", key.kind.expected())));
        }
        Ok(match text {
            "true" if is_opposite => "false".to_owned(),
            "false" if is_opposite => "true".to_owned(),
            _ => text.to_owned(),
        })
    })
}
