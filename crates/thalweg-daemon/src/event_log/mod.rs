//! The event log: events on disk, which survive a restart.
//!
//! ```text
//!   hub ──► writer ──► segments ──► query ──► GET /v1/event-log
//! ```
//!
//! **Bounds.** The log has at most [`EventLogOptions::max_size`] on disk; the oldest events are removed. Events that cannot be written in time, because the disk is
//! full for example, are counted, and the log has a line that says how many are missing.
//!
//! | file | contents |
//! |---|---|
//! | `writer` | the thread that writes |
//! | `segments` | files, and which of them are removed |
//! | `query` | reading, by type, link, collector and time |

mod query;
mod segments;
#[cfg(test)]
mod tests;
mod writer;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_api::LoggedEvents;
use thalweg_wire::Timestamp;

use crate::config::EventLogOptions;

pub use query::{ParsePositionError, Position, Query};
pub(crate) use writer::run_event_log;

/// The event log of a running daemon.
#[derive(Debug)]
pub struct EventLog {
    options: EventLogOptions,
    run: u64,
    counters: Counters,
}

/// What the log has counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventLogCounts {
    /// Events written.
    pub written: u64,
    /// Events that were not written: they were published faster than the log could be written.
    pub lost: u64,
    /// Attempts to write that failed. They are repeated.
    pub failures: u64,
}

#[derive(Debug, Default)]
struct Counters {
    written: AtomicU64,
    lost: AtomicU64,
    failures: AtomicU64,
}

impl Counters {
    fn add_written(&self, events: u64) {
        self.written.fetch_add(events, Ordering::Relaxed);
    }

    fn add_lost(&self, events: u64) {
        self.lost.fetch_add(events, Ordering::Relaxed);
    }

    fn add_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }
}

impl EventLog {
    /// The log of the run of the daemon that began at this time.
    pub fn new(options: EventLogOptions, started: Timestamp) -> EventLog {
        EventLog { options, run: started.0, counters: Counters::default() }
    }

    /// Whether events of a type are kept.
    fn keeps(&self, kind: &str) -> bool {
        self.options.types.as_ref().is_none_or(|types| types.iter().any(|kept| kept == kind))
    }

    /// Returns what has been counted.
    pub fn counts(&self) -> EventLogCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { written, lost, failures } = &self.counters;
        EventLogCounts { written: read(written), lost: read(lost), failures: read(failures) }
    }

    /// Reads events of this run and of earlier ones, the newest first.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn read(&self, query: &Query) -> io::Result<LoggedEvents> {
        let folder = &self.options.folder;
        if !folder.exists() && self.counts().written > 0 {
            let text = format!("{} was removed", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        query::read(folder, query)
    }
}
