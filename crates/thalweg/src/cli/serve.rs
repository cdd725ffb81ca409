//! `thalweg serve`.

use std::path::PathBuf;

use clap::Args;

use super::file_kind::FileKind;

/// Run the collector daemon: measure monitor ports, publish events, reroute flows.
///
/// Reads packets from the monitor ports of switches and estimates the rate of every flow and the utilisation of every link
/// within milliseconds. Serves an HTTP API with queries, events and metrics, and a dashboard for browsers at http://127.0.0.1:9477. Its controller, if configured, reroutes flows from congested links.
/// Signals: SIGHUP reloads the configuration, SIGUSR1 dumps the latest samples, SIGTERM stops.
#[derive(Args, Debug)]
pub(super) struct ServeArgs {
    /// Configuration file (TOML). `thalweg config serve` prints an example.
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
}

impl ServeArgs {
    /// Runs the command. `verbose` overrides the log level of the file.
    ///
    /// # Errors
    /// If the file is invalid, or the daemon cannot start.
    pub(super) fn run(self, verbose: bool) -> anyhow::Result<()> {
        thalweg_daemon::run(&self.config, verbose)
            .map_err(|error| FileKind::Daemon.with_hint(error, &self.config))
    }
}
