//! Shared counters of the Kafka producer.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::{Lost, Statistics};

/// Counters of one producer. They never decrease.
#[derive(Debug, Default)]
pub(super) struct Counters {
    records: AtomicU64,
    delivered: AtomicU64,
    messages: AtomicU64,
    bytes: AtomicU64,
    queue_full: AtomicU64,
    timed_out: AtomicU64,
    refused: AtomicU64,
    unanswered: AtomicU64,
    errors: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl Counters {
    pub(super) fn statistics(&self) -> Statistics {
        let count = |count: &AtomicU64| count.load(Relaxed);
        // `records` is read last, because it includes delivered and lost rows.
        let (delivered, messages, bytes) =
            (count(&self.delivered), count(&self.messages), count(&self.bytes));
        let lost = Lost {
            queue_full: count(&self.queue_full),
            timed_out: count(&self.timed_out),
            refused: count(&self.refused),
            unanswered: count(&self.unanswered),
        };
        let records = count(&self.records);
        Statistics {
            records,
            queued: records.saturating_sub(delivered + lost.total()),
            delivered,
            messages,
            bytes,
            lost,
            last_error: self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            errors: count(&self.errors),
        }
    }

    pub(super) fn count_accepted(&self, rows: usize) {
        self.records.fetch_add(rows as u64, Relaxed);
    }

    pub(super) fn count_delivered(&self, rows: usize, bytes: usize) {
        self.delivered.fetch_add(rows as u64, Relaxed);
        self.messages.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(super) fn count_queue_full(&self, rows: usize) {
        self.queue_full.fetch_add(rows as u64, Relaxed);
    }

    pub(super) fn count_timed_out(&self, rows: usize) {
        self.timed_out.fetch_add(rows as u64, Relaxed);
    }

    pub(super) fn count_refused(&self, rows: usize) {
        self.refused.fetch_add(rows as u64, Relaxed);
    }

    pub(super) fn count_unanswered(&self, rows: usize) {
        self.unanswered.fetch_add(rows as u64, Relaxed);
    }

    pub(super) fn has_error(&self) -> bool {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(super) fn set_last_error(&self, error: String) {
        self.errors.fetch_add(1, Relaxed);
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}
