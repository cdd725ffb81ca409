//! Counts of what became of rows.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::{Lost, Statistics};

/// Counts of one producer. None of them ever falls.
#[derive(Debug, Default)]
pub(super) struct Tallies {
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

impl Tallies {
    pub(super) fn statistics(&self) -> Statistics {
        let count = |count: &AtomicU64| count.load(Relaxed);
        // What was taken is read last, for what was delivered or lost is among it.
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

    pub(super) fn note_taken(&self, rows: usize) {
        self.records.fetch_add(rows as u64, Relaxed);
    }

    pub(super) fn note_delivered(&self, rows: usize, bytes: usize) {
        self.delivered.fetch_add(rows as u64, Relaxed);
        self.messages.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(super) fn note_queue_full(&self, rows: usize) {
        self.queue_full.fetch_add(rows as u64, Relaxed);
    }

    pub(super) fn note_timed_out(&self, rows: usize) {
        self.timed_out.fetch_add(rows as u64, Relaxed);
    }

    pub(super) fn note_refused(&self, rows: usize) {
        self.refused.fetch_add(rows as u64, Relaxed);
    }

    pub(super) fn note_unanswered(&self, rows: usize) {
        self.unanswered.fetch_add(rows as u64, Relaxed);
    }

    pub(super) fn note_error(&self, error: String) {
        self.errors.fetch_add(1, Relaxed);
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}
