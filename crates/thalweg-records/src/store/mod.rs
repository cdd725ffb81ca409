//! Where records are kept: Parquet files by hour, behind a write-ahead spool.
//!
//! Rows go from [`Appender`]s through a bounded queue to one thread, which writes each batch to the spool, and encodes it
//! into pages of the Parquet file that is being written. A file is closed when its span of time is over, or when it is
//! large enough; then its segment of the spool is removed. What a crash leaves is segments: opening the store turns each
//! into a file, once.
//!
//! Guarantees, with [`tick`](Store::tick) called at least every quarter of [`loss_bound`](StoreOptions::loss_bound):
//!
//! - A record appended more than `loss_bound` before a crash is in a file after the next start, if the disk kept up; no record
//!   is in two.
//! - Whatever is named `*.parquet` is complete, now and after a power failure.
//! - Memory is at most [`queue_rows`](StoreOptions::queue_rows) rows of 146 bytes, two row groups encoded, and their
//!   dictionaries. What does not find room is lost, and counted by reason.
//! - A full disk is no end: segments wait in the spool until there is room, and their records are counted until then.
//!
//! | module | what it has |
//! |---|---|
//! | [`options`] | [`StoreOptions`] |
//! | [`statistics`] | [`Statistics`], [`Lost`], [`Recovered`] |
//! | [`parquet`] | columns to Parquet files |
//! | `appender` | rows to the queue |
//! | `writer` | the thread: spool, files, what to do when the disk is full |
//! | `files` | files while they are not to be seen; segments to files |
//! | `recovery` | what an earlier run has left |
//! | `spool` | segments: batches in frames with length and checksum |
//! | `split` | addresses with IPv4 apart |
//! | `layout` | where files are and how they are named |
//! | `retention` | which files go |

mod appender;
mod files;
mod layout;
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

use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::RecordBatch;
use thiserror::Error;

use crate::schema::Dataset;

pub use appender::Appender;
pub use options::StoreOptions;
pub use statistics::{Lost, Recovered, Statistics};

use appender::Message;
use writer::Writer;

/// What goes wrong when a store is opened or closed. What goes wrong between is retried, and told by [`Statistics`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// An option has a value that means nothing.
    #[error("the store's options: {what}")]
    Options {
        /// The option, and what was expected.
        what: &'static str,
    },
    /// Another process keeps records here under the same name.
    #[error(
        "{}: another process writes here under this name; stores of one directory have different names",
        path.display()
    )]
    InUse {
        /// The lock.
        path: PathBuf,
    },
    /// A file or directory could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl StoreError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        move |source| StoreError::Io { path: path.to_owned(), source }
    }
}

/// Keeps the records of one dataset: flows, if not told otherwise.
pub struct Store<D: Dataset = RecordBatch> {
    appender: Appender<D>,
    statistics: Arc<Mutex<Statistics>>,
    thread: Option<JoinHandle<()>>,
}

impl<D: Dataset> Store<D> {
    /// Opens a store, and turns what an earlier run left in the spool into files.
    ///
    /// # Errors
    /// If the options mean nothing, the directory cannot be made or read, or another process has it open under this
    /// name. A full disk is no error here: segments wait.
    pub fn open(options: StoreOptions, now: Timestamp) -> Result<(Store<D>, Recovered), StoreError> {
        options.check()?;
        let statistics = Arc::new(Mutex::new(Statistics::default()));
        let (appender, queue) = Appender::new(&options, statistics.clone());
        let (writer, recovered) = Writer::<D>::open(options, statistics.clone(), now)?;
        let thread = std::thread::Builder::new()
            .name(format!("store-{}", D::NAME))
            .spawn(move || writer.run(queue))
            .map_err(|source| StoreError::Io { path: PathBuf::from("a thread"), source })?;
        Ok((Store { appender, statistics, thread: Some(thread) }, recovered))
    }

    /// Another way in, for another thread. It must be dropped before [`finish`](Store::finish).
    pub fn appender(&self) -> Appender<D> {
        self.appender.another()
    }

    /// Takes rows. Does not wait for the disk: what the queue has no room for is lost, and counted.
    pub fn append(&mut self, batch: &D, now: Timestamp) {
        self.appender.append(batch, now);
    }

    /// Lets time pass: what is due to be written is. To be called at least every quarter of the loss bound.
    pub fn tick(&mut self, now: Timestamp) {
        self.appender.tick(now);
    }

    /// Waits until all that was appended here is in files, as far as the disk has room, and says what became of it all.
    /// What had no room stays in the spool for the next run. Called a second time, it only says.
    pub fn finish(&mut self, now: Timestamp) -> Statistics {
        if let Some(thread) = self.thread.take() {
            self.appender.last(now, Message::Finish(now));
            if thread.join().is_err() {
                self.note("the store's thread panicked");
            }
        }
        self.statistics()
    }

    /// What became of the records so far. Of other appenders' records, those since their last `tick` may be missing.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.statistics.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.appender.add_to(&mut statistics);
        statistics
    }

    fn note(&self, error: &str) {
        let mut statistics = self.statistics.lock().unwrap_or_else(PoisonError::into_inner);
        statistics.errors += 1;
        statistics.last_error = Some(error.to_owned());
    }
}

impl<D: Dataset> Drop for Store<D> {
    /// A store that is dropped without [`finish`](Store::finish) leaves what it has in the spool.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.appender.last(self.appender.since(), Message::Leave);
            let _ = thread.join();
        }
    }
}
