//! The queue between meters and the export thread.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::RecordBatch;

use super::counters::{ExportCounters, Reason, contents};
use super::exporter::Exporter;

/// Interval of ticks for an idle exporter.
const TICK: Duration = Duration::from_millis(100);

/// Queues rows for export; each meter has a clone.
#[derive(Clone, Debug)]
pub struct BatchSender {
    batches: Sender<RecordBatch>,
    counters: Arc<ExportCounters>,
}

/// Creates a queue of at most `batches` batches. Returns its sender and its receiver.
pub fn queue(batches: usize, counters: Arc<ExportCounters>) -> (BatchSender, Receiver<RecordBatch>) {
    let (sender, receiver) = bounded(batches);
    (BatchSender { batches: sender, counters }, receiver)
}

impl BatchSender {
    /// Queues rows without blocking. If the queue is full, the rows are dropped and counted.
    pub fn try_send(&self, rows: RecordBatch) {
        if let Err(TrySendError::Full(rows) | TrySendError::Disconnected(rows)) = self.batches.try_send(rows)
        {
            self.counters.count_not_sent(Reason::QueueFull, contents(&rows));
        }
    }

    /// Queues rows, and blocks while the queue is full. For sources that can wait, such as files.
    pub fn send(&self, rows: RecordBatch) {
        if let Err(error) = self.batches.send(rows) {
            self.counters.count_not_sent(Reason::QueueFull, contents(&error.0));
        }
    }
}

/// Exports batches until all senders are dropped, then sends the rest.
pub fn run(mut exporter: Exporter, batches: &Receiver<RecordBatch>, clock: impl Fn() -> Timestamp) {
    loop {
        match batches.recv_timeout(TICK) {
            Ok(rows) => exporter.add(&rows, clock()),
            Err(RecvTimeoutError::Timeout) => exporter.tick(clock()),
            Err(RecvTimeoutError::Disconnected) => return exporter.finish(clock()),
        }
    }
}
