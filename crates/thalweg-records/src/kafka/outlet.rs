//! Rows to the queue.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use thalweg_wire::flow_export::RecordBatch;

use crate::schema::Dataset;

use super::tallies::Tallies;

/// Rows of a batch: few enough to be in the processor's cache, and many enough that handing them over costs nothing.
pub(super) const BATCH_ROWS: usize = 4096;

/// Puts rows into the queue; one for each thread that has some.
pub struct Outlet {
    /// Rows that are not in the queue yet.
    filling: RecordBatch,
    queue: Sender<RecordBatch>,
    /// Emptied batches, so that their memory is used again.
    emptied: Receiver<RecordBatch>,
    tallies: Arc<Tallies>,
}

impl Outlet {
    pub(super) fn new(
        queue: Sender<RecordBatch>,
        emptied: Receiver<RecordBatch>,
        tallies: Arc<Tallies>,
    ) -> Outlet {
        Outlet { filling: RecordBatch::default(), queue, emptied, tallies }
    }

    /// Takes rows. Waits for nobody: what the queue has no room for is lost, and counted.
    pub fn append(&mut self, rows: &RecordBatch) {
        self.tallies.note_taken(rows.len());
        let mut from = 0;
        while from < rows.len() {
            if self.filling.len() == BATCH_ROWS && !self.send() {
                return self.tallies.note_queue_full(rows.len() - from);
            }
            let to = rows.len().min(from + BATCH_ROWS - self.filling.len());
            self.filling.append_rows(rows, from..to);
            from = to;
        }
        if self.filling.len() == BATCH_ROWS {
            // If there is no room now, there may be when the next rows come.
            self.send();
        }
    }

    /// Sends what has been waiting for more.
    pub fn tick(&mut self) {
        if !self.filling.is_empty() {
            self.send();
        }
    }

    /// Whether there was room.
    fn send(&mut self) -> bool {
        // Only an outlet makes the queue fuller; another one may be faster.
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

impl Drop for Outlet {
    fn drop(&mut self) {
        if !self.filling.is_empty() && !self.send() {
            self.tallies.note_queue_full(self.filling.len());
        }
    }
}
