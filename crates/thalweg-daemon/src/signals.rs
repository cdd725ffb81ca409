//! What signals say.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

/// How often signals are looked for.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// What signals say.
#[derive(Clone, Debug)]
pub(super) struct Signals {
    stop: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
    dump: Arc<AtomicBool>,
}

impl Signals {
    /// Listens from now on.
    ///
    /// # Errors
    /// If the system does not let it.
    pub(super) fn register() -> std::io::Result<Signals> {
        let [stop, reload, dump] = std::array::from_fn(|_| Arc::new(AtomicBool::new(false)));
        for signal in [SIGINT, SIGTERM] {
            // A second one, while stopping takes its time, ends the process.
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        signal_hook::flag::register(SIGHUP, Arc::clone(&reload))?;
        signal_hook::flag::register(SIGUSR1, Arc::clone(&dump))?;
        Ok(Signals { stop, reload, dump })
    }

    /// Whether the daemon is to stop.
    pub(super) fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether the configuration is to be read again; once for each time.
    pub(super) fn take_reload_request(&self) -> bool {
        self.reload.swap(false, Ordering::Relaxed)
    }

    /// Whether samples are to be written; once for each time.
    pub(super) fn take_dump_request(&self) -> bool {
        self.dump.swap(false, Ordering::Relaxed)
    }
}
