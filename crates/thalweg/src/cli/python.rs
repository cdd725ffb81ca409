//! Runs the Python package with the first interpreter that has it.
//!
//! Interpreters are tried in this order: THALWEG_PYTHON, `.venv/bin/python` in a directory above this program, the active virtual
//! environment, `python3`.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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

/// An error that prevents a command in Python.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(super) enum PythonError {
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
        "`thalweg {command}` requires the Python package thalweg, which no interpreter has (tried {tried}); install it with \
        make python in a checkout of Thalweg, or python3 -m pip install CHECKOUT/python, or set {PYTHON_VARIABLE} to an \
        interpreter that has it"
    )]
    NoPython {
        /// The command.
        command: &'static str,
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

/// Runs a command in Python. On Unix the interpreter replaces this process, with its terminal and signals. Help is shown without the
/// package too.
///
/// # Errors
/// If no interpreter has the package, or it cannot be started.
pub(super) fn run(command: &'static str, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let python = match interpreter(command) {
        Ok(python) => python,
        Err(error) => {
            let is_help = |argument: &OsString| argument == "--help" || argument == "-h";
            if !arguments.iter().any(is_help) {
                return Err(error.into());
            }
            let help = generated::python_help(command, arguments.first());
            return super::print(help).map(|()| ExitCode::Complete);
        }
    };
    let mut process = Command::new(&python);
    process.args(["-P", "-m", "thalweg", command]).args(arguments);
    Err(PythonError::Start { python, source: replace_process(process) }.into())
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

/// Returns the interpreter for a command.
///
/// # Errors
/// If no interpreter has the package.
fn interpreter(command: &'static str) -> Result<PathBuf, PythonError> {
    if let Some(python) = env::var_os(PYTHON_VARIABLE).map(PathBuf::from) {
        return match defect(&python) {
            None => Ok(python),
            Some(defect) => Err(PythonError::Unusable { python, defect }),
        };
    }
    let program = env::current_exe().and_then(|path| path.canonicalize()).ok();
    let candidates = candidates(program.as_deref(), env::var_os("VIRTUAL_ENV").as_deref());
    match candidates.iter().find(|python| defect(python).is_none()) {
        Some(python) => Ok(python.clone()),
        None => {
            let tried: Vec<_> = candidates.iter().map(|python| python.display().to_string()).collect();
            Err(PythonError::NoPython { command, tried: tried.join(", ") })
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
