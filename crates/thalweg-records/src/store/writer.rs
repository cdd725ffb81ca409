//! The writer thread: writes each batch to the spool, and to the file of its time span.
//!
//! Rows whose block cannot be written to the spool are lost, so files never have rows that segments lack. If a file
//! cannot be written, it is discarded, and converted from its segment later, when there may be room. This happens one
//! block per incoming batch, so that new rows are not delayed for long.

use std::collections::VecDeque;
use std::fs::{self, File, TryLockError};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::TryRecvError;
use thalweg_wire::{Nanos, Timestamp};

use crate::locked_file::LockedFile;
use crate::schema::Dataset;

use super::appender::{Message, Queue, is_due};
use super::files::{Conversion, Paths, Published, Unpublished};
use super::layout::Stem;
use super::parquet::sync_directory;
use super::recovery::{PendingSegment, recover};
use super::spool::Segment;
use super::statistics::{Recovered, Statistics};
use super::{CommitError, StoreError, StoreOptions, retention};

/// Maximum number of open files: with several receiving threads, the last rows of a span arrive after the first of the
/// next.
const MAX_OPEN: usize = 2;

/// How long a file stays open for late rows after the end of its span.
const LATE_ROWS: Nanos = Nanos::from_secs(2);

/// Interval between attempts to convert a segment after a failure.
const RETRY_INTERVAL: Nanos = Nanos::from_secs(5);

/// Interval between checks of retention.
const RETENTION_INTERVAL: Nanos = Nanos::from_secs(60);

/// Writes queued rows.
pub(super) struct Writer<D: Dataset> {
    options: StoreOptions,
    paths: Paths,
    statistics: Arc<Mutex<Statistics>>,
    /// Sequence number of the next segment.
    sequence: u64,
    /// Open files, oldest first.
    open: Vec<Open<D>>,
    /// Segments whose files could not be written yet, oldest first.
    pending: VecDeque<PendingSegment>,
    /// Conversion of the first of these.
    conversion: Option<Conversion<D>>,
    /// The file published last; retention never removes it.
    newest: Option<PathBuf>,
    /// The current time, as of the last message.
    now: Timestamp,
    synced: Timestamp,
    failed: Option<Timestamp>,
    retained: Timestamp,
    _lock: LockedFile,
}

/// A segment and the file of its rows.
struct Open<D: Dataset> {
    stem: Stem,
    /// Span of reception times, microseconds since 1970.
    span: Range<i64>,
    segment: Segment,
    /// None after a failed write.
    file: Option<Unpublished<D>>,
    /// Time of the last rows.
    last: Timestamp,
}

/// Why rows are not in the spool.
enum NotStored {
    /// It has reached its maximum size.
    SpoolFull,
    /// It cannot be written.
    SpoolFailed,
}

impl<D: Dataset> Writer<D> {
    pub(super) fn open(
        options: StoreOptions,
        statistics: Arc<Mutex<Statistics>>,
        now: Timestamp,
    ) -> Result<(Writer<D>, Recovered), StoreError> {
        let paths = Paths::new::<D>(&options);
        for directory in [&paths.dataset, &paths.spool] {
            fs::create_dir_all(directory).map_err(StoreError::io("create the directory", directory))?;
        }
        let lock = lock(&paths.spool)?;
        let found = recover::<D>(&paths, &options.name)?;
        let writer = Writer {
            options,
            paths,
            statistics,
            sequence: found.sequence,
            open: Vec::new(),
            pending: found.pending,
            conversion: None,
            newest: None,
            now,
            synced: now,
            failed: None,
            retained: now,
            _lock: lock,
        };
        let mut statistics = writer.statistics();
        let pending: u64 = writer.pending.iter().map(|pending| pending.rows).sum();
        statistics.recovered = found.recovered.records + pending;
        statistics.in_spool = pending;
        statistics.spool_bytes = writer.pending.iter().map(|pending| pending.bytes).sum();
        statistics.pending_segments = writer.pending.len() as u64;
        statistics.kept_segments = found.recovered.kept.len() as u64;
        statistics.written = found.recovered.records;
        statistics.files = found.recovered.files;
        statistics.bytes = found.bytes;
        statistics.saturated = found.saturated;
        statistics.errors = u64::from(found.error.is_some());
        statistics.last_error = found.error;
        drop(statistics);
        Ok((writer, found.recovered))
    }

    /// Processes messages until told to finish or stop.
    pub(super) fn run(mut self, queue: Queue<D>) {
        loop {
            let message = match queue.messages.try_recv() {
                Err(TryRecvError::Empty) if self.conversion.is_some() => {
                    self.convert_step();
                    continue;
                }
                Err(TryRecvError::Empty) => queue.messages.recv().ok(),
                other => other.ok(),
            };
            match message {
                Some(Message::Rows(mut rows, now)) => {
                    self.now = now;
                    self.rows(&rows);
                    self.do_due_work();
                    rows.truncate_rows(0);
                    let _ = queue.emptied.try_send(rows);
                }
                Some(Message::Commit(rows, now, answer)) => {
                    self.now = now;
                    let _ = answer.send(self.commit(&rows));
                    self.do_due_work();
                }
                Some(Message::Tick(now)) => {
                    self.now = now;
                    self.do_due_work();
                }
                Some(Message::Finish(now)) => {
                    self.now = now;
                    return self.finish();
                }
                Some(Message::Stop) | None => return self.stop(),
            }
        }
    }

    /// Writes rows of one time of reception, and flushes them to the disk.
    fn commit(&mut self, batch: &D) -> Result<(), CommitError> {
        let Some(&received) = batch.received_us().first() else { return Ok(()) };
        let rows = batch.rows() as u64;
        self.store(self.span(received), batch, Segment::append_durably).map_err(|_| {
            self.settle(rows, |statistics| statistics.records -= rows);
            CommitError::Disk
        })
    }

    /// Writes a batch, each row to the file of its time span. Losses are counted.
    fn rows(&mut self, batch: &D) {
        let received = batch.received_us();
        let mut from = 0;
        while let Some(&first) = received.get(from) {
            let span = self.span(first);
            let run = received[from..].iter().take_while(|received| span.contains(received)).count();
            // The last microsecond of i64 is in no span.
            let run = run.max(1);
            let stored = if run == batch.rows() {
                self.store(span, batch, Segment::append)
            } else {
                let mut part = D::default();
                part.append_rows(batch, from..from + run);
                self.store(span, &part, Segment::append)
            };
            let rows = run as u64;
            match stored {
                Ok(()) => {}
                Err(NotStored::SpoolFull) => {
                    self.settle(rows, |statistics| statistics.lost.spool_full += rows);
                }
                Err(NotStored::SpoolFailed) => {
                    self.settle(rows, |statistics| statistics.lost.spool_failed += rows);
                }
            }
            from += run;
        }
    }

    /// Returns the time span that contains an instant.
    fn span(&self, received_us: i64) -> Range<i64> {
        let length = (self.options.file_span.0 / 1000).max(1) as i64;
        let begin = received_us.div_euclid(length).saturating_mul(length);
        match begin.checked_add(length) {
            Some(end) => begin..end,
            None => i64::MIN..i64::MAX,
        }
    }

    /// Writes rows of one span: first to the spool by `append`, then to the file.
    fn store(
        &mut self,
        span: Range<i64>,
        batch: &D,
        append: fn(&mut Segment, &D) -> io::Result<()>,
    ) -> Result<(), NotStored> {
        let rows = batch.rows() as u64;
        if self.statistics().spool_bytes >= self.options.spool_bytes {
            return Err(NotStored::SpoolFull);
        }
        let number = match self.open_for(&span) {
            Ok(number) => number,
            Err((path, error)) => {
                self.record_error(&path, &error);
                return Err(NotStored::SpoolFailed);
            }
        };
        let open = &mut self.open[number];
        let before = open.segment.bytes();
        if let Err(error) = append(&mut open.segment, batch) {
            let path = self.paths.segment(&open.stem);
            self.record_error(&path, &error);
            return Err(NotStored::SpoolFailed);
        }
        open.last = self.now;
        let grown = open.segment.bytes() - before;
        let mut failure = None;
        let mut bytes = 0;
        if let Some(file) = &mut open.file {
            failure = file.writer().push(batch).err();
            bytes = file.writer().bytes();
        }
        let is_large = open.segment.rows() >= self.options.file_rows || bytes >= self.options.file_bytes;
        if let Some(error) = failure {
            open.file = None;
            let path = self.paths.file(&open.stem);
            self.record_error(&path, &error);
        }
        self.settle(rows, |statistics| {
            statistics.in_spool += rows;
            statistics.spool_bytes += grown;
        });
        if is_large {
            self.close(number);
        }
        Ok(())
    }

    /// Returns the index of the open file of a span, and opens it if needed. At the limit, closes the least recently used.
    fn open_for(&mut self, span: &Range<i64>) -> Result<usize, (PathBuf, io::Error)> {
        if let Some(number) = self.open.iter().position(|open| open.span == *span) {
            return Ok(number);
        }
        if self.open.len() == MAX_OPEN {
            let oldest = (0..MAX_OPEN).min_by_key(|&number| self.open[number].last).unwrap_or(0);
            self.close(oldest);
        }
        let stem = Stem::new(&self.options.name, span.start, self.sequence);
        let path = self.paths.segment(&stem);
        let segment = Segment::create::<D>(&path)
            .and_then(|segment| sync_directory(&self.paths.spool).map(|()| segment))
            .map_err(|error| (path, error))?;
        self.sequence += 1;
        self.statistics().spool_bytes += segment.bytes();
        let file = Unpublished::create(&self.paths, &stem);
        let file = file.map_err(|error| self.record_error(&self.paths.file(&stem), &error)).ok();
        self.open.push(Open { stem, span: span.clone(), segment, file, last: self.now });
        Ok(self.open.len() - 1)
    }

    /// Completes a file. On failure, its segment is converted later.
    fn close(&mut self, number: usize) {
        let Open { stem, mut segment, file, .. } = self.open.remove(number);
        let path = self.paths.file(&stem);
        match file.map(Unpublished::publish) {
            Some(Ok(published)) => {
                self.count_published(published, segment.rows(), segment.bytes());
                self.remove_segment(&stem);
            }
            Some(Err(error)) => {
                self.record_error(&path, &error);
                self.defer(stem, &mut segment);
            }
            None => self.defer(stem, &mut segment),
        }
    }

    fn defer(&mut self, stem: Stem, segment: &mut Segment) {
        if let Err(error) = segment.sync() {
            let path = self.paths.segment(&stem);
            self.record_error(&path, &error);
        }
        self.pending.push_back(PendingSegment { stem, rows: segment.rows(), bytes: segment.bytes() });
        self.statistics().pending_segments = self.pending.len() as u64;
        self.failed = Some(self.now);
    }

    /// Counts a file converted from a segment of `rows` and `bytes`, and applies retention.
    fn count_published(&mut self, published: Published, rows: u64, bytes: u64) {
        let mut statistics = self.statistics();
        statistics.in_spool = statistics.in_spool.saturating_sub(rows);
        statistics.spool_bytes = statistics.spool_bytes.saturating_sub(bytes);
        statistics.written += published.rows;
        statistics.files += 1;
        statistics.bytes += published.bytes;
        statistics.saturated += published.saturated;
        statistics.lost.spool_damaged += rows.saturating_sub(published.rows);
        drop(statistics);
        self.newest = Some(published.path);
        self.apply_retention();
    }

    fn remove_segment(&mut self, stem: &Stem) {
        let path = self.paths.segment(stem);
        if let Err(error) = fs::remove_file(&path) {
            // The next start removes it, because its file exists.
            self.record_error(&path, &error);
        }
    }

    /// Does the periodic work that is due.
    fn do_due_work(&mut self) {
        if is_due(self.synced, Nanos(self.options.sync_interval.0 / 4), self.now) {
            self.synced = self.now;
            self.sync();
        }
        let now = self.now;
        let is_finished = move |open: &Open<D>| {
            let end = Timestamp((open.span.end.max(0) as u64).saturating_mul(1000));
            now >= end + LATE_ROWS && is_due(open.last, LATE_ROWS, now)
        };
        while let Some(number) = self.open.iter().position(is_finished) {
            self.close(number);
        }
        if self.conversion.is_some() {
            self.convert_step();
        } else if !self.pending.is_empty()
            && self.failed.is_none_or(|then| is_due(then, RETRY_INTERVAL, self.now))
        {
            self.failed = Some(self.now);
            self.begin_conversion();
        }
        if is_due(self.retained, RETENTION_INTERVAL, self.now) {
            self.apply_retention();
        }
    }

    /// Flushes open segments to the disk.
    fn sync(&mut self) {
        for number in 0..self.open.len() {
            if let Err(error) = self.open[number].segment.sync() {
                let path = self.paths.segment(&self.open[number].stem);
                self.record_error(&path, &error);
            }
        }
    }

    fn apply_retention(&mut self) {
        self.retained = self.now;
        let StoreOptions { keep, keep_bytes, .. } = self.options;
        let newest = self.newest.as_deref();
        match retention::enforce(&self.paths.dataset, self.now, keep, keep_bytes, newest) {
            Ok(removed) => {
                let mut statistics = self.statistics();
                statistics.removed_files += removed.files;
                statistics.removed_bytes += removed.bytes;
            }
            Err(error) => self.record_error(&self.paths.dataset, &error),
        }
    }

    fn begin_conversion(&mut self) {
        let Some(first) = self.pending.front() else { return };
        let path = self.paths.file(&first.stem);
        if path.exists() {
            // The rename succeeded before the disk failed.
            let bytes = fs::metadata(&path).map(|metadata| metadata.len()).unwrap_or(0);
            let rows = first.rows;
            return self.converted(Published { rows, bytes, saturated: 0, path });
        }
        match Conversion::begin(&self.paths, &first.stem) {
            Ok(conversion) => self.conversion = Some(conversion),
            Err(error) => self.record_error(&path, &error),
        }
    }

    /// Converts one more block of the current segment.
    fn convert_step(&mut self) {
        let Some(mut conversion) = self.conversion.take() else { return };
        let outcome = match conversion.step() {
            Ok(true) => return self.conversion = Some(conversion),
            Ok(false) => conversion.publish(),
            Err(error) => Err(error),
        };
        match outcome {
            Ok(published) => self.converted(published),
            Err(error) => {
                // Move it to the end: maybe only this segment cannot be read.
                let Some(first) = self.pending.pop_front() else { return };
                self.record_error(&self.paths.file(&first.stem), &error);
                self.pending.push_back(first);
            }
        }
    }

    /// Finishes the first pending segment, and starts with the next.
    fn converted(&mut self, published: Published) {
        let Some(PendingSegment { stem, rows, bytes }) = self.pending.pop_front() else { return };
        self.count_published(published, rows, bytes);
        self.remove_segment(&stem);
        self.statistics().pending_segments = self.pending.len() as u64;
        self.begin_conversion();
    }

    fn finish(mut self) {
        while !self.open.is_empty() {
            self.close(0);
        }
        if self.conversion.is_none() {
            self.begin_conversion();
        }
        while self.conversion.is_some() {
            self.convert_step();
        }
        self.apply_retention();
    }

    /// Stops; everything stays in the spool.
    fn stop(mut self) {
        self.sync();
    }

    /// Moves rows from `queued` to another counter in one step, so that no reader sees them twice or not at all.
    fn settle(&self, rows: u64, count: impl FnOnce(&mut Statistics)) {
        let mut statistics = self.statistics();
        statistics.queued -= rows;
        count(&mut statistics);
    }

    fn statistics(&self) -> MutexGuard<'_, Statistics> {
        self.statistics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record_error(&self, path: &Path, error: &io::Error) {
        let mut statistics = self.statistics();
        statistics.errors += 1;
        statistics.last_error = Some(format!("{}: {error}", path.display()));
    }
}

/// Locks a store's spool for this process.
fn lock(spool: &Path) -> Result<LockedFile, StoreError> {
    let path = spool.join("lock");
    let file = File::create(&path).map_err(StoreError::io("create", &path))?;
    LockedFile::new(file).map_err(|error| match error {
        TryLockError::WouldBlock => StoreError::InUse { path },
        TryLockError::Error(source) => StoreError::io("lock", &path)(source),
    })
}

#[cfg(test)]
mod tests {
    use thalweg_wire::flow_export::{Record, RecordBatch};

    use super::super::spool::Reader;
    use super::*;

    #[test]
    fn rows_that_cannot_be_flushed_are_stored_by_the_next_commit_only() {
        let directory = tempfile::tempdir().unwrap();
        let statistics = Arc::new(Mutex::new(Statistics::default()));
        let options = StoreOptions::new(directory.path());
        let now = Timestamp(1_795_355_999_000_000_000);
        let (mut writer, _) = Writer::<RecordBatch>::open(options, statistics.clone(), now).unwrap();
        let mut batch = RecordBatch::default();
        batch.push(&Record { received_us: (now.0 / 1_000) as i64, octets: 7, ..Record::default() });
        let commit = |writer: &mut Writer<RecordBatch>| {
            let mut statistics = statistics.lock().unwrap();
            statistics.records += 1;
            statistics.queued += 1;
            drop(statistics);
            writer.commit(&batch)
        };
        assert_eq!(commit(&mut writer), Ok(()));
        let before = (writer.open[0].segment.bytes(), writer.open[0].segment.rows());
        // Takes all bytes, but cannot be flushed.
        let null = File::options().read(true).write(true).open("/dev/null").unwrap();
        let file = writer.open[0].segment.replace_file(null);
        assert_eq!(commit(&mut writer), Err(CommitError::Disk));
        assert_eq!((writer.open[0].segment.bytes(), writer.open[0].segment.rows()), before);
        writer.open[0].segment.replace_file(file);
        assert_eq!(commit(&mut writer), Ok(()));
        let path = writer.paths.segment(&writer.open[0].stem);
        assert_eq!(Reader::contents::<RecordBatch>(&path).unwrap().unwrap().rows, 2);
        writer.finish();
        let statistics = statistics.lock().unwrap();
        assert_eq!((statistics.records, statistics.written, statistics.in_spool), (2, 2, 0));
        assert_eq!((statistics.queued, statistics.errors), (0, 1));
    }
}
