//! `thalweg serve`.

use std::path::PathBuf;

use clap::Args;

/// Measure flows and links from mirror ports, as a daemon.
///
/// Reads packets from the monitor ports of switches, estimates the rate of every flow and the utilisation of every link
/// within milliseconds, and tells by HTTP what it finds: what it is asked, and events as they happen. SIGHUP makes it
/// read its file again, SIGUSR1 write its last samples, SIGTERM stop.
#[derive(Args, Debug)]
pub(super) struct ServeArgs {
    /// What to do, in TOML; `thalweg check --default` prints one to begin with.
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
}

impl ServeArgs {
    /// Does it.
    ///
    /// # Errors
    /// If the file is wrong, or the daemon cannot start.
    pub(super) fn run(self) -> anyhow::Result<()> {
        thalweg_daemon::run(&self.config)
    }
}
