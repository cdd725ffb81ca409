//! Queries of the flow records that the daemon stores (`records.folder`).
//!
//! One query runs at a time, on one thread and in bounded memory, so that collectors are hardly disturbed. A query has a deadline:
//! if a time range has more records than can be read until then, or more groups than fit in memory, the answer covers the latest of them,
//! and says so.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use thalweg_measure::filter::FlowFilter;
use thalweg_records::analyse::AnalyseError;
use thalweg_records::handoff::HandoffStatus;
use thalweg_records::read::ReadError;
use thalweg_records::select::{Query, SelectError, Selection};
use thalweg_records::top::TopError;
use thiserror::Error;

/// Maximum number of records that a query reads.
const MAX_RECORDS: u64 = 10_000_000;

/// Memory limit of an analysis in bytes.
pub const MEMORY_BYTES: u64 = 256 << 20;

/// Maximum duration of a query, waiting included.
const MAX_TIME: Duration = Duration::from_secs(15);

/// Maximum number of queries that wait for another.
const MAX_WAITING: usize = 4;

/// Share of the remaining time after which a query starts again with fewer records.
const FIRST_ATTEMPT: f64 = 0.6;

/// Share of the remaining time after which no more files are opened.
const LISTING: f64 = 0.25;

/// Share of the records that can be read in time which the second attempt reads.
const SECOND_ATTEMPT: f64 = 0.6;

/// The stored flow records.
#[derive(Debug)]
pub struct RecordStore {
    folder: PathBuf,
    /// Counters of the store, if this daemon writes flow records into it.
    status: Option<Arc<HandoffStatus>>,
    max_records: u64,
    max_time: Duration,
    /// A channel with one permit, which the running query holds.
    permits: (Sender<()>, Receiver<()>),
    waiting: AtomicUsize,
}

/// Which records to read: those received in a time range that match a filter.
#[derive(Clone, Debug, Default)]
pub struct RecordRange {
    /// Start of the time range, in microseconds since 1970 (UTC).
    pub start_us: i64,
    /// End of the time range, exclusive.
    pub end_us: i64,
    /// The filter, compiled for [`thalweg_measure::filter::RECORDS`].
    pub filter: FlowFilter,
}

/// Why records cannot be analysed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum QueryError {
    /// Too many queries are running.
    #[error("other queries of flow records are running: retry later")]
    Busy,
    /// Not even a part can be read in time.
    #[error("no answer within {0:?}: use a shorter time range, or `thalweg flows`")]
    Slow(Duration),
    /// The groups do not fit in memory.
    #[error("{0}: use a shorter time range, a filter or another key, or `thalweg flows`")]
    Memory(String),
    /// Anything else.
    #[error("cannot read flow records: {0}")]
    Failed(String),
}

/// Why an analysis of selected records ended.
#[derive(Debug)]
pub enum Stopped {
    /// A file cannot be read.
    Read(ReadError),
    /// Its time is over.
    Interrupted,
    /// Another error.
    Failed(QueryError),
}

impl From<TopError> for Stopped {
    fn from(error: TopError) -> Stopped {
        match error {
            TopError::Read(error) => Stopped::Read(error),
            TopError::Interrupted => Stopped::Interrupted,
            TopError::Memory { .. } => Stopped::Failed(QueryError::Memory(error.to_string())),
            error => Stopped::Failed(QueryError::Failed(error.to_string())),
        }
    }
}

impl From<AnalyseError> for Stopped {
    fn from(error: AnalyseError) -> Stopped {
        match error {
            AnalyseError::Read(error) => Stopped::Read(error),
            AnalyseError::Interrupted => Stopped::Interrupted,
            error => Stopped::Failed(QueryError::Failed(error.to_string())),
        }
    }
}

/// Called with the steps done and the total; returns whether to continue.
pub type Progress<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

impl RecordStore {
    /// Creates access to the store in a folder. A query ends within `request_timeout`.
    pub fn new(
        folder: PathBuf,
        status: Option<Arc<HandoffStatus>>,
        request_timeout: Duration,
    ) -> RecordStore {
        let (sender, receiver) = bounded(1);
        sender.send(()).expect("the channel has room for the permit");
        let max_time = MAX_TIME.min(request_timeout.mul_f64(0.8));
        let (permits, waiting) = ((sender, receiver), AtomicUsize::new(0));
        RecordStore { folder, status, max_records: MAX_RECORDS, max_time, permits, waiting }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// Returns the number of records that were received and are not in a file yet.
    pub fn pending_records(&self) -> u64 {
        let store = self.status.as_ref().and_then(|status| status.store());
        store.map_or(0, |store| store.queued + store.in_spool)
    }

    /// Runs an analysis of selected records. It may be called again, with fewer records or without files that cannot be read.
    ///
    /// # Errors
    /// If other queries are running, the records cannot be read in time, or the analysis fails.
    pub fn query<T>(
        &self,
        range: &RecordRange,
        mut analysis: impl FnMut(&Selection, &mut Progress<'_>) -> Result<T, Stopped>,
    ) -> Result<(T, Selection), QueryError> {
        let deadline = Instant::now() + self.max_time;
        let _permit = self.permit(Instant::now() + self.max_time / 2)?;
        let began = Instant::now();
        let left = deadline.saturating_duration_since(began);
        let mut attempt = Attempt {
            max_records: self.max_records,
            began,
            listed_until: began + left.mul_f64(LISTING),
            until: began + left.mul_f64(FIRST_ATTEMPT),
            read: 0.0,
            rows: 0,
        };
        let mut was_slow = false;
        loop {
            let stopped = match attempt.run(self, range, &mut analysis) {
                Ok(done) => return Ok(done),
                Err(stopped) => stopped,
            };
            let now = Instant::now();
            let left = deadline.saturating_duration_since(now);
            let max_records = match stopped {
                Stopped::Interrupted if was_slow || left.is_zero() => {
                    return Err(QueryError::Slow(self.max_time));
                }
                Stopped::Interrupted => {
                    was_slow = true;
                    // As fast as the attempt before.
                    let pace = attempt.read / (now - attempt.began).as_secs_f64().max(1e-3);
                    (pace * left.as_secs_f64() * SECOND_ATTEMPT) as u64
                }
                // Fewer records have fewer groups.
                Stopped::Failed(QueryError::Memory(_)) if attempt.max_records > 1 && !left.is_zero() => {
                    attempt.rows.min(attempt.max_records) / 2
                }
                Stopped::Failed(error) => return Err(error),
                Stopped::Read(error) => return Err(QueryError::Failed(error.to_string())),
            };
            let until = if was_slow { deadline } else { attempt.until };
            let listed_until = now + left.mul_f64(LISTING);
            attempt = Attempt { max_records, began: now, listed_until, until, read: 0.0, rows: 0 };
        }
    }

    fn permit(&self, until: Instant) -> Result<Permit<'_>, QueryError> {
        let (sender, receiver) = &self.permits;
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(QueryError::Busy);
        }
        let permit = receiver.recv_deadline(until);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        permit.map(|()| Permit(sender)).map_err(|_| QueryError::Busy)
    }
}

/// The permit of the running query.
struct Permit<'a>(&'a Sender<()>);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        // The channel has room, because this was taken from it.
        let _ = self.0.try_send(());
    }
}

/// An attempt to answer a query in time.
struct Attempt {
    max_records: u64,
    began: Instant,
    listed_until: Instant,
    until: Instant,
    /// Records that were read and analysed.
    read: f64,
    /// Records that were selected from.
    rows: u64,
}

impl Attempt {
    fn run<T>(
        &mut self,
        store: &RecordStore,
        range: &RecordRange,
        analysis: &mut impl FnMut(&Selection, &mut Progress<'_>) -> Result<T, Stopped>,
    ) -> Result<(T, Selection), Stopped> {
        let &RecordRange { start_us, end_us, ref filter } = range;
        let (directory, filter, max_rows) = (store.folder.clone(), filter.clone(), self.max_records);
        let query = Query { directory, start_us, end_us, filter, max_rows };
        let (until, listed_until) = (self.until, self.listed_until);
        let go_on = |until: Instant| match Instant::now() < until {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let selected = Selection::new(&query, &mut |rows| {
            // Half of the work is left.
            self.read = rows as f64 / 2.0;
            go_on(if rows == 0 { listed_until } else { until })
        });
        let mut selection = selected.map_err(|error| match error {
            SelectError::Interrupted => Stopped::Interrupted,
            error => Stopped::Failed(QueryError::Failed(error.to_string())),
        })?;
        let selecting = self.began.elapsed();
        self.rows = selection.rows();
        loop {
            let (rows, began) = (selection.rows() as f64, Instant::now());
            let mut progress = |done: u64, all: u64| {
                let share = done as f64 / all.max(1) as f64;
                // The time of the selection is in proportion to all rows.
                let whole = selecting.as_secs_f64() + began.elapsed().as_secs_f64() / share.max(1e-6);
                self.read = rows * (self.began.elapsed().as_secs_f64() / whole.max(1e-9)).min(1.0);
                go_on(until)
            };
            match analysis(&selection, &mut progress) {
                Ok(done) => return Ok((done, selection)),
                Err(Stopped::Read(error)) if selection.leave_out_file(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests;
