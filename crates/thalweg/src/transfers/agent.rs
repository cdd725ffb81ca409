//! Runs the agent of a transfer host until a signal.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use thalweg_daemon::log::{Log, LogOptions};
use thalweg_transfers::agent;
use thalweg_transfers::settings::Settings;

/// Runs the agent.
///
/// # Errors
/// If the configuration is invalid, or the queue or the list of connections cannot be opened.
pub fn run(config: &Path) -> anyhow::Result<()> {
    let settings = Settings::load(config)?;
    // Already installed with --verbose.
    let _ = Log::install(&LogOptions::default());
    let stop = Arc::<AtomicBool>::default();
    for signal in [SIGINT, SIGTERM] {
        // A second signal ends the process while it is stopping.
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    agent::run(&settings.agent, settings.logs, &stop)?;
    Ok(())
}
