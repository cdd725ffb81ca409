//! The thread: every batch to the spool, and into the file of its span of time.
//!
//! A frame that the spool does not take is lost: so the files' rows are always those of the segments. A file that cannot be
//! written is given up, and made from its segment later, when there may be room: a frame with every batch that comes, so
//! that what comes is not held up for long.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::TryRecvError;
use thalweg_wire::{Nanos, Timestamp};

use crate::schema::Dataset;

use super::appender::{Message, Queue, is_due};
use super::files::{Conversion, Places, Published, Unpublished};
use super::layout::Stem;
use super::parquet::sync_directory;
use super::recovery::{Waiting, recover};
use super::spool::Segment;
use super::statistics::{Recovered, Statistics};
use super::{StoreError, StoreOptions, retention};

/// Spans of time with a file that is being written: the last rows of one come after the first of the next, when several
/// threads receive.
const OPEN: usize = 2;

/// How long a file waits for such rows.
const LATE: Nanos = Nanos::from_secs(2);

/// Between attempts to write a file, once one has failed.
const RETRY: Nanos = Nanos::from_secs(5);

/// Between looks at the age of files.
const RETENTION: Nanos = Nanos::from_secs(60);

/// Writes what comes through the queue.
pub(super) struct Writer<D: Dataset> {
    options: StoreOptions,
    places: Places,
    statistics: Arc<Mutex<Statistics>>,
    /// Number of the next segment.
    sequence: u64,
    /// Files that are being written, oldest first.
    open: Vec<Open<D>>,
    /// Segments whose files could not be written yet, oldest first.
    waiting: VecDeque<Waiting>,
    /// The first of them, on its way.
    conversion: Option<Conversion<D>>,
    /// The file published last: retention leaves it.
    newest: Option<PathBuf>,
    /// The time as told last.
    now: Timestamp,
    synced: Timestamp,
    failed: Option<Timestamp>,
    retained: Timestamp,
    _lock: File,
}

/// A segment, and the file that its rows go to.
struct Open<D: Dataset> {
    stem: Stem,
    /// Received from when to when, microseconds since 1970.
    span: Range<i64>,
    segment: Segment,
    /// None once it could not be written.
    file: Option<Unpublished<D>>,
    /// When rows came last.
    last: Timestamp,
}

impl<D: Dataset> Writer<D> {
    pub(super) fn open(
        options: StoreOptions,
        statistics: Arc<Mutex<Statistics>>,
        now: Timestamp,
    ) -> Result<(Writer<D>, Recovered), StoreError> {
        let places = Places::new::<D>(&options);
        for directory in [&places.dataset, &places.spool] {
            fs::create_dir_all(directory).map_err(StoreError::io(directory))?;
        }
        let lock = lock(&places.spool)?;
        let found = recover::<D>(&places, &options.name)?;
        let writer = Writer {
            options,
            places,
            statistics,
            sequence: found.sequence,
            open: Vec::new(),
            waiting: found.waiting,
            conversion: None,
            newest: None,
            now,
            synced: now,
            failed: None,
            retained: now,
            _lock: lock,
        };
        let mut statistics = writer.statistics();
        let waiting: u64 = writer.waiting.iter().map(|waiting| waiting.rows).sum();
        statistics.recovered = found.recovered.records + waiting;
        statistics.in_spool = waiting;
        statistics.spool_bytes = writer.waiting.iter().map(|waiting| waiting.bytes).sum();
        statistics.waiting_segments = writer.waiting.len() as u64;
        statistics.written = found.recovered.records;
        statistics.files = found.recovered.files;
        statistics.bytes = found.bytes;
        statistics.saturated = found.saturated;
        statistics.errors = u64::from(found.error.is_some());
        statistics.last_error = found.error;
        drop(statistics);
        Ok((writer, found.recovered))
    }

    /// Writes until it is told to finish or to leave.
    pub(super) fn run(mut self, queue: Queue<D>) {
        loop {
            let message = match queue.messages.try_recv() {
                Err(TryRecvError::Empty) if self.conversion.is_some() => {
                    self.convert_some();
                    continue;
                }
                Err(TryRecvError::Empty) => queue.messages.recv().ok(),
                other => other.ok(),
            };
            match message {
                Some(Message::Rows(mut rows, now)) => {
                    self.now = now;
                    self.rows(&rows);
                    self.service();
                    rows.truncate_rows(0);
                    let _ = queue.emptied.try_send(rows);
                }
                Some(Message::Tick(now)) => {
                    self.now = now;
                    self.service();
                }
                Some(Message::Finish(now)) => {
                    self.now = now;
                    return self.finish();
                }
                Some(Message::Leave) | None => return self.leave(),
            }
        }
    }

    /// Takes a batch, each row to the file of its span of time.
    fn rows(&mut self, batch: &D) {
        let received = batch.received_us();
        let mut from = 0;
        while let Some(&first) = received.get(from) {
            let span = self.span(first);
            let run = received[from..].iter().take_while(|received| span.contains(received)).count();
            // The last microsecond of time is in no span.
            let run = run.max(1);
            if run == batch.rows() {
                self.keep(span, batch);
            } else {
                let mut part = D::default();
                part.append_rows(batch, from..from + run);
                self.keep(span, &part);
            }
            from += run;
        }
    }

    /// The span of time around an instant. The last one ends with time itself.
    fn span(&self, received_us: i64) -> Range<i64> {
        let length = (self.options.file_span.0 / 1000).max(1) as i64;
        let begin = received_us.div_euclid(length).saturating_mul(length);
        match begin.checked_add(length) {
            Some(end) => begin..end,
            None => i64::MIN..i64::MAX,
        }
    }

    /// Takes rows of one span: to the spool first, and what the spool has goes into the file.
    fn keep(&mut self, span: Range<i64>, batch: &D) {
        let rows = batch.rows() as u64;
        if self.statistics().spool_bytes >= self.options.spool_bytes {
            return self.dealt_with(rows, |statistics| statistics.lost.spool_full += rows);
        }
        let number = match self.open_for(&span) {
            Ok(number) => number,
            Err((path, error)) => {
                self.note(&path, &error);
                return self.dealt_with(rows, |statistics| statistics.lost.spool_failed += rows);
            }
        };
        let open = &mut self.open[number];
        let before = open.segment.bytes();
        if let Err(error) = open.segment.append(batch) {
            let path = self.places.segment(&open.stem);
            self.note(&path, &error);
            return self.dealt_with(rows, |statistics| statistics.lost.spool_failed += rows);
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
            let path = self.places.file(&open.stem);
            self.note(&path, &error);
        }
        self.dealt_with(rows, |statistics| {
            statistics.in_spool += rows;
            statistics.spool_bytes += grown;
        });
        if is_large {
            self.close(number);
        }
    }

    /// The number of the open file for a span of time. If there are too many, the one that has waited longest is closed.
    fn open_for(&mut self, span: &Range<i64>) -> Result<usize, (PathBuf, io::Error)> {
        if let Some(number) = self.open.iter().position(|open| open.span == *span) {
            return Ok(number);
        }
        if self.open.len() == OPEN {
            let oldest = (0..OPEN).min_by_key(|&number| self.open[number].last).unwrap_or(0);
            self.close(oldest);
        }
        let stem = Stem::new(&self.options.name, span.start, self.sequence);
        let path = self.places.segment(&stem);
        let segment = Segment::create::<D>(&path)
            .and_then(|segment| sync_directory(&self.places.spool).map(|()| segment))
            .map_err(|error| (path, error))?;
        self.sequence += 1;
        self.statistics().spool_bytes += segment.bytes();
        let file = Unpublished::create(&self.places, &stem);
        let file = file.map_err(|error| self.note(&self.places.file(&stem), &error)).ok();
        self.open.push(Open { stem, span: span.clone(), segment, file, last: self.now });
        Ok(self.open.len() - 1)
    }

    /// Completes a file. If that fails, its segment waits.
    fn close(&mut self, number: usize) {
        let Open { stem, mut segment, file, .. } = self.open.remove(number);
        let path = self.places.file(&stem);
        match file.map(Unpublished::publish) {
            Some(Ok(published)) => {
                self.published(published, segment.rows(), segment.bytes());
                self.remove_segment(&stem);
            }
            Some(Err(error)) => {
                self.note(&path, &error);
                self.wait(stem, &mut segment);
            }
            None => self.wait(stem, &mut segment),
        }
    }

    fn wait(&mut self, stem: Stem, segment: &mut Segment) {
        if let Err(error) = segment.sync() {
            let path = self.places.segment(&stem);
            self.note(&path, &error);
        }
        self.waiting.push_back(Waiting { stem, rows: segment.rows(), bytes: segment.bytes() });
        self.statistics().waiting_segments = self.waiting.len() as u64;
        self.failed = Some(self.now);
    }

    /// Counts a file whose segment had so many rows and bytes, and removes what is too old or too much.
    fn published(&mut self, published: Published, rows: u64, bytes: u64) {
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
        self.retain();
    }

    fn remove_segment(&mut self, stem: &Stem) {
        let path = self.places.segment(stem);
        if let Err(error) = fs::remove_file(&path) {
            // It is removed by the next start, which sees that the file is there.
            self.note(&path, &error);
        }
    }

    /// Does what is due.
    fn service(&mut self) {
        if is_due(self.synced, Nanos(self.options.loss_bound.0 / 4), self.now) {
            self.synced = self.now;
            self.sync();
        }
        let now = self.now;
        let is_over = move |open: &Open<D>| {
            let end = Timestamp((open.span.end.max(0) as u64).saturating_mul(1000));
            now >= end + LATE && is_due(open.last, LATE, now)
        };
        while let Some(number) = self.open.iter().position(is_over) {
            self.close(number);
        }
        if self.conversion.is_some() {
            self.convert_some();
        } else if !self.waiting.is_empty() && self.failed.is_none_or(|then| is_due(then, RETRY, self.now)) {
            self.failed = Some(self.now);
            self.begin_conversion();
        }
        if is_due(self.retained, RETENTION, self.now) {
            self.retain();
        }
    }

    fn sync(&mut self) {
        for number in 0..self.open.len() {
            if let Err(error) = self.open[number].segment.sync() {
                let path = self.places.segment(&self.open[number].stem);
                self.note(&path, &error);
            }
        }
    }

    fn retain(&mut self) {
        self.retained = self.now;
        let StoreOptions { keep, keep_bytes, .. } = self.options;
        let newest = self.newest.as_deref();
        match retention::enforce(&self.places.dataset, self.now, keep, keep_bytes, newest) {
            Ok(removed) => {
                let mut statistics = self.statistics();
                statistics.removed_files += removed.files;
                statistics.removed_bytes += removed.bytes;
            }
            Err(error) => self.note(&self.places.dataset, &error),
        }
    }

    fn begin_conversion(&mut self) {
        let Some(first) = self.waiting.front() else { return };
        let path = self.places.file(&first.stem);
        if path.exists() {
            // It had got its name, and then the disk failed.
            let bytes = fs::metadata(&path).map(|metadata| metadata.len()).unwrap_or(0);
            let rows = first.rows;
            return self.converted(Published { rows, bytes, saturated: 0, path });
        }
        match Conversion::begin(&self.places, &first.stem) {
            Ok(Some(conversion)) => self.conversion = Some(conversion),
            Ok(None) => self.note(&path, &io::Error::other("its segment has another header")),
            Err(error) => self.note(&path, &error),
        }
    }

    /// Takes one more frame of the segment that is on its way.
    fn convert_some(&mut self) {
        let Some(mut conversion) = self.conversion.take() else { return };
        let outcome = match conversion.step() {
            Ok(true) => return self.conversion = Some(conversion),
            Ok(false) => conversion.publish(),
            Err(error) => Err(error),
        };
        match outcome {
            Ok(published) => self.converted(published),
            Err(error) => {
                // To the end of the line: it may be this segment that cannot be read.
                let Some(first) = self.waiting.pop_front() else { return };
                self.note(&self.places.file(&first.stem), &error);
                self.waiting.push_back(first);
            }
        }
    }

    /// The first segment that waits has its file; the next may follow at once.
    fn converted(&mut self, published: Published) {
        let Some(Waiting { stem, rows, bytes }) = self.waiting.pop_front() else { return };
        self.published(published, rows, bytes);
        self.remove_segment(&stem);
        self.statistics().waiting_segments = self.waiting.len() as u64;
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
            self.convert_some();
        }
        self.retain();
    }

    /// Leaves all in the spool.
    fn leave(mut self) {
        self.sync();
    }

    /// Counts rows where they are now, and no longer as queued: at no moment are they counted twice, or not at all.
    fn dealt_with(&self, rows: u64, count: impl FnOnce(&mut Statistics)) {
        let mut statistics = self.statistics();
        statistics.queued -= rows;
        count(&mut statistics);
    }

    fn statistics(&self) -> MutexGuard<'_, Statistics> {
        self.statistics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, path: &Path, error: &io::Error) {
        let mut statistics = self.statistics();
        statistics.errors += 1;
        statistics.last_error = Some(format!("{}: {error}", path.display()));
    }
}

/// Takes a store's spool for this process, as long as the file is open.
fn lock(spool: &Path) -> Result<File, StoreError> {
    let path = spool.join("lock");
    let file = File::create(&path).map_err(StoreError::io(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(StoreError::InUse { path }),
        Err(fs::TryLockError::Error(source)) => Err(StoreError::Io { path, source }),
    }
}
