//! The delivery thread: converts rows to messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use thalweg_wire::flow_export::RecordBatch;

use super::client::{Client, Sent};
use super::counters::Counters;
use super::json_lines::JsonLines;
use super::row_sender::{BATCH_ROWS, RowSender};
use super::{KafkaError, KafkaOptions, Statistics};
use crate::store::parquet::text;

/// Interval of retries while librdkafka's buffer is full.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Minimum queue length: a batch for each of a few receivers, and the one being sent.
const MIN_BATCHES: usize = 4;

/// A message is closed by the row that makes it larger. By default, brokers accept 1 MiB.
const MAX_MESSAGE_BYTES: usize = 512 << 10;

/// A Kafka producer and its delivery thread.
pub struct Kafka {
    /// Kept for further senders; dropped to stop the thread.
    queue: Option<Sender<RecordBatch>>,
    emptied: Receiver<RecordBatch>,
    counters: Arc<Counters>,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Kafka {
    /// Starts the client and the thread. Does not wait for brokers.
    ///
    /// # Errors
    /// If a setting is invalid or its file cannot be read.
    pub fn start(options: &KafkaOptions) -> Result<Kafka, KafkaError> {
        let batches = options.queue_rows.div_ceil(BATCH_ROWS).max(MIN_BATCHES);
        let (sender, queue) = bounded(batches);
        let (emptied_sender, emptied) = bounded(batches);
        let (counters, closing) = (Arc::<Counters>::default(), Arc::<AtomicBool>::default());
        let delivery = Delivery {
            client: Client::new(options, counters.clone())?,
            records_per_message: options.records_per_message.get(),
            queue,
            emptied: emptied_sender,
            counters: counters.clone(),
            closing: closing.clone(),
            timeout: options.close_timeout,
        };
        let thread = std::thread::Builder::new().name("kafka".to_owned());
        let thread = thread.spawn(move || delivery.run()).map_err(KafkaError::Thread)?;
        Ok(Kafka { queue: Some(sender), emptied, counters, closing, thread: Some(thread) })
    }

    /// Returns a sender for one thread. Drop it before calling [`finish`](Kafka::finish).
    ///
    /// # Panics
    /// If called after [`finish`](Kafka::finish).
    pub fn sender(&self) -> RowSender {
        let queue = self.queue.clone().expect("senders are created before finish");
        RowSender::new(queue, self.emptied.clone(), self.counters.clone())
    }

    /// Returns whether the queue has room for two batches. For sources that can wait.
    pub fn has_room(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.len() + 2 <= queue.capacity().unwrap_or(usize::MAX))
    }

    /// Returns the current counters.
    pub fn statistics(&self) -> Statistics {
        self.counters.statistics()
    }

    /// Delivers the remaining rows, at most for the configured timeout, and returns the final counters. Further calls only
    /// return the counters.
    pub fn finish(&mut self) -> Statistics {
        self.closing.store(true, Relaxed);
        self.queue = None;
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            self.counters.set_last_error("the Kafka thread panicked".to_owned());
        }
        self.statistics()
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        self.finish();
    }
}

/// State of the delivery thread.
struct Delivery {
    client: Client,
    records_per_message: usize,
    queue: Receiver<RecordBatch>,
    emptied: Sender<RecordBatch>,
    counters: Arc<Counters>,
    closing: Arc<AtomicBool>,
    /// Remaining time that shutdown may take.
    timeout: Duration,
}

impl Delivery {
    /// Runs until all senders are dropped and the queue is empty.
    fn run(mut self) {
        let mut json = JsonLines::new::<RecordBatch>();
        let mut payload = Vec::new();
        while let Ok(mut batch) = self.queue.recv() {
            self.deliver(&batch, &mut json, &mut payload);
            batch.clear();
            let _ = self.emptied.try_send(batch);
        }
        self.client.finish(self.timeout);
    }

    /// Sends the rows of a batch. A message has consecutive rows of one exporter.
    fn deliver(&mut self, batch: &RecordBatch, json: &mut JsonLines, payload: &mut Vec<u8>) {
        let mut lines = json.lines(batch);
        let mut row = 0;
        while row < batch.len() {
            let (from, exporter) = (row, batch.exporter[row]);
            payload.clear();
            lines.append(row..row + 1, payload);
            row += 1;
            while row < batch.len()
                && row - from < self.records_per_message
                && batch.exporter[row] == exporter
                && payload.len() < MAX_MESSAGE_BYTES
            {
                payload.push(b'\n');
                lines.append(row..row + 1, payload);
                row += 1;
            }
            let (key, length) = text::address(exporter);
            self.send(&key[..length], payload, row - from);
        }
    }

    /// Sends a message; waits while librdkafka's buffer is full. Meanwhile the queue fills, and senders count losses.
    fn send(&mut self, key: &[u8], payload: &[u8], rows: usize) {
        while let Sent::QueueFull = self.client.send(key, payload, rows) {
            if self.closing.load(Relaxed) {
                match self.timeout.checked_sub(POLL_INTERVAL) {
                    Some(left) => self.timeout = left,
                    None => return self.counters.count_unanswered(rows),
                }
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}
