//! Whether the daemon does what it is for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::collectors::CollectorList;

/// Whether the daemon does what it is for, or is on its way out. Cheap to clone: all clones are the same.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    collectors: CollectorList,
    is_stopping: Arc<AtomicBool>,
}

/// Whether the daemon does what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Some collector has not tried to open its source yet.
    Starting,
    /// Every collector runs, has ended, or has failed and says so.
    Ready,
    /// It is on its way out.
    Stopping,
}

impl Lifecycle {
    /// That of a daemon with these collectors.
    pub fn new(collectors: CollectorList) -> Lifecycle {
        Lifecycle { collectors, is_stopping: Arc::default() }
    }

    /// Whether it does what it is for.
    pub fn readiness(&self) -> Readiness {
        match () {
            () if self.is_stopping() => Readiness::Stopping,
            () if self.collectors.are_starting() => Readiness::Starting,
            () => Readiness::Ready,
        }
    }

    /// Whether it is on its way out.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// From now on it is on its way out.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }
}
