//! `thalweg flows`: hands over to the Python package, in the first interpreter that has it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use thiserror::Error;

use super::exit_code::ExitCode;

/// Names the interpreter to use, and no other.
const PYTHON_VARIABLE: &str = "THALWEG_PYTHON";

/// The interpreter of a virtual environment.
const VENV_PYTHON: &str = "bin/python";

/// Ends with 0 if the package is there; does not import it, for that takes a second. A folder that happens to have its
/// name has no origin.
const PROBE: &str =
    "import importlib.util as u, sys; s = u.find_spec('thalweg'); sys.exit(not (s and s.origin))";

/// Analyse flow records: top talkers, transfers, parallel flowsets, time series.
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

/// Why the Python side was not started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(super) enum FlowsError {
    /// What was asked for has not got the package.
    #[error("{PYTHON_VARIABLE} is {}, which {lack}", .python.display())]
    Unusable {
        /// The interpreter.
        python: PathBuf,
        /// What is wrong with it.
        lack: Lack,
    },
    /// None has it.
    #[error(
        "`thalweg flows` is a Python package, and no interpreter here has it (looked at {tried}); in a checkout of \
         Thalweg: make python; elsewhere: python3 -m pip install CHECKOUT/python, or name an interpreter that has it \
         in {PYTHON_VARIABLE}"
    )]
    NoPython {
        /// Those that were asked.
        tried: String,
    },
    /// It has it, and could not be started.
    #[error("cannot start {}", .python.display())]
    Start {
        /// The interpreter.
        python: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What an interpreter lacks.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(super) enum Lack {
    /// It is none.
    #[error("cannot be started ({0})")]
    Program(io::Error),
    /// It is one, or something else.
    #[error(
        "has no package thalweg, or is older than Python 3.11; to install it: PYTHON -m pip install CHECKOUT/python"
    )]
    Package,
}

impl FlowsArgs {
    /// Does it. On Unix the interpreter takes this process's place, with its terminal and signals.
    ///
    /// # Errors
    /// If there is no interpreter with the package, or it cannot be started.
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let python = interpreter()?;
        let mut command = Command::new(&python);
        command.args(["-P", "-m", "thalweg", "flows"]).args(self.arguments);
        Err(FlowsError::Start { python, source: become_it(command) }.into())
    }
}

/// Returns only if that fails.
#[cfg(unix)]
fn become_it(mut command: Command) -> io::Error {
    std::os::unix::process::CommandExt::exec(&mut command)
}

/// Ends with its exit code; returns only if it cannot be started.
#[cfg(not(unix))]
fn become_it(mut command: Command) -> io::Error {
    match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(ExitCode::Failed as i32)),
        Err(error) => error,
    }
}

fn interpreter() -> Result<PathBuf, FlowsError> {
    if let Some(python) = env::var_os(PYTHON_VARIABLE).map(PathBuf::from) {
        return match lack(&python) {
            None => Ok(python),
            Some(lack) => Err(FlowsError::Unusable { python, lack }),
        };
    }
    let program = env::current_exe().and_then(|path| path.canonicalize()).ok();
    let candidates = candidates(program.as_deref(), env::var_os("VIRTUAL_ENV").as_deref());
    match candidates.iter().find(|python| lack(python).is_none()) {
        Some(python) => Ok(python.clone()),
        None => {
            let tried: Vec<_> = candidates.iter().map(|python| python.display().to_string()).collect();
            Err(FlowsError::NoPython { tried: tried.join(", ") })
        }
    }
}

/// Interpreters to ask, in order.
fn candidates(program: Option<&Path>, virtual_env: Option<&OsStr>) -> Vec<PathBuf> {
    let folders = program.into_iter().flat_map(|program| program.ancestors().skip(1));
    let beside = folders.map(|folder| folder.join(".venv").join(VENV_PYTHON)).find(|python| python.exists());
    let active = virtual_env.map(|folder| Path::new(folder).join(VENV_PYTHON));
    beside.into_iter().chain(active).chain([PathBuf::from("python3")]).collect()
}

fn lack(python: &Path) -> Option<Lack> {
    let mut command = Command::new(python);
    // -P: what lies in the current folder is not the package.
    command.args(["-P", "-c", PROBE]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => None,
        Ok(_) => Some(Lack::Package),
        Err(error) => Some(Lack::Program(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_environment_of_the_checkout_is_asked_before_the_active_one() {
        let checkout = tempfile::tempdir().unwrap();
        let python = checkout.path().join(".venv/bin/python");
        let program = checkout.path().join("target/release/thalweg");
        let active = Path::new("/venv/bin/python");
        assert_eq!(
            candidates(Some(&program), Some(OsStr::new("/venv"))),
            [active, Path::new("python3")],
            "there is none beside the program yet"
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
    fn what_is_no_interpreter_lacks_the_program_and_what_fails_the_package() {
        assert!(matches!(lack(Path::new("/nonexistent/python")), Some(Lack::Program(_))));
        assert!(matches!(lack(Path::new("false")), Some(Lack::Package)));
        assert!(lack(Path::new("true")).is_none());
    }
}
