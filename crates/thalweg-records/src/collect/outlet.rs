//! Rows to the stores, and to Kafka.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::{CounterBatch, Decoded, RecordBatch};

use crate::kafka;
use crate::store::Appender;

/// Is shown all flow records on their way to the store, on the thread that receives: what it takes long over, the socket's
/// buffer has to hold.
pub trait Tap: Send + Sync {
    /// Takes a look at some records.
    fn see(&self, flows: &RecordBatch);
}

/// A way to the stores; one for each thread that seldom has to share it.
pub(super) struct Outlet {
    pub(super) flows: Appender<RecordBatch>,
    pub(super) counters: Appender<CounterBatch>,
    pub(super) kafka: Option<kafka::Outlet>,
    pub(super) tap: Option<Arc<dyn Tap>>,
}

/// Shared by who appends, who lets time pass, and by connections of one listener.
pub(super) type Shared = Arc<Mutex<Outlet>>;

impl Outlet {
    pub(super) fn append(&mut self, decoded: &Decoded, now: Timestamp) {
        if !decoded.flows.is_empty() {
            if let Some(tap) = &self.tap {
                tap.see(&decoded.flows);
            }
            self.flows.append(&decoded.flows, now);
            if let Some(kafka) = &mut self.kafka {
                kafka.append(&decoded.flows);
            }
        }
        if !decoded.counters.is_empty() {
            self.counters.append(&decoded.counters, now);
        }
    }

    pub(super) fn tick(&mut self, now: Timestamp) {
        self.flows.tick(now);
        self.counters.tick(now);
        if let Some(kafka) = &mut self.kafka {
            kafka.tick();
        }
    }
}

/// A thread that panicked while it had the lock has left whole rows or none.
pub(super) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
