//! Reports on disk until the daemon has them.
//!
//! Each report is a file, with the positions in logs that it covers. So the rows of a log and the position after them become durable
//! together: after a crash nothing is counted twice, and nothing is lost. The queue is bounded: when it is full, the oldest reports are
//! dropped and counted, those with samples before those with transfers.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};
use thalweg_api::{ReportRows, Transfer};
use thalweg_linux::durable_file;
use thiserror::Error;

use crate::follow::Position;

/// Positions in logs, by the path of each.
pub type Positions = BTreeMap<String, Position>;

/// Name of the file with what outlives the reports.
const STATE: &str = "state.json";

/// Folder of reports that the daemon refused for good.
const REJECTED: &str = "rejected";

/// Maximum number of refused reports that are kept.
const MAX_REJECTED: usize = 100;

/// Digits of a report's number in its file name.
const DIGITS: usize = 20;

/// Why a queue cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum QueueError {
    /// Another agent uses it.
    #[error("{}: another agent uses this queue", .0.display())]
    InUse(PathBuf),
    /// A file or directory cannot be read or written.
    #[error("cannot use the queue {}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file has other contents.
    #[error("{}: not a file of a queue of reports: {problem}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// Counts since the agent started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct QueueCounts {
    /// Reports that the daemon has.
    pub acknowledged: u64,
    /// Reports dropped because the queue was full.
    pub dropped: u64,
    /// Of these, reports with transfers.
    pub dropped_with_transfers: u64,
    /// Reports that the daemon refused for good.
    pub rejected: u64,
}

/// A bounded queue of reports in a folder.
#[derive(Debug)]
pub struct Queue {
    folder: PathBuf,
    max_bytes: u64,
    state: State,
    /// Positions after the newest report, or later ones that go with the next.
    positions: Positions,
    reports: VecDeque<Waiting>,
    counts: QueueCounts,
    lock: File,
}

/// What outlives the reports.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct State {
    /// Identifier of the queue.
    queue: String,
    /// Number of the latest report that was removed.
    removed: u64,
    /// Positions after the latest report that was removed.
    positions: Positions,
}

/// A report on disk.
#[derive(Clone, Debug)]
struct Waiting {
    number: u64,
    bytes: u64,
    has_transfers: bool,
}

/// The contents of a report's file.
#[derive(Deserialize, Serialize)]
struct Stored {
    positions: Positions,
    rows: ReportRows,
}

impl Queue {
    /// Opens or creates a queue that takes at most `max_bytes` on the disk.
    ///
    /// # Errors
    /// If another agent uses it, or its files cannot be read or written.
    pub fn open(folder: &Path, max_bytes: u64) -> Result<Queue, QueueError> {
        fs::create_dir_all(folder).map_err(at(folder))?;
        let path = folder.join("lock");
        let lock = File::create(&path).map_err(at(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(QueueError::InUse(path)),
            Err(TryLockError::Error(source)) => return Err(QueueError::Io { path, source }),
        }
        let path = folder.join(STATE);
        let state = match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text)
                .map_err(|error| QueueError::Content { path, problem: error.to_string() })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let state = State { queue: random_name().map_err(at(folder))?, ..State::default() };
                write(folder, STATE, &state).map_err(at(&path))?;
                state
            }
            Err(source) => return Err(QueueError::Io { path, source }),
        };
        let mut queue = Queue {
            folder: folder.to_owned(),
            max_bytes,
            reports: VecDeque::new(),
            positions: state.positions.clone(),
            state,
            counts: QueueCounts::default(),
            lock,
        };
        queue.find_reports().map_err(at(folder))?;
        // A damaged newest report has no positions: then those before it, so that its log is read again.
        let readable = queue.reports.iter().rev().find_map(|waiting| queue.read(waiting).ok());
        if let Some(stored) = readable {
            queue.positions = stored.positions;
        }
        Ok(queue)
    }

    /// Finds the reports of an earlier run, and removes incomplete files.
    fn find_reports(&mut self) -> io::Result<()> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name().into_string().unwrap_or_default();
            if name.ends_with(".part") {
                fs::remove_file(entry.path())?;
            } else if let Some((number, has_transfers)) = parse_name(&name) {
                found.push(Waiting { number, bytes: entry.metadata()?.len(), has_transfers });
            }
        }
        found.sort_by_key(|waiting| waiting.number);
        self.reports = found.into();
        Ok(())
    }

    /// Returns the identifier of the queue.
    pub fn id(&self) -> &str {
        &self.state.queue
    }

    /// Returns the positions in logs after all reports.
    pub fn positions(&self) -> &Positions {
        &self.positions
    }

    /// Sets the positions in logs without a report, as at the first start. They are durable at once if the queue is empty, otherwise with
    /// the next report.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn set_positions(&mut self, positions: Positions) -> Result<(), QueueError> {
        if self.reports.is_empty() && self.state.positions != positions {
            let state = State { positions: positions.clone(), ..self.state.clone() };
            let path = self.folder.join(STATE);
            write(&self.folder, STATE, &state).map_err(at(&path))?;
            self.state = state;
        }
        self.positions = positions;
        Ok(())
    }

    /// Returns the counts since the agent started.
    pub fn counts(&self) -> QueueCounts {
        self.counts
    }

    /// Returns the number of reports, and their size in bytes.
    pub fn length(&self) -> (usize, u64) {
        (self.reports.len(), self.reports.iter().map(|waiting| waiting.bytes).sum())
    }

    /// Appends a report, durably, with the positions in logs after it. Drops the oldest reports if the queue becomes too large.
    ///
    /// # Errors
    /// If it cannot be written. The queue is unchanged then.
    pub fn push_transfers(&mut self, rows: Vec<Transfer>, positions: Positions) -> Result<(), QueueError> {
        self.push(ReportRows::Transfers(rows), positions)
    }

    /// Appends a report of samples, as [`push_transfers`](Queue::push_transfers).
    ///
    /// # Errors
    /// If it cannot be written. The queue is unchanged then.
    pub fn push_samples(&mut self, rows: ReportRows) -> Result<(), QueueError> {
        self.push(rows, self.positions.clone())
    }

    fn push(&mut self, rows: ReportRows, positions: Positions) -> Result<(), QueueError> {
        let number = self.reports.back().map_or(self.state.removed, |newest| newest.number) + 1;
        let has_transfers = matches!(rows, ReportRows::Transfers(_));
        let name = file_name(number, has_transfers);
        let path = self.folder.join(&name);
        let stored = Stored { positions, rows };
        let bytes = write(&self.folder, &name, &stored).map_err(at(&path))?;
        self.positions = stored.positions;
        self.reports.push_back(Waiting { number, bytes, has_transfers });
        while self.reports.len() > 1 && self.length().1 > self.max_bytes {
            if let Err(error) = self.drop_oldest() {
                // The new report is in the queue all the same. The next one tries again.
                tracing::error!(%error, "the queue stays too large");
                break;
            }
        }
        Ok(())
    }

    /// Drops the oldest report with samples, otherwise the oldest, but never the newest.
    fn drop_oldest(&mut self) -> Result<(), QueueError> {
        let older = self.reports.len() - 1;
        let samples = self.reports.iter().take(older).position(|waiting| !waiting.has_transfers);
        let Some(waiting) = self.reports.get(samples.unwrap_or(0)).cloned() else { return Ok(()) };
        self.remove(&waiting)?;
        if self.counts.dropped == 0 {
            tracing::warn!(folder = %self.folder.display(), "the queue is full: old reports are dropped, and counted in status.json");
        }
        self.counts.dropped += 1;
        self.counts.dropped_with_transfers += u64::from(waiting.has_transfers);
        Ok(())
    }

    /// Returns the oldest report and its number; `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn first(&self) -> Result<Option<(u64, ReportRows)>, QueueError> {
        let Some(oldest) = self.reports.front() else { return Ok(None) };
        Ok(Some((oldest.number, self.read(oldest)?.rows)))
    }

    /// Removes a report that the daemon has.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn acknowledge(&mut self, number: u64) -> Result<(), QueueError> {
        let Some(waiting) = self.reports.iter().find(|waiting| waiting.number == number).cloned() else {
            return Ok(());
        };
        self.remove(&waiting)?;
        self.counts.acknowledged += 1;
        Ok(())
    }

    /// Moves a report that the daemon refused, or that cannot be read, out of the way.
    ///
    /// # Errors
    /// If it cannot be moved.
    pub fn reject(&mut self, number: u64) -> Result<(), QueueError> {
        let Some(waiting) = self.reports.iter().find(|waiting| waiting.number == number).cloned() else {
            return Ok(());
        };
        let folder = self.folder.join(REJECTED);
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        let kept = fs::read_dir(&folder).map_err(at(&folder))?.count();
        if kept < MAX_REJECTED {
            let name = file_name(number, waiting.has_transfers);
            let _ = fs::copy(self.folder.join(&name), folder.join(format!("{}-{name}", self.state.queue)));
        }
        self.remove(&waiting)?;
        self.counts.rejected += 1;
        Ok(())
    }

    /// Returns the number of the oldest report.
    pub fn first_number(&self) -> Option<u64> {
        self.reports.front().map(|waiting| waiting.number)
    }

    /// Removes a report. One whose file is missing is removed too.
    fn remove(&mut self, waiting: &Waiting) -> Result<(), QueueError> {
        if self.reports.back().is_some_and(|newest| newest.number == waiting.number) {
            // Its positions and number must outlive it. A report that cannot be read has none.
            let positions =
                self.read(waiting).map_or_else(|_| self.state.positions.clone(), |stored| stored.positions);
            let state = State { queue: self.state.queue.clone(), removed: waiting.number, positions };
            let path = self.folder.join(STATE);
            write(&self.folder, STATE, &state).map_err(at(&path))?;
            self.state = state;
        }
        let path = self.folder.join(file_name(waiting.number, waiting.has_transfers));
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&path)(error)),
            _ => {}
        }
        self.reports.retain(|other| other.number != waiting.number);
        Ok(())
    }

    fn read(&self, waiting: &Waiting) -> Result<Stored, QueueError> {
        let path = self.folder.join(file_name(waiting.number, waiting.has_transfers));
        let text = fs::read(&path).map_err(at(&path))?;
        serde_json::from_slice(&text)
            .map_err(|error| QueueError::Content { path, problem: error.to_string() })
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // Closing the file is not enough: a program that is being started has a copy of it. An error cannot be reported here.
        let _ = self.lock.unlock();
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> QueueError {
    move |source| QueueError::Io { path: path.to_owned(), source }
}

fn file_name(number: u64, has_transfers: bool) -> String {
    let kind = if has_transfers { "transfers" } else { "samples" };
    format!("{number:0DIGITS$}-{kind}.json")
}

/// Returns the number of a report and whether it has transfers; `None` for other files.
fn parse_name(name: &str) -> Option<(u64, bool)> {
    let (number, kind) = name.strip_suffix(".json")?.split_once('-')?;
    let has_transfers = match kind {
        "transfers" => true,
        "samples" => false,
        _ => return None,
    };
    let is_number = number.len() == DIGITS && number.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| number.parse().ok()).flatten().map(|number| (number, has_transfers))
}

/// Writes a file as a whole, durably. Returns its size.
fn write(folder: &Path, name: &str, content: &impl Serialize) -> io::Result<u64> {
    let text = serde_json::to_vec(content).map_err(io::Error::other)?;
    durable_file::replace(&folder.join(name), &text)?;
    Ok(text.len() as u64)
}

/// Returns a name that no other queue has: 64 random bits.
fn random_name() -> io::Result<String> {
    let mut bytes = [0; 8];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("no random numbers"))?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use thalweg_api::HostSample;

    use super::*;

    fn position(offset: u64) -> Positions {
        let position = Position { device: 1, inode: 2, offset, ..Position::default() };
        [("a.log".to_owned(), position)].into()
    }

    fn samples(time_us: i64) -> ReportRows {
        ReportRows::HostMetrics(vec![HostSample { time_us, ..HostSample::default() }])
    }

    fn open(folder: &Path) -> Queue {
        Queue::open(folder, 1 << 20).unwrap()
    }

    #[test]
    fn reports_and_positions_survive_a_kill_at_any_time() {
        let folder = tempfile::tempdir().unwrap();
        let mut queue = open(folder.path());
        let id = queue.id().to_owned();
        queue.push(samples(1), position(10)).unwrap();
        queue.push(samples(2), position(20)).unwrap();
        fs::write(folder.path().join("00000000000000000003-samples.json.part"), "{").unwrap();
        drop(queue);
        let mut queue = open(folder.path());
        assert_eq!(queue.id(), id);
        assert_eq!(queue.positions(), &position(20));
        assert_eq!(queue.first().unwrap(), Some((1, samples(1))));
        queue.acknowledge(1).unwrap();
        queue.acknowledge(2).unwrap();
        queue.acknowledge(2).unwrap();
        assert_eq!(queue.first().unwrap(), None);
        drop(queue);
        let mut queue = open(folder.path());
        assert_eq!(queue.positions(), &position(20), "of reports that are gone");
        queue.push(samples(3), position(30)).unwrap();
        assert_eq!(queue.first().unwrap(), Some((3, samples(3))), "numbers go on");
    }

    #[test]
    fn a_full_queue_drops_samples_before_transfers() {
        let folder = tempfile::tempdir().unwrap();
        let mut queue = Queue::open(folder.path(), 1_500).unwrap();
        queue.push(ReportRows::Transfers(Vec::new()), Positions::new()).unwrap();
        for time in 0..20 {
            queue.push(samples(time), position(time as u64)).unwrap();
        }
        let (length, bytes) = queue.length();
        assert!(length > 1 && bytes <= 1_500);
        assert_eq!(queue.counts().dropped as usize, 21 - length);
        assert_eq!(queue.counts().dropped_with_transfers, 0);
        assert_eq!(queue.first().unwrap(), Some((1, ReportRows::Transfers(Vec::new()))));
        assert_eq!(queue.positions(), &position(19));
    }

    #[test]
    fn a_second_agent_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let _queue = open(folder.path());
        assert!(matches!(Queue::open(folder.path(), 1), Err(QueueError::InUse(_))));
    }

    #[test]
    fn a_damaged_report_can_be_moved_out_of_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let mut queue = open(folder.path());
        queue.push(samples(1), position(10)).unwrap();
        queue.push(samples(2), position(20)).unwrap();
        fs::write(folder.path().join(file_name(1, false)), "{\"rows\":").unwrap();
        assert!(matches!(queue.first(), Err(QueueError::Content { .. })));
        queue.reject(queue.first_number().unwrap()).unwrap();
        assert_eq!(queue.first().unwrap(), Some((2, samples(2))));
        assert_eq!(fs::read_dir(folder.path().join(REJECTED)).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_file_does_not_block_the_queue() {
        let folder = tempfile::tempdir().unwrap();
        let mut queue = open(folder.path());
        for time in 1..=4 {
            queue.push(samples(time), position(time as u64)).unwrap();
        }
        for number in [1, 2] {
            fs::remove_file(folder.path().join(file_name(number, false))).unwrap();
        }
        assert!(queue.first().is_err());
        queue.reject(1).unwrap();
        queue.acknowledge(2).unwrap();
        assert_eq!(queue.first().unwrap(), Some((3, samples(3))));
        fs::remove_file(folder.path().join(file_name(3, false))).unwrap();
        queue.max_bytes = 1;
        queue.push(samples(5), position(5)).unwrap();
        assert_eq!(queue.first().unwrap(), Some((5, samples(5))));
        let counts = QueueCounts { acknowledged: 1, dropped: 2, dropped_with_transfers: 0, rejected: 1 };
        assert_eq!(queue.counts(), counts);
    }

    #[test]
    fn a_new_report_is_in_the_queue_though_the_oldest_cannot_be_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let mut queue = open(folder.path());
        queue.push(samples(1), position(1)).unwrap();
        let oldest = folder.path().join(file_name(1, false));
        fs::remove_file(&oldest).unwrap();
        // A directory cannot be removed as a file.
        fs::create_dir(&oldest).unwrap();
        queue.max_bytes = 1;
        queue.push(samples(2), position(2)).unwrap();
        assert_eq!((queue.length().0, queue.counts().dropped), (2, 0));
        fs::remove_dir(&oldest).unwrap();
        queue.push(samples(3), position(3)).unwrap();
        assert_eq!((queue.length().0, queue.counts().dropped), (1, 2));
        assert_eq!(queue.first().unwrap(), Some((3, samples(3))));
    }
}
