//! Rows to the queue.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use thalweg_wire::{Nanos, Timestamp};

use crate::schema::Dataset;

use super::parquet::PAGE_ROWS;
use super::{Statistics, StoreOptions};

/// How long who can wait does so for a writer: several times as long as the end of a row group takes it. One that has not
/// taken a batch by then is held up by the disk.
const ROOM_WITHIN: Duration = Duration::from_secs(1);

/// Puts rows into a store's queue; one for each thread that has some.
pub struct Appender<D: Dataset> {
    /// Rows that are not in the queue yet.
    filling: D,
    /// When the first of them came.
    since: Timestamp,
    /// How long they may wait for more.
    patience: Nanos,
    /// Whether to wait for room, for a while.
    waits: bool,
    /// Whether that was in vain the last time.
    stalled: bool,
    queue: Sender<Message<D>>,
    emptied: Receiver<D>,
    statistics: Arc<Mutex<Statistics>>,
}

/// What goes through the queue.
pub(super) enum Message<D> {
    /// Rows.
    Rows(D, Timestamp),
    /// Time passes.
    Tick(Timestamp),
    /// All that there is to be written.
    Finish(Timestamp),
    /// All is to be left as it is.
    Leave,
}

/// The writer's end.
pub(super) struct Queue<D> {
    pub(super) messages: Receiver<Message<D>>,
    /// Takes emptied batches back, so that their memory is used again.
    pub(super) emptied: Sender<D>,
}

/// Whether `span` is over since `then`. A clock that was set back is no reason to wait.
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
            patience: Nanos(options.loss_bound.0 / 4),
            waits: false,
            stalled: false,
            queue: sender,
            emptied,
            statistics,
        };
        (appender, Queue { messages, emptied: emptied_sender })
    }

    pub(super) fn another(&self) -> Appender<D> {
        Appender {
            filling: D::default(),
            since: Timestamp::default(),
            patience: self.patience,
            waits: self.waits,
            stalled: false,
            queue: self.queue.clone(),
            emptied: self.emptied.clone(),
            statistics: self.statistics.clone(),
        }
    }

    /// One that waits for a writer that is behind, as long as that goes on: for whoever has a buffer of its own, such as a
    /// socket's, for what comes meanwhile.
    pub(crate) fn waiting(mut self) -> Appender<D> {
        self.waits = true;
        self
    }

    /// Takes rows. Does not wait for the disk, or only as `waiting` says: what the queue has no room
    /// for is lost, and counted.
    pub fn append(&mut self, batch: &D, now: Timestamp) {
        let mut from = 0;
        while from < batch.rows() {
            if self.filling.rows() == PAGE_ROWS && !self.send(now, self.room_within()) {
                return self.lose(batch.rows() - from);
            }
            if self.filling.rows() == 0 {
                self.since = now;
            }
            let to = batch.rows().min(from + PAGE_ROWS - self.filling.rows());
            self.filling.append_rows(batch, from..to);
            from = to;
        }
        if self.filling.rows() == PAGE_ROWS {
            // If there is no room now, there may be when the next rows come.
            self.send(now, self.room_within());
        }
    }

    /// Lets time pass: rows do not wait for more of them for longer than a quarter of the loss bound. Does not wait itself.
    pub fn tick(&mut self, now: Timestamp) {
        if self.filling.rows() > 0 && is_due(self.since, self.patience, now) {
            self.send(now, Duration::ZERO);
        }
        // What is in the queue tells the time as well; a writer that is late is not to be filled up with ticks.
        if self.queue.is_empty() {
            let _ = self.queue.try_send(Message::Tick(now));
        }
    }

    /// Sends what there is, and then a last message. Waits for room in the queue; a writer that is gone takes nothing.
    pub(super) fn last(&mut self, now: Timestamp, message: Message<D>) {
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

    /// When the first of the rows that wait came.
    pub(super) fn since(&self) -> Timestamp {
        self.since
    }

    /// Counts rows that are not in the queue yet.
    pub(super) fn add_to(&self, statistics: &mut Statistics) {
        statistics.records += self.filling.rows() as u64;
        statistics.queued += self.filling.rows() as u64;
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// How long to wait for room in the queue.
    fn room_within(&self) -> Duration {
        match self.waits && !self.stalled {
            true => ROOM_WITHIN,
            false => Duration::ZERO,
        }
    }

    /// Sends the rows, if the queue has room, or has it in time.
    fn send(&mut self, now: Timestamp, room_within: Duration) -> bool {
        if self.queue.is_full() && room_within.is_zero() {
            return false;
        }
        let empty = self.emptied.try_recv().unwrap_or_default();
        let rows = std::mem::replace(&mut self.filling, empty);
        self.count(rows.rows());
        match self.queue.send_timeout(Message::Rows(rows, now), room_within) {
            Ok(()) => {
                self.stalled = false;
                true
            }
            Err(refused) => {
                self.stalled |= !room_within.is_zero();
                // Or another appender was faster.
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

    fn lose(&self, rows: usize) {
        let mut statistics = self.statistics.lock().unwrap_or_else(PoisonError::into_inner);
        statistics.records += rows as u64;
        statistics.lost.queue_full += rows as u64;
    }
}

impl<D: Dataset> Drop for Appender<D> {
    /// What was appended is not lost with who appended it: waits for room in the queue.
    fn drop(&mut self) {
        self.send_rest(self.since);
    }
}
