//! Generates `docs/reference/command-line.md` from the definition of the command line.

use std::fmt::Write;

use clap::{Arg, Command};

use super::{command, examples};
use thalweg_config::REFERENCE_WIDTH;
use thalweg_config::paragraph::wrapped;

const INTRODUCTION: &str = "\
# Command line

<!-- Generated: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test it reference -->

`thalweg help COMMAND` prints the same text, `thalweg COMMAND -h` a summary, and `thalweg man COMMAND` a manual page.
A [configuration file](configuration.md) holds settings of `watch`. [Exit codes](exit-codes.md) are common to all commands.
";

/// Returns the page.
pub fn command_line() -> String {
    let mut root = command();
    root.build();
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n## Global options\n\n");
    for argument in root.get_arguments().filter(|argument| argument.is_global_set()) {
        list(&mut page, argument);
    }
    for command in root.get_subcommands().filter(is_described) {
        describe(&mut page, command, "##");
    }
    page
}

/// Describes a command and its subcommands; `level` is the prefix of its heading.
fn describe(page: &mut String, command: &Command, level: &str) {
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    // clap removes the full stop of a one-line description.
    let about = if about.contains('\n') { about } else { format!("{}.", about.trim_end_matches('.')) };
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let _ = write!(page, "\n{level} {}\n\n", command.get_bin_name().unwrap_or(command.get_name()));
    for paragraph in about.lines() {
        page.push_str(&wrapped(paragraph, "", "", REFERENCE_WIDTH));
    }
    let _ = write!(page, "\n    {usage}\n");
    let mut headings: Vec<Option<&str>> = Vec::new();
    for argument in shown(command) {
        if !headings.contains(&argument.get_help_heading()) {
            headings.push(argument.get_help_heading());
        }
    }
    for heading in headings {
        if let Some(heading) = heading {
            let _ = write!(page, "\n{level}# {heading}\n");
        }
        page.push('\n');
        for argument in shown(command).filter(|argument| argument.get_help_heading() == heading) {
            list(page, argument);
        }
    }
    for command in command.get_subcommands().filter(is_described) {
        describe(page, command, &format!("{level}#"));
    }
    let examples = examples::examples(Some(command.get_name()));
    if !examples.is_empty() {
        let _ = write!(page, "\n{level}# Examples\n\n```sh\n");
        for example in examples {
            let _ = writeln!(page, "# {}\n{}", example.about, example.command);
        }
        page.push_str("```\n");
    }
}

/// Whether to describe a command: all except `help`, which clap adds.
fn is_described(command: &&Command) -> bool {
    command.get_name() != "help"
}

fn shown(command: &Command) -> impl Iterator<Item = &Arg> {
    let is_own = |argument: &&Arg| argument.get_id() != "help" && !argument.is_global_set();
    command.get_arguments().filter(is_own)
}

fn list(page: &mut String, argument: &Arg) {
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let end = if help.ends_with(['.', ']']) { "" } else { "." };
    let defaults = argument.get_default_values().iter().filter(|_| argument.get_action().takes_values());
    let defaults: String = defaults.map(|value| format!(" [default: {}]", value.display())).collect();
    let item = format!("`{}`: {help}{end}{defaults}", typed(argument));
    page.push_str(&wrapped(&item, "- ", "  ", REFERENCE_WIDTH));
    for choice in argument.get_possible_values() {
        if let Some(help) = choice.get_help() {
            let _ = writeln!(page, "  - `{}`: {help}", choice.get_name());
        }
    }
}

/// Formats an argument: `-T, --flight-duration <TIME>`, `[SOURCE]...`.
fn typed(argument: &Arg) -> String {
    let long_form = argument.to_string();
    match argument.get_short() {
        Some(short) => format!("-{short}, {long_form}"),
        None => long_form,
    }
}
