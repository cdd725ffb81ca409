//! Passes rows to the stores and to Kafka.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::{CounterBatch, Decoded, RecordBatch};

use crate::kafka;
use crate::store::Appender;

/// Observes all flow records before they are stored. It runs on the receiving thread: while it works, datagrams wait in
/// the socket buffer.
pub trait Tap: Send + Sync {
    /// Called with each batch of decoded flow records.
    fn inspect(&self, flows: &RecordBatch);
}

/// The destinations of decoded rows. Each receiving thread has its own, so the lock is rarely contended.
pub(super) struct Outlet {
    pub(super) flows: Appender<RecordBatch>,
    pub(super) counters: Appender<CounterBatch>,
    pub(super) kafka: Option<kafka::RowSender>,
    pub(super) tap: Option<Arc<dyn Tap>>,
}

/// Shared by appending threads, the periodic tick, and the connections of one listener.
pub(super) type Shared = Arc<Mutex<Outlet>>;

impl Outlet {
    pub(super) fn append(&mut self, decoded: &Decoded, now: Timestamp) {
        if !decoded.flows.is_empty() {
            if let Some(tap) = &self.tap {
                tap.inspect(&decoded.flows);
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

// A thread that panicked while holding the lock has left only complete rows.
pub(super) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
