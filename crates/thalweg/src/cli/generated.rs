//! `thalweg completions` and `thalweg man`, generated from the command line definition and from those of `thalweg flows` and
//! `thalweg transfers`.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold};

use serde::Deserialize;

use super::{command, examples, flows_import};

/// Print a shell completion script.
///
/// For bash: thalweg completions bash > ~/.local/share/bash-completion/completions/thalweg
#[derive(Args, Debug)]
pub(super) struct CompletionsArgs {
    /// Shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Subcommands of `thalweg flows`, whose parser is in Python. `python/thalweg/cli/description.py` writes the file.
const FLOWS: &str = include_str!("flows.json");

/// Subcommands of `thalweg transfers` that are in Python, likewise.
const TRANSFERS: &str = include_str!("transfers.json");

/// A subcommand in Python.
#[derive(Deserialize)]
struct Analysis {
    name: &'static str,
    about: String,
    arguments: Vec<Argument>,
}

/// An argument of such a subcommand.
#[derive(Deserialize)]
struct Argument {
    name: &'static str,
    /// Empty for positional arguments.
    flags: Vec<&'static str>,
    value: Option<&'static str>,
    choices: Vec<&'static str>,
    required: bool,
    help: String,
}

/// Names of all pages: every command, and every subcommand as `command-subcommand`.
fn pages() -> Vec<String> {
    let visible = |command: &Command| -> Vec<String> {
        let names = command.get_subcommands().map(|command| command.get_name().to_owned());
        names.filter(|name| name != "help").collect()
    };
    let program = documented();
    let mut pages = Vec::new();
    for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
        let name = command.get_name();
        pages.push(name.to_owned());
        pages.extend(visible(command).into_iter().map(|inner| format!("{name}-{inner}")));
    }
    pages
}

/// Print a manual page.
///
/// Read it with: thalweg man watch | man -l -
#[derive(Args, Debug)]
pub(super) struct ManArgs {
    /// Command, or COMMAND-SUBCOMMAND such as sketch-show [default: the program].
    #[arg(value_name = "COMMAND", value_parser = known_page)]
    command: Option<String>,
}

impl CompletionsArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut documented(), "thalweg", &mut script);
        super::print(script)
    }
}

impl ManArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(super) fn run(self) -> anyhow::Result<()> {
        super::print(page(self.command.as_deref())?)
    }
}

/// Returns the command line definition, complete with the subcommands in Python.
fn documented() -> Command {
    let analyses = |text: &'static str| -> Vec<Analysis> {
        serde_json::from_str(text).expect("the file describes commands")
    };
    let program = command().mut_subcommand("flows", |flows| {
        let commands = analyses(FLOWS).into_iter().map(Analysis::command);
        let help = flows.get_long_about().map(ToString::to_string).unwrap_or_default();
        let complete = Command::new("flows").subcommand(flows_import::command()).subcommands(commands);
        complete.about(flows.get_about().cloned().unwrap_or_default()).long_about(help)
    });
    program.mut_subcommands(|transfers| match transfers.get_name() {
        "transfers" => analyses(TRANSFERS).into_iter().fold(transfers, |transfers, analysis| {
            transfers.mut_subcommand(analysis.name, |_| analysis.command())
        }),
        _ => transfers,
    })
}

/// Returns the help of a subcommand of `thalweg flows` or `thalweg transfers`, or of the command if there is none of this name.
pub(super) fn python_help(command: &str, subcommand: Option<&OsString>) -> String {
    let program = documented();
    let outer = program.find_subcommand(command).expect("the program has this command");
    let name = subcommand.and_then(|name| name.to_str()).unwrap_or_default();
    let (command, name) = match outer.find_subcommand(name) {
        Some(inner) => (inner, format!("thalweg {command} {name}")),
        None => (outer, format!("thalweg {command}")),
    };
    command.clone().bin_name(name).render_long_help().to_string()
}

impl Analysis {
    fn command(self) -> Command {
        let first = self.about.lines().next().unwrap_or_default().trim_end_matches('.').to_owned();
        let arguments = self.arguments.into_iter().map(Argument::arg);
        Command::new(self.name).about(first).long_about(self.about).args(arguments)
    }
}

impl Argument {
    fn arg(self) -> Arg {
        let mut arg = Arg::new(self.name).help(self.help);
        for flag in &self.flags {
            arg = match flag.strip_prefix("--") {
                Some(long) => arg.long(long),
                None => arg.short(flag.chars().nth(1)),
            };
        }
        arg = match self.value {
            Some(value) => arg.value_name(value).required(self.required),
            None => arg.action(ArgAction::SetTrue),
        };
        if self.choices.is_empty() { arg } else { arg.value_parser(self.choices) }
    }
}

/// Accepts the name of a page.
fn known_page(name: &str) -> Result<String, String> {
    let pages = pages();
    match pages.iter().any(|page| page == name) {
        true => Ok(name.to_owned()),
        false => Err(format!("expected one of {}", pages.join(", "))),
    }
}

/// Returns the command of a page.
fn find<'a>(root: &'a Command, page: &str) -> Option<&'a Command> {
    page.split('-').try_fold(root, |command, name| command.find_subcommand(name))
}

/// Renders a manual page in roff.
fn page(name: Option<&str>) -> anyhow::Result<Vec<u8>> {
    let mut root = documented();
    // Sets the full names of commands.
    root.build();
    let described = name.and_then(|name| find(&root, name)).unwrap_or(&root).clone();
    let usage = described.clone().render_usage().to_string();
    let title = described.get_display_name().unwrap_or("thalweg").to_uppercase();
    let has_subcommands = described.has_subcommands();
    let man = Man::new(described)
        .title(title)
        .source(concat!("thalweg ", env!("CARGO_PKG_VERSION")))
        .manual("Thalweg");
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    // Shorter than a list of all options.
    let synopsis = usage.trim_start_matches("Usage: ");
    Roff::new().control("SH", ["SYNOPSIS"]).text([bold(synopsis)]).to_writer(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    if has_subcommands {
        man.render_subcommands_section(&mut out)?;
    }
    examples::roff(name).to_writer(&mut out)?;
    Ok(out)
}
