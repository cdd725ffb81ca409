//! The command line: arguments, help, and dispatch to the commands.
//!
//! | file | contents |
//! |---|---|
//! | `watch`, `collect`, `serve`, `check`, `schema`, `top`, `emulate`, `endpoint`, `flows`, `flows_import`, `transfers`, `sketch`, `synth`, `lab`, `topology`, `settings_file` | one command each |
//! | `own_program` | `emulate` as a program of its own, with more schemes |
//! | `python` | runs commands that are in Python |
//! | `api` | options with which a command reaches a daemon |
//! | `generated` | `completions` and `man` |
//! | `file_kind` | detection of file kinds |
//! | `examples` | examples and exit codes in `--help`, man pages and the reference |
//! | `reference` | the reference page |
//! | `version` | the text of `--version` |
//! | `exit_code` | exit codes |

mod api;
mod check;
mod collect;
mod emulate;
#[cfg(target_os = "linux")]
mod endpoint;
mod examples;
pub mod exit_code;
mod file_kind;
mod flows;
mod flows_import;
mod generated;
#[cfg(target_os = "linux")]
mod lab;
pub mod own_program;
mod python;
mod real_time;
pub mod reference;
mod schema;
mod serve;
mod settings_file;
mod sketch;
mod synth;
mod top;
mod topology;
#[cfg(target_os = "linux")]
mod transfers;
mod version;
mod watch;

use std::ffi::OsString;
use std::io::{self, Write};

use anyhow::Context;
use clap::error::ErrorKind;
use clap::{Args, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};

use thalweg_config::Form;
use thalweg_daemon::log::{Log, LogLevel, LogOptions};

use crate::config::settings::keys;
use crate::console::{self, Verbosity};
use exit_code::{ExitCode, is_broken_pipe};

/// Finds the flows that fill a network's links, within milliseconds.
///
/// Thalweg measures flows on interfaces, monitor ports and in capture files, detects cheetah flows while they run, reroutes
/// flows from congested links, emulates networks, and collects and analyses flow records.
#[derive(Debug, Parser)]
#[command(name = "thalweg", version, long_version = version::long(), max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    global: GlobalArgs,
}

/// Options of all commands.
#[derive(Args, Debug)]
#[command(next_help_heading = "Global options")]
struct GlobalArgs {
    /// Colours of live views and help.
    #[arg(long, global = true, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    color: ColorChoice,

    /// Hide progress bars and notes. Errors and warnings remain.
    #[arg(short, long, global = true)]
    quiet: bool,

    /// Log details to standard error.
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    verbose: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Watch(Box<watch::WatchArgs>),
    Collect(Box<collect::CollectArgs>),
    Serve(serve::ServeArgs),
    Check(check::CheckArgs),
    Schema(schema::SchemaArgs),
    Topology(topology::TopologyArgs),
    Top(top::TopArgs),
    Emulate(Box<emulate::EmulateArgs>),
    #[cfg(target_os = "linux")]
    Endpoint(Box<endpoint::EndpointArgs>),
    Sketch(sketch::SketchArgs),
    Flows(flows::FlowsArgs),
    #[cfg(target_os = "linux")]
    Transfers(transfers::TransfersArgs),
    Synth(Box<synth::SynthArgs>),
    #[cfg(target_os = "linux")]
    Lab(lab::LabArgs),
    Config(settings_file::ConfigArgs),
    Completions(generated::CompletionsArgs),
    Man(generated::ManArgs),
}

/// Runs the program with these `arguments`, the first of which is the program name. Prints errors to standard error.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let parsed = command().color(color_of(&arguments)).try_get_matches_from(arguments);
    match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Err(error) => print_clap_error(&error),
        Ok(cli) => conclude(start(cli)),
    }
}

/// Prints the error of a command, and returns the exit code.
fn conclude(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        if !is_broken_pipe(&error) {
            format_error(&error).lines().for_each(console::error);
        }
        ExitCode::of(&error)
    })
}

/// Applies the global options and runs the command.
fn start(cli: Cli) -> anyhow::Result<ExitCode> {
    set_console(&cli.global);
    let verbose = cli.global.verbose;
    match cli.command {
        Command::Serve(args) => args.run(verbose).map(|()| ExitCode::Complete),
        command => {
            if verbose {
                Log::install(&LogOptions { level: LogLevel::Debug, ..LogOptions::default() })?;
            }
            dispatch(command)
        }
    }
}

/// Applies the options about colours and messages.
fn set_console(&GlobalArgs { color, quiet, verbose }: &GlobalArgs) {
    let verbosity = match () {
        () if quiet => Verbosity::Quiet,
        () if verbose => Verbosity::Verbose,
        () => Verbosity::Normal,
    };
    console::set(color, verbosity);
}

/// The value of `--color`, for messages about arguments that cannot be parsed.
fn color_of(arguments: &[OsString]) -> ColorChoice {
    let mut values =
        arguments.iter().enumerate().filter_map(|(place, argument)| match argument.to_str()? {
            "--color" => arguments.get(place + 1)?.to_str(),
            argument => argument.strip_prefix("--color="),
        });
    values.next_back().and_then(|value| value.parse().ok()).unwrap_or_default()
}

fn dispatch(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Watch(args) => args.run(),
        Command::Collect(args) => args.run(),
        Command::Serve(args) => args.run(false).map(|()| ExitCode::Complete),
        Command::Check(args) => args.run().map(|()| ExitCode::Complete),
        Command::Schema(args) => args.run().map(|()| ExitCode::Complete),
        Command::Topology(args) => args.run().map(|()| ExitCode::Complete),
        Command::Top(args) => args.run().map(|()| ExitCode::Complete),
        Command::Emulate(args) => args.run().map(|()| ExitCode::Complete),
        #[cfg(target_os = "linux")]
        Command::Endpoint(args) => args.run(),
        Command::Sketch(args) => args.run().map(|()| ExitCode::Complete),
        Command::Flows(args) => args.run(),
        #[cfg(target_os = "linux")]
        Command::Transfers(args) => args.run(),
        Command::Synth(args) => args.run().map(|()| ExitCode::Complete),
        #[cfg(target_os = "linux")]
        Command::Lab(args) => args.run().map(|()| ExitCode::Complete),
        Command::Config(args) => args.run().map(|()| ExitCode::Complete),
        Command::Completions(args) => args.run().map(|()| ExitCode::Complete),
        Command::Man(args) => args.run().map(|()| ExitCode::Complete),
    }
}

/// Builds the command line definition, with defaults, examples and exit codes in the help.
fn command() -> clap::Command {
    examples::add_to(Cli::command()).mut_subcommands(|command| match command.get_name() {
        "watch" => command.mut_args(with_default),
        _ => command,
    })
}

/// Adds the default of a setting to the help of its flag.
fn with_default(flag: clap::Arg) -> clap::Arg {
    match keys().find(|(_, key)| flag.get_id() == key.name) {
        // Boolean flags are off by default.
        Some((_, key)) if key.form() != Form::Boolean => {
            let default = format!("[default: {}]", key.default_description());
            let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
            let meaning = key.meaning();
            flag.help(format!("{help} {default}")).long_help(format!("{meaning}\n\n{default}"))
        }
        _ => flag,
    }
}

/// Prints help and version to standard output, usage errors to standard error.
fn print_clap_error(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // The reader may be gone.
            let _ = error.print();
            ExitCode::Complete
        }
        // The error text is the help.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::Usage
        }
        _ => {
            let text = error.render().to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            console::error(text.trim_end());
            ExitCode::Usage
        }
    }
}

/// Formats an error and its causes, without repetition.
fn format_error(error: &anyhow::Error) -> String {
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
