//! Between meters and the thread that exports.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::RecordBatch;

use super::exporter::Exporter;
use super::tallies::{Reason, Tallies, contents};

/// How often time passes for an exporter to which nothing is brought.
const TICK: Duration = Duration::from_millis(100);

/// Where meters put rows; cloned for each of them.
#[derive(Clone, Debug)]
pub struct Outlet {
    batches: Sender<RecordBatch>,
    tallies: Arc<Tallies>,
}

/// A queue of at most `batches` batches, and its far end.
pub fn queue(batches: usize, tallies: Arc<Tallies>) -> (Outlet, Receiver<RecordBatch>) {
    let (sender, receiver) = bounded(batches);
    (Outlet { batches: sender, tallies }, receiver)
}

impl Outlet {
    /// Hands rows on without waiting. If the queue is full they are dropped, and counted.
    pub fn offer(&self, rows: RecordBatch) {
        if let Err(TrySendError::Full(rows) | TrySendError::Disconnected(rows)) = self.batches.try_send(rows)
        {
            self.tallies.note_not_sent(Reason::QueueFull, contents(&rows));
        }
    }

    /// Hands rows on, and waits while the queue is full: for a source that waits as well, such as a file.
    pub fn put(&self, rows: RecordBatch) {
        if let Err(error) = self.batches.send(rows) {
            self.tallies.note_not_sent(Reason::QueueFull, contents(&error.0));
        }
    }
}

/// Exports what is brought until all outlets are gone, then sends what is left.
pub fn run(mut exporter: Exporter, batches: &Receiver<RecordBatch>, clock: impl Fn() -> Timestamp) {
    loop {
        match batches.recv_timeout(TICK) {
            Ok(rows) => exporter.add(&rows, clock()),
            Err(RecvTimeoutError::Timeout) => exporter.tick(clock()),
            Err(RecvTimeoutError::Disconnected) => return exporter.finish(clock()),
        }
    }
}
