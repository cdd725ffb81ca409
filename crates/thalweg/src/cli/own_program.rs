//! `thalweg emulate` as a program of its own, with schemes that Thalweg does not have.

use std::process::ExitCode as ProcessExitCode;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use thalweg_config::json_schema;
use thalweg_experiment::experiment::own_scheme::{self, AddedScheme};
use thalweg_experiment::experiment::{SCHEMA, reference};

use super::emulate::EmulateArgs;
use super::{GlobalArgs, color_of, conclude, print, print_clap_error, set_console};
use crate::console;

/// The arguments of the program.
#[derive(Debug)]
struct OwnProgram {
    emulate: EmulateArgs,
    about_files: AboutFiles,
    global: GlobalArgs,
}

/// What says how experiment files are written.
#[derive(Args, Debug)]
struct AboutFiles {
    /// Print the reference of experiment files, with the keys of this program's schemes, and exit.
    #[arg(long, help_heading = "Output", exclusive = true)]
    reference: bool,

    /// Print the JSON Schema of experiment files, and exit.
    #[arg(long, help_heading = "Output", exclusive = true)]
    schema: bool,
}

/// Runs `thalweg emulate` with these schemes beside its own, as the program `name`, with the arguments of the process.
///
/// # Panics
/// If two schemes have one name, or it is called twice.
pub fn emulate_with(name: &'static str, schemes: &[AddedScheme]) -> ProcessExitCode {
    console::set_program(name);
    own_scheme::add(schemes);
    let arguments: Vec<_> = std::env::args_os().collect();
    let parsed = command(name).color(color_of(&arguments)).try_get_matches_from(arguments);
    match parsed.and_then(|matches| OwnProgram::from(&matches)) {
        Err(error) => print_clap_error(&error).into(),
        Ok(program) => conclude(program.run()).into(),
    }
}

fn command(name: &'static str) -> Command {
    let command = EmulateArgs::augment_args(Command::new(name));
    let command = GlobalArgs::augment_args(AboutFiles::augment_args(command));
    command
        // The file is not needed for what prints about files either.
        .mut_arg("experiment", |argument| {
            argument.required_unless_present_any(["list", "new_scheme", "reference", "schema"])
        })
        .version(env!("CARGO_PKG_VERSION"))
        .max_term_width(100)
}

impl OwnProgram {
    fn from(matches: &ArgMatches) -> Result<OwnProgram, clap::Error> {
        Ok(OwnProgram {
            emulate: EmulateArgs::from_arg_matches(matches)?,
            about_files: AboutFiles::from_arg_matches(matches)?,
            global: GlobalArgs::from_arg_matches(matches)?,
        })
    }

    fn run(self) -> anyhow::Result<super::ExitCode> {
        set_console(&self.global);
        if self.about_files.reference {
            print(reference())?;
        } else if self.about_files.schema {
            print(format!("{:#}\n", json_schema(&SCHEMA, "Thalweg: experiment")))?;
        } else {
            self.emulate.run()?;
        }
        Ok(super::ExitCode::Complete)
    }
}
