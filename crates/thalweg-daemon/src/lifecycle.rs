//! Readiness and stop of the daemon.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::collectors::CollectorList;

/// The lifecycle of the daemon. Clones share it.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    collectors: CollectorList,
    is_stopping: Arc<AtomicBool>,
}

/// Readiness of the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Some collector has not tried to open its source yet.
    Starting,
    /// Every collector runs, has ended or has failed.
    Ready,
    /// The daemon is stopping.
    Stopping,
}

impl Lifecycle {
    /// Creates the lifecycle of a daemon with these collectors.
    pub fn new(collectors: CollectorList) -> Lifecycle {
        Lifecycle { collectors, is_stopping: Arc::default() }
    }

    /// Returns the readiness.
    pub fn readiness(&self) -> Readiness {
        match () {
            () if self.is_stopping() => Readiness::Stopping,
            () if self.collectors.are_starting() => Readiness::Starting,
            () => Readiness::Ready,
        }
    }

    /// Whether the daemon is stopping.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Marks the daemon as stopping.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }
}
