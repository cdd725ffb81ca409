//! `thalweg config`.

use clap::{Args, ValueEnum};

use crate::config;

/// Print an example configuration file, with explanations, of `serve`, `watch` or the agent of `transfers`.
///
/// The file contains every key, with its default if it has one. `thalweg check FILE` checks a file.
#[derive(Args, Debug)]
pub(super) struct ConfigArgs {
    /// Command that reads the file.
    #[arg(value_enum, value_name = "COMMAND")]
    command: ConfiguredCommand,
}

/// A command with a configuration file.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ConfiguredCommand {
    /// The daemon for monitor ports
    Serve,
    /// Live view, summary and JSON of flows
    Watch,
    /// Agent of a transfer host
    TransfersAgent,
}

impl ConfigArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub(super) fn run(self) -> anyhow::Result<()> {
        super::print(match self.command {
            ConfiguredCommand::Serve => thalweg_daemon::config::default_file(),
            ConfiguredCommand::Watch => config::default_file(),
            ConfiguredCommand::TransfersAgent => thalweg_transfers::settings::default_file(),
        })
    }
}
