//! The thread that makes messages of rows, and its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use thalweg_wire::flow_export::RecordBatch;

use super::client::{Client, Sent};
use super::json_lines::JsonLines;
use super::outlet::{BATCH_ROWS, Outlet};
use super::tallies::Tallies;
use super::{KafkaError, KafkaOptions, Statistics};
use crate::store::parquet::text;

/// How long to wait for room with librdkafka before asking again.
const NAP: Duration = Duration::from_millis(5);

/// Room for one batch of each of a few receivers, and for one that is being sent.
const LEAST_BATCHES: usize = 4;

/// A message is ended by the row that makes it larger: brokers take a mebibyte by default.
const LARGEST_MESSAGE: usize = 512 << 10;

/// Feeds Kafka.
pub struct Kafka {
    /// Kept so that there can be more outlets; gone when all is to end.
    queue: Option<Sender<RecordBatch>>,
    emptied: Receiver<RecordBatch>,
    tallies: Arc<Tallies>,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Kafka {
    /// Starts the client and a thread. Does not wait for brokers.
    ///
    /// # Errors
    /// If settings make no sense or their files cannot be read.
    pub fn start(options: &KafkaOptions) -> Result<Kafka, KafkaError> {
        let batches = options.queue_rows.div_ceil(BATCH_ROWS).max(LEAST_BATCHES);
        let (sender, queue) = bounded(batches);
        let (emptied_sender, emptied) = bounded(batches);
        let (tallies, closing) = (Arc::<Tallies>::default(), Arc::<AtomicBool>::default());
        let delivery = Delivery {
            client: Client::new(options, tallies.clone())?,
            rows: options.rows.get(),
            queue,
            emptied: emptied_sender,
            tallies: tallies.clone(),
            closing: closing.clone(),
            patience: options.farewell,
        };
        let thread = std::thread::Builder::new().name("kafka".to_owned());
        let thread = thread.spawn(move || delivery.run()).map_err(KafkaError::Thread)?;
        Ok(Kafka { queue: Some(sender), emptied, tallies, closing, thread: Some(thread) })
    }

    /// A way in, for one thread. It must be dropped before [`finish`](Kafka::finish).
    ///
    /// # Panics
    /// After [`finish`](Kafka::finish).
    pub fn outlet(&self) -> Outlet {
        let queue = self.queue.clone().expect("outlets are made before the end");
        Outlet::new(queue, self.emptied.clone(), self.tallies.clone())
    }

    /// Whether the queue has room for a batch and one that is being filled: for a source that can wait.
    pub fn has_room(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.len() + 2 <= queue.capacity().unwrap_or(usize::MAX))
    }

    /// What became of the rows so far.
    pub fn statistics(&self) -> Statistics {
        self.tallies.statistics()
    }

    /// Delivers what there is, for as long as options say, and says what became of it all. Called a second time, it only
    /// says.
    pub fn finish(&mut self) -> Statistics {
        self.closing.store(true, Relaxed);
        self.queue = None;
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            self.tallies.note_error("the thread that feeds Kafka panicked".to_owned());
        }
        self.statistics()
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The thread's own.
struct Delivery {
    client: Client,
    rows: usize,
    queue: Receiver<RecordBatch>,
    emptied: Sender<RecordBatch>,
    tallies: Arc<Tallies>,
    closing: Arc<AtomicBool>,
    /// How much longer the end may wait.
    patience: Duration,
}

impl Delivery {
    /// Until all outlets are gone and the queue is empty.
    fn run(mut self) {
        let mut json = JsonLines::new::<RecordBatch>();
        let mut payload = Vec::new();
        while let Ok(mut batch) = self.queue.recv() {
            self.deliver(&batch, &mut json, &mut payload);
            batch.clear();
            let _ = self.emptied.try_send(batch);
        }
        self.client.finish(self.patience);
    }

    /// A message has rows of one exporter, which are next to each other.
    fn deliver(&mut self, batch: &RecordBatch, json: &mut JsonLines, payload: &mut Vec<u8>) {
        let mut lines = json.lines(batch);
        let mut row = 0;
        while row < batch.len() {
            let (from, exporter) = (row, batch.exporter[row]);
            payload.clear();
            lines.append(row..row + 1, payload);
            row += 1;
            while row < batch.len()
                && row - from < self.rows
                && batch.exporter[row] == exporter
                && payload.len() < LARGEST_MESSAGE
            {
                payload.push(b'\n');
                lines.append(row..row + 1, payload);
                row += 1;
            }
            let (key, length) = text::address(exporter);
            self.send(&key[..length], payload, row - from);
        }
    }

    /// Waits while librdkafka has no room: then the queue fills, and outlets count what is lost.
    fn send(&mut self, key: &[u8], payload: &[u8], rows: usize) {
        while let Sent::NoRoom = self.client.send(key, payload, rows) {
            if self.closing.load(Relaxed) {
                match self.patience.checked_sub(NAP) {
                    Some(left) => self.patience = left,
                    None => return self.tallies.note_unanswered(rows),
                }
            }
            std::thread::sleep(NAP);
        }
    }
}
