//! Stores records: Parquet files of a few minutes each, behind a write-ahead spool.
//!
//! [`Appender`]s pass rows through a bounded queue to one thread. It writes each batch to the spool, and encodes it into
//! pages of the current Parquet file. A file is closed at the end of its time span, or when it is large enough; then its
//! spool segment is removed. After a crash, opening the store converts each remaining segment to a file, once.
//!
//! Guarantees, if [`tick`](Store::tick) is called at least every quarter of [`sync_interval`](StoreOptions::sync_interval):
//!
//! - A record appended more than `sync_interval` before a crash is in exactly one file after the next start, if the disk kept
//!   up.
//! - Every `*.parquet` file is complete, even after a power failure.
//! - Memory is bounded: [`queue_rows`](StoreOptions::queue_rows) rows of 188 bytes, two encoded row groups, and their
//!   dictionaries. Records that find no room are lost, and counted by reason.
//! - A full disk is not fatal: segments wait in the spool until there is room.
//!
//! | module | contents |
//! |---|---|
//! | [`options`] | [`StoreOptions`] |
//! | [`statistics`] | [`Statistics`], [`Lost`], [`Recovered`], [`KeptSegment`] |
//! | [`parquet`] | encodes columns as Parquet |
//! | `appender` | queues rows |
//! | `writer` | the thread: spool, files, full disks |
//! | `files` | temporary files; converts segments to files |
//! | `recovery` | recovers segments of an earlier run |
//! | `spool`, `column_codec` | segments: batches in blocks with length and checksum; encoding of the columns |
//! | `split` | separates IPv4 from other addresses |
//! | `layout` | paths and names of files |
//! | [`lookup`] | finds rows that were received at a given time |
//! | `retention` | removes old files |

mod appender;
mod column_codec;
pub(crate) mod files;
pub(crate) mod layout;
pub mod lookup;
pub mod options;
pub mod parquet;
mod recovery;
mod retention;
mod split;
mod spool;
pub mod statistics;
#[cfg(test)]
mod tests;
mod writer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::RecordBatch;
use thiserror::Error;

use crate::schema::Dataset;

pub use appender::{Appender, Commit};
pub use options::StoreOptions;
pub use statistics::{KeptSegment, Lost, Recovered, Statistics};

use appender::Message;
use writer::Writer;

/// Errors of opening a store. Later errors are retried and reported by [`Statistics`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// An option is invalid.
    #[error("invalid {name} {value}: expected {expected}")]
    Options {
        /// The option.
        name: &'static str,
        /// Its value.
        value: String,
        /// The accepted values.
        expected: &'static str,
    },
    /// Another process has a store of this name in the directory.
    #[error(
        "{}: another process writes here under this name; use another store name or directory",
        path.display()
    )]
    InUse {
        /// The lock file.
        path: PathBuf,
    },
    /// The writing thread could not be started.
    #[error("cannot start the thread that writes files: {0}")]
    Thread(io::Error),
    /// A file or directory could not be read or written.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// What failed, such as `create the directory`.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl StoreError {
    fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        move |source| StoreError::Io { operation, path: path.to_owned(), source }
    }
}

/// Why rows could not be committed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommitError {
    /// The rows are not stored: the spool has reached its maximum size, or the disk is full or fails.
    #[error("the store cannot write to its disk, or its spool is full")]
    Disk,
    /// The rows are not stored: the writer is busy, or gone.
    #[error("the store is busy")]
    Busy,
}

/// Stores the records of one dataset, by default flows.
pub struct Store<D: Dataset = RecordBatch> {
    appender: Appender<D>,
    statistics: Arc<Mutex<Statistics>>,
    thread: Option<JoinHandle<()>>,
}

impl<D: Dataset> Store<D> {
    /// Opens a store, and converts the segments of an earlier run to files.
    ///
    /// # Errors
    /// If an option is invalid, the directory cannot be created or read, or another process has a store of this name open
    /// there. A full disk is not an error: segments wait.
    pub fn open(options: StoreOptions, now: Timestamp) -> Result<(Store<D>, Recovered), StoreError> {
        options.check()?;
        let statistics = Arc::new(Mutex::new(Statistics::default()));
        let (appender, queue) = Appender::new(&options, statistics.clone());
        let (writer, recovered) = Writer::<D>::open(options, statistics.clone(), now)?;
        let thread = std::thread::Builder::new()
            .name(format!("store-{}", D::NAME))
            .spawn(move || writer.run(queue))
            .map_err(StoreError::Thread)?;
        Ok((Store { appender, statistics, thread: Some(thread) }, recovered))
    }

    /// Returns an appender for another thread. Drop it before calling [`finish`](Store::finish).
    pub fn appender(&self) -> Appender<D> {
        self.appender.new_appender()
    }

    /// Queues rows without blocking. Rows that find a full queue are lost and counted.
    pub fn append(&mut self, batch: &D, now: Timestamp) {
        self.appender.append(batch, now);
    }

    /// Writes rows to the disk as a whole, as [`Appender::commit`].
    ///
    /// # Errors
    /// If there is no room in the queue.
    ///
    /// # Panics
    /// As [`Appender::commit`].
    pub fn commit(&mut self, batch: D, now: Timestamp, timeout: Duration) -> Result<Commit, CommitError> {
        self.appender.commit(batch, now, timeout)
    }

    /// Does periodic work. Call it at least every quarter of the sync interval.
    pub fn tick(&mut self, now: Timestamp) {
        self.appender.tick(now);
    }

    /// Waits until all rows are in files, as far as the disk has room, and returns the final counters. The rest stays in the
    /// spool for the next run. Further calls only return the counters.
    pub fn finish(&mut self, now: Timestamp) -> Statistics {
        if let Some(thread) = self.thread.take() {
            self.appender.send_last(now, Message::Finish(now));
            if thread.join().is_err() {
                self.record_error("the store's thread panicked");
            }
        }
        self.statistics()
    }

    /// Returns the current counters. Rows of other appenders since their last `tick` may be missing.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.statistics.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.appender.add_to(&mut statistics);
        statistics
    }

    fn record_error(&self, error: &str) {
        let mut statistics = self.statistics.lock().unwrap_or_else(PoisonError::into_inner);
        statistics.errors += 1;
        statistics.last_error = Some(error.to_owned());
    }
}

impl<D: Dataset> Drop for Store<D> {
    /// Stops without [`finish`](Store::finish): rows stay in the spool.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.appender.send_last(self.appender.since(), Message::Stop);
            let _ = thread.join();
        }
    }
}
