//! Queues rows for the delivery thread.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use thalweg_wire::flow_export::RecordBatch;

use crate::schema::Dataset;

use super::counters::Counters;

/// Rows per batch: small enough for the processor cache, large enough to make queueing cheap.
pub(super) const BATCH_ROWS: usize = 4096;

/// Queues rows; each thread has its own.
pub struct RowSender {
    /// The batch being filled.
    filling: RecordBatch,
    queue: Sender<RecordBatch>,
    /// Empty batches for reuse.
    emptied: Receiver<RecordBatch>,
    counters: Arc<Counters>,
}

impl RowSender {
    pub(super) fn new(
        queue: Sender<RecordBatch>,
        emptied: Receiver<RecordBatch>,
        counters: Arc<Counters>,
    ) -> RowSender {
        RowSender { filling: RecordBatch::default(), queue, emptied, counters }
    }

    /// Queues rows without blocking. Rows that find a full queue are lost and counted.
    pub fn append(&mut self, rows: &RecordBatch) {
        self.counters.count_accepted(rows.len());
        let mut from = 0;
        while from < rows.len() {
            if self.filling.len() == BATCH_ROWS && !self.send() {
                return self.counters.count_queue_full(rows.len() - from);
            }
            let to = rows.len().min(from + BATCH_ROWS - self.filling.len());
            self.filling.append_rows(rows, from..to);
            from = to;
        }
        if self.filling.len() == BATCH_ROWS {
            // If the queue is full now, retry with the next rows.
            self.send();
        }
    }

    /// Sends a partial batch.
    pub fn tick(&mut self) {
        if !self.filling.is_empty() {
            self.send();
        }
    }

    /// Sends the batch; returns whether there was room.
    fn send(&mut self) -> bool {
        // Only senders fill the queue, though another one may be faster.
        if self.queue.is_full() {
            return false;
        }
        let emptied = self.emptied.try_recv().unwrap_or_default();
        match self.queue.try_send(std::mem::replace(&mut self.filling, emptied)) {
            Ok(()) => true,
            Err(error) => {
                self.filling = error.into_inner();
                false
            }
        }
    }
}

impl Drop for RowSender {
    fn drop(&mut self) {
        if !self.filling.is_empty() && !self.send() {
            self.counters.count_queue_full(self.filling.len());
        }
    }
}
