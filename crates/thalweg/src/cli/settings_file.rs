//! `thalweg config`.

use std::path::PathBuf;

use clap::Args;

use crate::config::{self, Config, Request};

/// Print a configuration file of `thalweg watch` with all defaults and comments.
///
/// `thalweg check FILE` checks a file of any kind.
#[derive(Args, Debug)]
pub(super) struct ConfigArgs {
    /// Check this file and report every error.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
}

impl ConfigArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If the file is invalid.
    pub(super) fn run(self) -> anyhow::Result<()> {
        let Some(path) = self.check else { return super::print(config::default_file()) };
        let config = Config::load(&path)?;
        // The live view is valid on a terminal.
        config::resolve(&Request::default(), &config, true)?;
        super::print(format!("{}: OK, {} keys set\n", path.display(), config.key_count()))
    }
}
