//! The command line: what can be typed, what it teaches, and where it leads.
//!
//! | file | what it has |
//! |---|---|
//! | `watch`, `collect`, `serve`, `check`, `schema`, `top`, `emulate`, `flows`, `sketch`, `synth`, `lab`, `settings_file` | a command's arguments, and what they are turned into |
//! | `generated` | `completions` and `man`, made from the same arguments |
//! | `file_kind` | the kinds of files that are read, and which of them a file is |
//! | `lesson` | the examples and exit codes at the end of `--help`, of the man pages and of the reference |
//! | `reference` | the reference page |
//! | `version` | what `--version` prints |
//! | `exit_code` | how the program ends |

mod check;
mod collect;
mod emulate;
pub mod exit_code;
mod file_kind;
mod flows;
mod generated;
#[cfg(target_os = "linux")]
mod lab;
mod lesson;
pub mod reference;
mod schema;
mod serve;
mod settings_file;
mod sketch;
mod synth;
mod top;
mod version;
mod watch;

use std::ffi::OsString;
use std::io::{self, Write};

use anyhow::Context;
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use thalweg_config::Form;

use crate::config::settings::keys;
use exit_code::{ExitCode, is_broken_pipe};

/// Finds where the traffic of a network runs strongest, within milliseconds.
///
/// Thalweg reads packets from capture files or interfaces, meters every flow exactly, and names cheetah flows
/// while they run: flows that move more than R*T bytes within a time of length T.
#[derive(Debug, Parser)]
#[command(name = "thalweg", version, long_version = version::long(), max_term_width = 100, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Watch(Box<watch::WatchArgs>),
    Collect(Box<collect::CollectArgs>),
    Serve(serve::ServeArgs),
    Check(check::CheckArgs),
    Schema(schema::SchemaArgs),
    Top(top::TopArgs),
    Emulate(Box<emulate::EmulateArgs>),
    Sketch(sketch::SketchArgs),
    Flows(flows::FlowsArgs),
    Synth(Box<synth::SynthArgs>),
    #[cfg(target_os = "linux")]
    Lab(lab::LabArgs),
    Config(settings_file::ConfigArgs),
    Completions(generated::CompletionsArgs),
    Man(generated::ManArgs),
}

/// Runs the program: parses `arguments`, the first of which is its own name, does what they say, and tells on
/// standard error what went wrong.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let parsed = command().try_get_matches_from(arguments);
    match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Err(error) => answer(&error),
        Ok(cli) => dispatch(cli.command).unwrap_or_else(|error| {
            if !is_broken_pipe(&error) {
                told(&error).lines().for_each(complain);
            }
            ExitCode::of(&error)
        }),
    }
}

fn dispatch(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Watch(args) => args.run(),
        Command::Collect(args) => args.run(),
        Command::Serve(args) => args.run().map(|()| ExitCode::Complete),
        Command::Check(args) => args.run().map(|()| ExitCode::Complete),
        Command::Schema(args) => args.run().map(|()| ExitCode::Complete),
        Command::Top(args) => args.run().map(|()| ExitCode::Complete),
        Command::Emulate(args) => args.run().map(|()| ExitCode::Complete),
        Command::Sketch(args) => args.run().map(|()| ExitCode::Complete),
        Command::Flows(args) => args.run(),
        Command::Synth(args) => args.run().map(|()| ExitCode::Complete),
        #[cfg(target_os = "linux")]
        Command::Lab(args) => args.run().map(|()| ExitCode::Complete),
        Command::Config(args) => args.run().map(|()| ExitCode::Complete),
        Command::Completions(args) => args.run().map(|()| ExitCode::Complete),
        Command::Man(args) => args.run().map(|()| ExitCode::Complete),
    }
}

/// Everything that can be typed, with defaults, examples and exit codes in the help.
fn command() -> clap::Command {
    lesson::add_to(Cli::command()).mut_subcommands(|command| match command.get_name() {
        "watch" => command.mut_args(with_default),
        _ => command,
    })
}

/// Adds the default of what can also be set by the configuration file.
fn with_default(flag: clap::Arg) -> clap::Arg {
    match keys().find(|(_, key)| flag.get_id() == key.name) {
        // Flags that stand alone are off by default, and everybody knows.
        Some((_, key)) if key.form() != Form::Boolean => {
            let default = format!("[default: {}]", key.default_in_words());
            let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
            let meaning = key.meaning();
            flag.help(format!("{help} {default}")).long_help(format!("{meaning}\n\n{default}"))
        }
        _ => flag,
    }
}

/// Help and version go to standard output, and are no failure; the rest is wrong usage.
fn answer(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Nobody is left to tell.
            let _ = error.print();
            ExitCode::Complete
        }
        // Its text is that of help, without a complaint.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::Usage
        }
        _ => {
            let text = error.render().to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            complain(text.trim_end());
            ExitCode::Usage
        }
    }
}

fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "thalweg: {text}");
}

/// An error and its causes, the ones left out that the text before has taken in.
fn told(error: &anyhow::Error) -> String {
    error.chain().skip(1).fold(error.to_string(), |mut text, cause| {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        text
    })
}

/// Writes to standard output.
fn print(text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_ref()).and_then(|()| out.flush()).context("cannot write to standard output")
}

#[cfg(test)]
mod tests;
