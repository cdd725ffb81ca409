//! The list of collectors.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use super::CollectorHandle;
use crate::event::CollectorState;

/// The list of collectors. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct CollectorList(Arc<RwLock<Vec<CollectorHandle>>>);

impl CollectorList {
    /// Returns all collectors, in the order of the configuration.
    pub fn all(&self) -> Vec<CollectorHandle> {
        self.read().clone()
    }

    /// Returns the collector of this name.
    pub fn named(&self, name: &str) -> Option<CollectorHandle> {
        self.read().iter().find(|collector| collector.name() == name).cloned()
    }

    /// Replaces all collectors, as after a reload.
    pub fn set(&self, collectors: Vec<CollectorHandle>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = collectors;
    }

    /// Whether some collector has not tried to open its source yet.
    pub fn are_starting(&self) -> bool {
        self.read().iter().any(|collector| collector.state() == CollectorState::Starting)
    }

    /// Returns a summary of states: `3 collectors: 2 running, 1 failed`.
    pub fn status(&self) -> String {
        let states: Vec<&str> = self.read().iter().map(|collector| collector.state().name()).collect();
        let parts = CollectorState::NAMES.iter().filter_map(|name| {
            let count = states.iter().filter(|state| *state == name).count();
            (count > 0).then(|| format!("{count} {name}"))
        });
        format!("{} collectors: {}", states.len(), parts.collect::<Vec<_>>().join(", "))
    }

    /// Ignores poisoning: the lock is held for one assignment, so a panic leaves a whole value.
    fn read(&self) -> RwLockReadGuard<'_, Vec<CollectorHandle>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}
