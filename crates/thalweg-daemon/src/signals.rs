//! Signals: stop, reload, dump samples.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

/// Interval at which signals are checked.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// Flags that signals set.
#[derive(Clone, Debug)]
pub(super) struct Signals {
    stop: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
    dump: Arc<AtomicBool>,
}

impl Signals {
    /// Registers the signal handlers.
    ///
    /// # Errors
    /// If a handler cannot be registered.
    pub(super) fn register() -> std::io::Result<Signals> {
        let [stop, reload, dump] = std::array::from_fn(|_| Arc::new(AtomicBool::new(false)));
        for signal in [SIGINT, SIGTERM] {
            // A second signal during the stop ends the process.
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        signal_hook::flag::register(SIGHUP, Arc::clone(&reload))?;
        signal_hook::flag::register(SIGUSR1, Arc::clone(&dump))?;
        Ok(Signals { stop, reload, dump })
    }

    /// Whether a stop was requested.
    pub(super) fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns whether a reload was requested, and clears the request.
    pub(super) fn take_reload_request(&self) -> bool {
        self.reload.swap(false, Ordering::Relaxed)
    }

    /// Returns whether a dump of samples was requested, and clears the request.
    pub(super) fn take_dump_request(&self) -> bool {
        self.dump.swap(false, Ordering::Relaxed)
    }
}
