//! `thalweg config`.

use std::path::PathBuf;

use clap::Args;

use crate::config::{self, Config, Request};

/// Print the default configuration file, or check one.
///
/// Without --check, prints a configuration file with every key at its default, each with its meaning, to be
/// saved and edited.
#[derive(Args, Debug)]
pub(super) struct ConfigArgs {
    /// Check a file instead: name everything that is wrong with it.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
}

impl ConfigArgs {
    /// Does it.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub(super) fn run(self) -> anyhow::Result<()> {
        let Some(path) = self.check else { return super::print(config::default_file()) };
        let config = Config::load(&path)?;
        // As if on a terminal: a file that asks for the live view is right.
        config::resolve(&Request::default(), &config, true)?;
        super::print(format!("{}: no mistakes; keys set: {}\n", path.display(), config.key_count()))
    }
}
