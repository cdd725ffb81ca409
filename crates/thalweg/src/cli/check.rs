//! `thalweg check`.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::serve::config::{self, Config};
use crate::serve::plan;

/// Check the file of the daemon, and say what it would do.
///
/// Names everything that is wrong with it, and with the topology, tokens and certificates that it names. If nothing is,
/// says in a line for each collector where packets come from, how and why so, and which rules there are.
#[derive(Args, Debug)]
pub(super) struct CheckArgs {
    /// The file.
    #[arg(short, long, value_name = "FILE", required_unless_present = "default")]
    config: Option<PathBuf>,

    /// Print a file to begin with instead, every key in it with its meaning and its default.
    #[arg(long, conflicts_with = "config")]
    default: bool,
}

impl CheckArgs {
    /// Does it.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub(super) fn run(self) -> anyhow::Result<()> {
        let path = match &self.config {
            Some(path) if !self.default => path.as_path(),
            _ => return super::print(config::default_file()),
        };
        super::print(describe(path)?)
    }
}

fn describe(path: &Path) -> anyhow::Result<String> {
    let config = Config::load(path)?;
    plan::describe(&config)
}
