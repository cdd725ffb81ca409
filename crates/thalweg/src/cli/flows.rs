//! `thalweg flows`, which is in Python but for `import`.

use std::ffi::OsString;

use clap::Args;

use super::exit_code::ExitCode;
use super::{flows_import, python};

/// Analyse flow records: top talkers, parallel transfers (flowsets), time series.
///
/// The subcommands `report`, `top`, `series`, `query`, `flows` and `flowsets` read the Parquet files of `thalweg collect`,
/// `serve` and `watch --records`; `import` adds those of nfdump. All but `import` are part of the Python package `thalweg`, which `make python` installs into `.venv`.
/// Interpreters are tried in this order: THALWEG_PYTHON, `.venv/bin/python` in a directory above this program, the active
/// virtual environment, `python3`.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(super) struct FlowsArgs {
    /// Subcommand and its arguments. `--help` lists them.
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl FlowsArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If no interpreter has the package, or it cannot be started.
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        match self.arguments.split_first() {
            Some((first, rest)) if first == "import" => flows_import::run(rest),
            _ => python::run("flows", &self.arguments),
        }
    }
}
