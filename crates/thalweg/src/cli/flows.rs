//! `thalweg flows`: runs the Python package with the first interpreter that has it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use thiserror::Error;

use super::exit_code::ExitCode;
use super::generated;

/// Environment variable with the only interpreter to use.
const PYTHON_VARIABLE: &str = "THALWEG_PYTHON";

/// Path of the interpreter in a virtual environment.
const VENV_PYTHON: &str = "bin/python";

/// Exits with 0 if the package is installed. Does not import it, which takes a second. A directory that only has its name
/// has no origin.
const PROBE: &str =
    "import importlib.util as u, sys; s = u.find_spec('thalweg'); sys.exit(not (s and s.origin))";

/// Analyse flow records: top talkers, parallel transfers (flowsets), time series.
///
/// The subcommands `report`, `top`, `series`, `query`, `flows` and `flowsets` read the Parquet files of `thalweg collect`,
/// `serve` and `watch --records`. They are part of the Python package `thalweg`, which `make python` installs into `.venv`.
/// Interpreters are tried in this order: THALWEG_PYTHON, `.venv/bin/python` in a directory above this program, the active
/// virtual environment, `python3`.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(super) struct FlowsArgs {
    /// Subcommand and its arguments. `--help` lists them.
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// An error that prevents `thalweg flows`.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(super) enum FlowsError {
    /// The interpreter of the environment variable is unusable.
    #[error("{PYTHON_VARIABLE}={}: {defect}", .python.display())]
    Unusable {
        /// The interpreter.
        python: PathBuf,
        /// The defect.
        defect: Defect,
    },
    /// No interpreter has the package.
    #[error(
        "`thalweg flows` requires the Python package thalweg, which no interpreter has (tried {tried}); install it with \
        make python in a checkout of Thalweg, or python3 -m pip install CHECKOUT/python, or set {PYTHON_VARIABLE} to an \
        interpreter that has it"
    )]
    NoPython {
        /// The interpreters tried.
        tried: String,
    },
    /// The interpreter has the package but cannot be started.
    #[error("cannot start {}", .python.display())]
    Start {
        /// The interpreter.
        python: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Why an interpreter is unusable.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(super) enum Defect {
    /// It cannot be started.
    #[error("cannot start it ({0})")]
    Program(io::Error),
    /// It lacks the package or is too old.
    #[error(
        "it lacks the package thalweg or is older than Python 3.11; install the package with PYTHON -m pip install CHECKOUT/python"
    )]
    Package,
}

impl FlowsArgs {
    /// Runs the command. On Unix the interpreter replaces this process, with its terminal and signals.
    ///
    /// # Errors
    /// If no interpreter has the package, or it cannot be started.
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let python = match interpreter() {
            Ok(python) => python,
            Err(error) => {
                let help = self.help().ok_or(error)?;
                return super::print(help).map(|()| ExitCode::Complete);
            }
        };
        let mut command = Command::new(&python);
        command.args(["-P", "-m", "thalweg", "flows"]).args(self.arguments);
        Err(FlowsError::Start { python, source: replace_process(command) }.into())
    }
}

impl FlowsArgs {
    /// Returns the help that the arguments ask for, if they do, for a machine without the package.
    fn help(&self) -> Option<String> {
        let is_help = |argument: &OsString| argument == "--help" || argument == "-h";
        self.arguments.iter().any(is_help).then(|| generated::flows_help(self.arguments.first()))
    }
}

/// Returns only on failure.
#[cfg(unix)]
fn replace_process(mut command: Command) -> io::Error {
    std::os::unix::process::CommandExt::exec(&mut command)
}

/// Exits with the exit code of the interpreter. Returns only if it cannot be started.
#[cfg(not(unix))]
fn replace_process(mut command: Command) -> io::Error {
    match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(ExitCode::Failed as i32)),
        Err(error) => error,
    }
}

fn interpreter() -> Result<PathBuf, FlowsError> {
    if let Some(python) = env::var_os(PYTHON_VARIABLE).map(PathBuf::from) {
        return match defect(&python) {
            None => Ok(python),
            Some(defect) => Err(FlowsError::Unusable { python, defect }),
        };
    }
    let program = env::current_exe().and_then(|path| path.canonicalize()).ok();
    let candidates = candidates(program.as_deref(), env::var_os("VIRTUAL_ENV").as_deref());
    match candidates.iter().find(|python| defect(python).is_none()) {
        Some(python) => Ok(python.clone()),
        None => {
            let tried: Vec<_> = candidates.iter().map(|python| python.display().to_string()).collect();
            Err(FlowsError::NoPython { tried: tried.join(", ") })
        }
    }
}

/// Returns the interpreters to try, in order.
fn candidates(program: Option<&Path>, virtual_env: Option<&OsStr>) -> Vec<PathBuf> {
    let folders = program.into_iter().flat_map(|program| program.ancestors().skip(1));
    let checkout =
        folders.map(|folder| folder.join(".venv").join(VENV_PYTHON)).find(|python| python.exists());
    let active = virtual_env.map(|folder| Path::new(folder).join(VENV_PYTHON));
    checkout.into_iter().chain(active).chain([PathBuf::from("python3")]).collect()
}

fn defect(python: &Path) -> Option<Defect> {
    let mut command = Command::new(python);
    // -P ignores the current directory.
    command.args(["-P", "-c", PROBE]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => None,
        Ok(_) => Some(Defect::Package),
        Err(error) => Some(Defect::Program(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_environment_of_the_checkout_is_tried_first() {
        let checkout = tempfile::tempdir().unwrap();
        let python = checkout.path().join(".venv/bin/python");
        let program = checkout.path().join("target/release/thalweg");
        let active = Path::new("/venv/bin/python");
        assert_eq!(
            candidates(Some(&program), Some(OsStr::new("/venv"))),
            [active, Path::new("python3")],
            "the checkout has no environment yet"
        );
        fs::create_dir_all(python.parent().unwrap()).unwrap();
        fs::write(&python, "").unwrap();
        assert_eq!(
            candidates(Some(&program), Some(OsStr::new("/venv"))),
            [&*python, active, Path::new("python3")]
        );
        assert_eq!(candidates(Some(&program), None), [&*python, Path::new("python3")]);
    }

    #[test]
    fn a_missing_program_and_a_missing_package_differ() {
        assert!(matches!(defect(Path::new("/nonexistent/python")), Some(Defect::Program(_))));
        assert!(matches!(defect(Path::new("false")), Some(Defect::Package)));
        assert!(defect(Path::new("true")).is_none());
    }
}
