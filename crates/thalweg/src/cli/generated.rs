//! `thalweg completions` and `thalweg man`, generated from the command line definition.

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold};

use super::{command, examples};

/// Print a shell completion script.
///
/// For bash: thalweg completions bash > ~/.local/share/bash-completion/completions/thalweg
#[derive(Args, Debug)]
pub(super) struct CompletionsArgs {
    /// Shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Names of all pages: every command, and every subcommand as `command-subcommand`.
fn pages() -> Vec<String> {
    let visible = |command: &Command| -> Vec<String> {
        let names = command.get_subcommands().map(|command| command.get_name().to_owned());
        names.filter(|name| name != "help").collect()
    };
    let program = command();
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
        clap_complete::generate(self.shell, &mut command(), "thalweg", &mut script);
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
    let mut root = command();
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
