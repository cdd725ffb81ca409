//! `thalweg completions` and `thalweg man`: what is made from the definition of the command line.

use clap::builder::PossibleValuesParser;
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold};

use super::{command, lesson};

/// Print the completions of a shell.
///
/// For bash, once: thalweg completions bash > ~/.local/share/bash-completion/completions/thalweg
#[derive(Args, Debug)]
pub(super) struct CompletionsArgs {
    /// Which shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Commands that have a page; of a command's own commands those of its page and theirs joined by `-`.
const PAGES: [&str; 13] = [
    "watch",
    "collect",
    "serve",
    "check",
    "schema",
    "sketch",
    "sketch-show",
    "sketch-merge",
    "sketch-diff",
    "synth",
    "config",
    "completions",
    "man",
];

/// Print a manual page.
///
/// To read one: thalweg man watch | man -l -
#[derive(Args, Debug)]
pub(super) struct ManArgs {
    /// A command's page, instead of that of the whole program.
    #[arg(value_parser = PossibleValuesParser::new(PAGES))]
    command: Option<String>,
}

impl CompletionsArgs {
    /// Does it.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(super) fn run(self) -> anyhow::Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command(), "thalweg", &mut script);
        super::print(script)
    }
}

impl ManArgs {
    /// Does it.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(super) fn run(self) -> anyhow::Result<()> {
        super::print(page(self.command.as_deref())?)
    }
}

/// The command of a page.
fn find<'a>(root: &'a Command, page: &str) -> Option<&'a Command> {
    page.split('-').try_fold(root, |command, name| command.find_subcommand(name))
}

/// A manual page in roff.
fn page(name: Option<&str>) -> anyhow::Result<Vec<u8>> {
    let mut root = command();
    // Gives commands their full names.
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
    // Shorter than every option in a row.
    let synopsis = usage.trim_start_matches("Usage: ");
    Roff::new().control("SH", ["SYNOPSIS"]).text([bold(synopsis)]).to_writer(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    if has_subcommands {
        man.render_subcommands_section(&mut out)?;
    }
    lesson::roff(name).to_writer(&mut out)?;
    Ok(out)
}
