//! The collectors that there are, for whoever asks them.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use super::CollectorHandle;
use crate::event::CollectorState;

/// The collectors that there are. Cheap to clone: all clones are the same.
#[derive(Clone, Debug, Default)]
pub struct CollectorList(Arc<RwLock<Vec<CollectorHandle>>>);

impl CollectorList {
    /// All collectors, in the order of the configuration.
    pub fn all(&self) -> Vec<CollectorHandle> {
        self.read().clone()
    }

    /// The collector of this name.
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

    /// How they do: `3 collectors: 2 running, 1 failed`.
    pub fn status(&self) -> String {
        let states: Vec<&str> = self.read().iter().map(|collector| collector.state().name()).collect();
        let parts = CollectorState::NAMES.iter().filter_map(|name| {
            let count = states.iter().filter(|state| *state == name).count();
            (count > 0).then(|| format!("{count} {name}"))
        });
        format!("{} collectors: {}", states.len(), parts.collect::<Vec<_>>().join(", "))
    }

    /// What a thread leaves behind when it panics is whole: the lock is held for one assignment.
    fn read(&self) -> RwLockReadGuard<'_, Vec<CollectorHandle>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}
