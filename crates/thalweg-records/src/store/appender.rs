//! Queues rows for the writer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use thalweg_wire::{Nanos, Timestamp};

use crate::schema::Dataset;

use super::parquet::PAGE_ROWS;
use super::{CommitError, Statistics, StoreOptions};

/// How long a blocking appender blocking for room in the queue: several times as long as the end of a row group takes. A writer
/// that takes no batch in this time is stalled by the disk.
const ROOM_TIMEOUT: Duration = Duration::from_secs(1);

/// Queues rows for a store; each thread has its own.
pub struct Appender<D: Dataset> {
    /// The batch being filled.
    filling: D,
    /// Time of its first row.
    since: Timestamp,
    /// How long rows wait for more.
    max_delay: Nanos,
    /// Whether to wait for room in the queue.
    blocking: bool,
    /// Whether the last wait timed out.
    stalled: bool,
    queue: Sender<Message<D>>,
    emptied: Receiver<D>,
    statistics: Arc<Mutex<Statistics>>,
}

/// A message to the writer.
pub(super) enum Message<D> {
    /// Rows to write.
    Rows(D, Timestamp),
    /// Rows to write to the disk at once, and where to report whether they are there.
    Commit(D, Timestamp, Sender<Result<(), CommitError>>),
    /// The current time.
    Tick(Timestamp),
    /// Write everything and stop.
    Finish(Timestamp),
    /// Stop, and leave everything in the spool.
    Stop,
}

/// The writer's end of the queue.
pub(super) struct Queue<D> {
    pub(super) messages: Receiver<Message<D>>,
    /// Returns empty batches for reuse.
    pub(super) emptied: Sender<D>,
}

/// Returns whether `span` has passed since `then`, or the clock was set back.
pub(super) fn is_due(then: Timestamp, span: Nanos, now: Timestamp) -> bool {
    now < then || now.since(then) >= span
}

impl<D: Dataset> Appender<D> {
    pub(super) fn new(options: &StoreOptions, statistics: Arc<Mutex<Statistics>>) -> (Appender<D>, Queue<D>) {
        let batches = options.queue_rows.div_ceil(PAGE_ROWS);
        let (sender, messages) = bounded(batches);
        let (emptied_sender, emptied) = bounded(batches);
        let appender = Appender {
            filling: D::default(),
            since: Timestamp::default(),
            max_delay: Nanos(options.sync_interval.0 / 4),
            blocking: false,
            stalled: false,
            queue: sender,
            emptied,
            statistics,
        };
        (appender, Queue { messages, emptied: emptied_sender })
    }

    pub(super) fn new_appender(&self) -> Appender<D> {
        Appender {
            filling: D::default(),
            since: Timestamp::default(),
            max_delay: self.max_delay,
            blocking: self.blocking,
            stalled: false,
            queue: self.queue.clone(),
            emptied: self.emptied.clone(),
            statistics: self.statistics.clone(),
        }
    }

    /// Returns an appender that blocking for a slow writer. For threads whose input is buffered meanwhile, such as by a socket.
    pub(crate) fn blocking(mut self) -> Appender<D> {
        self.blocking = true;
        self
    }

    /// Queues rows. Blocks only if `blocking`; rows that find a full queue are lost and counted.
    pub fn append(&mut self, batch: &D, now: Timestamp) {
        let mut from = 0;
        while from < batch.rows() {
            if self.filling.rows() == PAGE_ROWS && !self.send(now, self.room_timeout()) {
                return self.count_lost(batch.rows() - from);
            }
            if self.filling.rows() == 0 {
                self.since = now;
            }
            let to = batch.rows().min(from + PAGE_ROWS - self.filling.rows());
            self.filling.append_rows(batch, from..to);
            from = to;
        }
        if self.filling.rows() == PAGE_ROWS {
            // If the queue is full now, retry with the next rows.
            self.send(now, self.room_timeout());
        }
    }

    /// Writes rows to the disk as a whole: all of them will be there, or none. All must have the same time of reception. Waits at most
    /// `timeout` for room in the queue.
    ///
    /// # Errors
    /// If there is no room.
    ///
    /// # Panics
    /// If there are more than [`PAGE_ROWS`] rows.
    pub fn commit(&mut self, batch: D, now: Timestamp, timeout: Duration) -> Result<Commit, CommitError> {
        assert!(batch.rows() <= PAGE_ROWS, "a commit is one block of the spool");
        let (sender, answer) = bounded(1);
        self.count(batch.rows());
        match self.queue.send_timeout(Message::Commit(batch, now, sender), timeout) {
            Ok(()) => Ok(Commit(answer)),
            Err(refused) => {
                if let Message::Commit(batch, ..) = refused.into_inner() {
                    self.uncount(batch.rows());
                }
                Err(CommitError::Busy)
            }
        }
    }

    /// Queues a partial batch after a quarter of the sync interval. Never blocks.
    pub fn tick(&mut self, now: Timestamp) {
        if self.filling.rows() > 0 && is_due(self.since, self.max_delay, now) {
            self.send(now, Duration::ZERO);
        }
        // Queued batches carry the time too; do not fill the queue of a slow writer with ticks.
        if self.queue.is_empty() {
            let _ = self.queue.try_send(Message::Tick(now));
        }
    }

    /// Queues the partial batch and a last message. Waits for room; does nothing if the writer is gone.
    pub(super) fn send_last(&mut self, now: Timestamp, message: Message<D>) {
        self.send_rest(now);
        let _ = self.queue.send(message);
    }

    fn send_rest(&mut self, now: Timestamp) {
        if self.filling.rows() > 0 {
            let rows = std::mem::take(&mut self.filling);
            self.count(rows.rows());
            let _ = self.queue.send(Message::Rows(rows, now));
        }
    }

    /// Returns the time of the first row of the partial batch.
    pub(super) fn since(&self) -> Timestamp {
        self.since
    }

    /// Adds the rows of the partial batch.
    pub(super) fn add_to(&self, statistics: &mut Statistics) {
        statistics.records += self.filling.rows() as u64;
        statistics.queued += self.filling.rows() as u64;
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns how long to wait for room in the queue.
    fn room_timeout(&self) -> Duration {
        match self.blocking && !self.stalled {
            true => ROOM_TIMEOUT,
            false => Duration::ZERO,
        }
    }

    /// Queues the batch; returns whether there was room in time.
    fn send(&mut self, now: Timestamp, room_timeout: Duration) -> bool {
        if self.queue.is_full() && room_timeout.is_zero() {
            return false;
        }
        let empty = self.emptied.try_recv().unwrap_or_default();
        let rows = std::mem::replace(&mut self.filling, empty);
        self.count(rows.rows());
        match self.queue.send_timeout(Message::Rows(rows, now), room_timeout) {
            Ok(()) => {
                self.stalled = false;
                true
            }
            Err(refused) => {
                self.stalled |= !room_timeout.is_zero();
                // Timed out, or another appender was faster.
                if let Message::Rows(rows, _) = refused.into_inner() {
                    self.uncount(rows.rows());
                    self.filling = rows;
                }
                false
            }
        }
    }

    fn count(&self, rows: usize) {
        let mut statistics = self.statistics.lock().unwrap_or_else(PoisonError::into_inner);
        statistics.records += rows as u64;
        statistics.queued += rows as u64;
    }

    fn uncount(&self, rows: usize) {
        let mut statistics = self.statistics.lock().unwrap_or_else(PoisonError::into_inner);
        statistics.records -= rows as u64;
        statistics.queued -= rows as u64;
    }

    fn count_lost(&self, rows: usize) {
        let mut statistics = self.statistics.lock().unwrap_or_else(PoisonError::into_inner);
        statistics.records += rows as u64;
        statistics.lost.queue_full += rows as u64;
    }
}

/// Rows on their way to the disk.
#[derive(Debug)]
pub struct Commit(Receiver<Result<(), CommitError>>);

impl Commit {
    /// Waits until the rows are on the disk, for at most `timeout`; `None` if that is not known by then.
    ///
    /// # Errors
    /// If they are not stored.
    pub fn wait(&self, timeout: Duration) -> Option<Result<(), CommitError>> {
        match self.0.recv_timeout(timeout) {
            Ok(result) => Some(result),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(CommitError::Busy)),
        }
    }
}

impl<D: Dataset> Drop for Appender<D> {
    /// Queues the partial batch; blocking for room.
    fn drop(&mut self) {
        self.send_rest(self.since);
    }
}
