//! Reads a log across rotation, truncation and restarts.
//!
//! The caller polls, and saves the [`Position`] together with the reports of the transfers that were found. Then no transfer is lost and
//! none is reported twice, whenever the process ends:
//!
//! - After a restart, reading begins at `needs_from`, so that a parser knows the sessions that were open; transfers whose last line ends
//!   at or before `offset` are not returned again.
//! - **Rotation by rename**: the old file is read to its end, and kept open for [`LINGER_US`] because writers may still have it open. Then
//!   its unfinished last line is dropped and counted. If the process was down, the old file is found by its inode among `NAME.*` and
//!   `NAME-*`. Files that were rotated in between are read too, if their names end in a number or a date. If the old file itself is gone,
//!   these are the ones that were modified after it.
//! - **Truncation** (`copytruncate`): seen by the length or by the first bytes. The rest is read from the newest rotated file that begins
//!   with the same bytes; a line that was cut continues at the beginning of the truncated file.
//! - A file that is missing is waited for.
//!
//! Lost are: lines that logrotate loses itself between copying and truncating; those of a file that was compressed before it was read to
//! its end; those of a truncated file without a copy; and those of a file that was truncated before a line of it was read, or twice
//! between two polls. Truncated and compressed files are in the counts.
//!
//! Cost: memory is a chunk of 64 KiB, an incomplete line of at most [`MAX_LINE_BYTES`], what the parser keeps, and transfers of about
//! [`MAX_FOUND_BYTES`]. A poll without news costs a few system calls.

mod head;
mod part;
mod siblings;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thalweg_api::MAX_REPORT_ROWS;

use crate::logs::{LogParser, LoggedTransfer, xrootd};
use head::Head;
use part::{Lines, Part, Place, TRANSFER_BYTES};
use siblings::{Age, FileId, RotatedName, Sibling, modified_ns, siblings};

/// Maximum length of a line in bytes. Longer ones are skipped and counted.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// How long a rotated file is read after its log has a new file, in microseconds: a minute. Servers reopen their log when they are told to,
/// and worker processes when they finish what they do.
pub const LINGER_US: i64 = 60_000_000;

/// Maximum number of files of a log that are kept in mind: the current one, and rotated ones that are read or that a parser needs. If more
/// were rotated, they are read one after the other, the oldest first.
pub const MAX_FILES: usize = 16;

/// Maximum number of finished files whose position is remembered.
const MAX_FINISHED: usize = 4;

/// Size of the transfers after which a poll reads no further line, in bytes of JSON. The transfers of a poll are one report: they must fit
/// into a request, whose maximum is 4 MiB by default.
pub const MAX_FOUND_BYTES: u64 = 1 << 20;

// The last line may end all files of a session.
const _: () =
    assert!(MAX_FOUND_BYTES / TRANSFER_BYTES + xrootd::MAX_OPEN_FILES as u64 <= MAX_REPORT_ROWS as u64);

/// Where reading begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the end of the file: only what is written from now on.
    End,
    /// At the beginning of the file.
    Beginning,
    /// Where an earlier run stopped.
    At(Position),
}

/// How far a log was read. Saved by the caller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Device of the file.
    pub device: u64,
    /// Inode of the file.
    pub inode: u64,
    /// Offset after the last complete line that was read.
    pub offset: u64,
    /// Offset from which a later run must read, for lines after `offset` to be understood.
    pub needs_from: u64,
    /// Number of bytes at the beginning of the file that `head_digest` covers.
    pub head_bytes: u64,
    /// Digest of the first bytes of the file.
    pub head_digest: u64,
    /// Whether the rest of the last line is at the beginning of the next file.
    #[serde(default)]
    pub continued: bool,
    /// Whether the file had been read to its end, and its last line was complete.
    #[serde(default)]
    pub complete: bool,
    /// When the file was modified, as of the latest read, in nanoseconds since 1970; 0 if unknown.
    #[serde(default)]
    pub modified_ns: i64,
    /// Rotated files that are not finished, or that the parser still needs; the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Position>,
    /// Rotated files that were finished last. A writer that still has one open may make it the newest again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finished: Vec<Position>,
}

impl Position {
    fn id(&self) -> FileId {
        FileId { device: self.device, inode: self.inode }
    }

    fn head(&self) -> Head {
        Head { bytes: self.head_bytes, digest: self.head_digest }
    }

    /// The age of the file. If it is unknown, no file is younger.
    fn age(&self) -> Age {
        match self.modified_ns {
            0 => Age::of(i64::MAX),
            modified_ns => Age::of(modified_ns),
        }
    }
}

/// What a poll may still do.
#[derive(Debug)]
struct Budget {
    /// Bytes to read.
    bytes: u64,
    /// Size of further transfers in bytes of JSON.
    found_bytes: u64,
}

impl Budget {
    fn take_found(&mut self, bytes: u64) {
        self.found_bytes = self.found_bytes.saturating_sub(bytes);
    }

    fn is_used_up(&self) -> bool {
        self.bytes == 0 || self.found_bytes == 0
    }
}

/// A transfer that was found. `inode`, `offset_after`, `index` and the transfer together identify it: they are the same if the line is
/// read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The transfer.
    pub transfer: LoggedTransfer,
    /// Inode of the file.
    pub inode: u64,
    /// Offset after the line that ended the transfer.
    pub offset_after: u64,
    /// Number of the transfer among those that this line ended, from 0.
    pub index: u32,
    /// The line.
    pub line: String,
}

/// What was read since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FollowCounts {
    /// Complete lines.
    pub lines: u64,
    /// Transfers.
    pub transfers: u64,
    /// Lines that were not of the format.
    pub bad_lines: u64,
    /// The latest bad line: `FILE: offset N: expected ..., found ...`.
    pub last_bad_line: String,
    /// New files of the log after the first one.
    pub rotations: u64,
    /// Rotated files that could not be found any more, were compressed before they were read, or were dropped because there were too many.
    pub lost_rotations: u64,
    /// Files that became shorter or were overwritten.
    pub truncations: u64,
    /// Lines that were incomplete at the end of a rotated or truncated file.
    pub cut_lines: u64,
    /// Lines longer than [`MAX_LINE_BYTES`].
    pub overlong_lines: u64,
    /// Lines that were not valid UTF-8. Invalid bytes were replaced.
    pub invalid_utf8: u64,
    /// Sessions that the parser dropped.
    pub dropped_sessions: u64,
}

/// Reads a log across rotation, truncation and restarts.
pub struct LogFollower {
    path: PathBuf,
    parser: Box<dyn LogParser>,
    /// Where to begin; `None` once a file was opened.
    start: Option<Start>,
    /// Rotated files, and the current one last. The current one is missing while there are more rotated ones than fit.
    parts: VecDeque<Part>,
    /// Positions in files that were finished last, the latest last.
    finished: VecDeque<Position>,
    next_number: u64,
    counts: FollowCounts,
}

impl LogFollower {
    /// Creates a follower of a log. Opens nothing.
    pub fn new(path: PathBuf, parser: Box<dyn LogParser>, start: Start) -> LogFollower {
        LogFollower {
            path,
            parser,
            start: Some(start),
            parts: VecDeque::new(),
            finished: VecDeque::new(),
            next_number: 0,
            counts: FollowCounts::default(),
        }
    }

    /// Reads at most `max_bytes` of what was written, and appends the transfers that ended, of about [`MAX_FOUND_BYTES`] at most. Returns
    /// whether it stopped at one of these limits, so that there may be more. `now_us` is the present time in microseconds since 1970.
    ///
    /// # Errors
    /// If a file cannot be read. A missing file is no error.
    pub fn poll(&mut self, now_us: i64, max_bytes: u64, found: &mut Vec<Found>) -> io::Result<bool> {
        self.parser.set_now(now_us);
        if self.start.is_some() && !self.begin(now_us)? {
            return Ok(false);
        }
        let mut budget = Budget { bytes: max_bytes, found_bytes: MAX_FOUND_BYTES };
        loop {
            self.follow_truncation()?;
            let at_end = self.read(&mut budget, found)?;
            if !at_end || !self.follow_rotation(now_us)? {
                break;
            }
        }
        self.finish_rotated(now_us);
        Ok(budget.is_used_up())
    }

    /// Returns how far the log was read; `None` before its file was first opened.
    pub fn position(&self) -> Option<Position> {
        if let Some(Start::At(position)) = &self.start {
            return Some(position.clone());
        }
        let needs = self.parser.needs_from().map(Place::of_offset);
        let mut positions: Vec<Position> = self.parts.iter().map(|part| part.position(needs)).collect();
        let current = positions.pop()?;
        Some(Position { earlier: positions, finished: self.finished.iter().cloned().collect(), ..current })
    }

    /// Returns what was read since the start.
    pub fn counts(&self) -> FollowCounts {
        FollowCounts { dropped_sessions: self.parser.dropped_sessions(), ..self.counts.clone() }
    }

    /// Opens the first files. Returns whether there are any.
    fn begin(&mut self, now_us: i64) -> io::Result<bool> {
        match self.start.clone() {
            Some(Start::At(position)) => {
                let counts = self.counts.clone();
                let resumed = self.resume(&position, now_us);
                match resumed {
                    Ok(true) => self.start = None,
                    Ok(false) => {}
                    // Tried again, from the same position.
                    Err(_) => {
                        self.parts.clear();
                        self.counts = counts;
                    }
                }
                return resumed;
            }
            Some(Start::End) => {
                if let Some(file) = open(&self.path)? {
                    let number = self.number();
                    self.parts.push_back(Part::at_end(number, file)?);
                }
            }
            _ => self.push_current()?,
        }
        // A log that begins to exist later is read from its beginning.
        self.start = match self.parts.is_empty() {
            true => Some(Start::Beginning),
            false => None,
        };
        Ok(!self.parts.is_empty())
    }

    /// Finds the files of an earlier run. Waits while neither they nor a current file exist.
    fn resume(&mut self, position: &Position, now_us: i64) -> io::Result<bool> {
        let current = open(&self.path)?;
        let siblings = siblings(&self.path)?;
        let last = match (&current, find(&siblings, position)?) {
            (Some(file), _) if FileId::of(&file.metadata()?) == position.id() => None,
            (_, Some(file)) => Some(file),
            (None, None) => return Ok(false),
            (Some(_), None) => None,
        };
        self.finished = position.finished.iter().cloned().collect();
        for earlier in &position.earlier {
            match find(&siblings, earlier)? {
                Some(file) => self.push_rotated(file, earlier, now_us)?,
                // A file that was only kept for late lines may be compressed meanwhile.
                None if earlier.complete && earlier.needs_from == earlier.offset => {}
                None => self.counts.lost_rotations += 1,
            }
        }
        if let Some(file) = last {
            self.push_rotated(file, position, now_us)?;
            return Ok(true);
        }
        let Some(file) = current else { return Ok(true) };
        let metadata = file.metadata()?;
        if FileId::of(&metadata) != position.id() {
            let lost_rotations = self.counts.lost_rotations + 1;
            let is_complete =
                self.push_files_after(&position.age(), FileId::of(&metadata), &siblings, now_us)?;
            // It may be one of the compressed files after its position.
            self.counts.lost_rotations = self.counts.lost_rotations.max(lost_rotations);
            if !is_complete {
                return Ok(true);
            }
        } else if metadata.len() >= position.offset && position.head().matches(&file)? {
            let number = self.number();
            self.parts.push_back(Part::at(number, file, position)?);
            return Ok(true);
        } else {
            self.counts.truncations += 1;
            if let Some((file, id)) = find_copy(&siblings, position.id(), position.offset, position.head())? {
                let copy =
                    Position { device: id.device, inode: id.inode, continued: true, ..position.clone() };
                self.push_rotated(file, &copy, now_us)?;
            }
        }
        self.push_current()?;
        Ok(true)
    }

    fn push_rotated(&mut self, file: File, position: &Position, now_us: i64) -> io::Result<()> {
        let number = self.number();
        let mut part = Part::at(number, file, position)?;
        part.rotated_us = Some(now_us);
        self.parts.push_back(part);
        Ok(())
    }

    /// Opens the current file, if it exists, at its beginning.
    fn push_current(&mut self) -> io::Result<()> {
        if let Some(file) = open(&self.path)? {
            let number = self.number();
            self.parts.push_back(Part::new(number, file)?);
        }
        Ok(())
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// If the current file was truncated, continues with its copy and reads it from its beginning.
    fn follow_truncation(&mut self) -> io::Result<()> {
        let Some(current) = self.parts.back_mut() else { return Ok(()) };
        if !current.is_truncated()? {
            return Ok(());
        }
        self.counts.truncations += 1;
        let (id, read_to, head) = (current.id, current.read_to, current.head);
        let copy = find_copy(&siblings(&self.path)?, id, read_to, head)?;
        let Some(truncated) = current.file.take() else { return Ok(()) };
        match copy {
            Some((file, id)) => {
                current.file = Some(file);
                current.id = id;
                current.continued = true;
                current.rotated_us = Some(i64::MIN);
            }
            None => {
                self.counts.cut_lines += u64::from(current.has_cut_line());
                self.parts.pop_back();
            }
        }
        let number = self.number();
        self.parts.push_back(Part::new(number, truncated)?);
        Ok(())
    }

    /// Reads all files, the oldest first. Returns whether all were read to their end.
    fn read(&mut self, budget: &mut Budget, found: &mut Vec<Found>) -> io::Result<bool> {
        for index in 0..self.parts.len() {
            let mut lines = Lines {
                path: &self.path,
                parser: &mut *self.parser,
                counts: &mut self.counts,
                found: &mut *found,
                budget: &mut *budget,
            };
            let part = &mut self.parts[index];
            let carried = part.carried_from.is_some();
            part.read(&mut lines)?;
            let at_end = part.at_end;
            let before = index.checked_sub(1).filter(|_| carried && part.carried_from.is_none());
            if let Some(before) = before {
                self.parts[before].finish_carried();
            }
            self.carry(index);
            if !at_end {
                // The others were not looked at.
                self.parts.iter_mut().skip(index + 1).for_each(|part| part.at_end = false);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Carries the incomplete last line of a copy to the truncated file, where the rest of it is.
    fn carry(&mut self, index: usize) {
        if index + 1 >= self.parts.len() || !self.parts[index].at_end || !self.parts[index].continued {
            return;
        }
        let (before, after) = (&mut self.parts[index], index + 1);
        if !before.has_cut_line() {
            return;
        }
        let place = Place { file: before.number, offset: before.line_start };
        let (partial, skipping) = (std::mem::take(&mut before.partial), before.skipping);
        let next = &mut self.parts[after];
        if next.read_to == 0 && next.carried_from.is_none() {
            next.carried_from = Some(place);
            next.partial = partial;
            next.skipping = skipping;
        }
    }

    /// If the log has a new file, begins to read it, or those that were rotated before. Returns whether it has. Call it when all files were
    /// read to their end.
    fn follow_rotation(&mut self, now_us: i64) -> io::Result<bool> {
        let Some(file) = open(&self.path)? else { return Ok(false) };
        let Some(last) = self.parts.back_mut() else {
            self.push_current()?;
            return Ok(true);
        };
        let id = FileId::of(&file.metadata()?);
        if last.id == id {
            return Ok(false);
        }
        last.rotated_us.get_or_insert(now_us);
        let siblings = siblings(&self.path)?;
        let age = match (siblings.iter().find(|sibling| sibling.id == last.id), &last.file) {
            (Some(sibling), _) => Some(sibling.age.clone()),
            (None, Some(file)) => Some(Age::of(modified_ns(&file.metadata()?))),
            (None, None) => None,
        };
        // Room for at least one more.
        while self.parts.len() > MAX_FILES - 2 {
            self.forget_oldest();
        }
        if let Some(age) = age
            && !self.push_files_after(&age, id, &siblings, now_us)?
        {
            return Ok(true);
        }
        self.counts.rotations += 1;
        let number = self.number();
        self.parts.push_back(Part::new(number, file)?);
        Ok(true)
    }

    /// Begins to read rotated files that are younger than this, the oldest first. Returns whether there was room for all, and for the
    /// current one.
    fn push_files_after(
        &mut self,
        age: &Age,
        current: FileId,
        siblings: &[Sibling],
        now_us: i64,
    ) -> io::Result<bool> {
        let is_later = |sibling: &&Sibling| sibling.age > *age && sibling.name != RotatedName::Other;
        for sibling in siblings.iter().filter(is_later) {
            if sibling.id == current || self.parts.iter().any(|part| part.id == sibling.id) {
                continue;
            }
            if self.parts.len() >= MAX_FILES - 1 {
                return Ok(false);
            }
            if sibling.name == RotatedName::Compressed {
                self.counts.lost_rotations += 1;
                continue;
            }
            let finished = self.finished.iter().find(|finished| finished.id() == sibling.id).cloned();
            let position = match finished {
                Some(position) if sibling.open(position.offset, position.head())?.is_some() => position,
                // Another file has its inode.
                _ => Position::default(),
            };
            let Some(file) = sibling.open(position.offset, position.head())? else { continue };
            self.counts.rotations += u64::from(position == Position::default());
            self.push_rotated(file, &position, now_us)?;
        }
        Ok(true)
    }

    /// Closes rotated files that were read to their end some time ago, and forgets those that the parser does not need.
    fn finish_rotated(&mut self, now_us: i64) {
        let last = self.parts.len().saturating_sub(1);
        for part in self.parts.iter_mut().take(last) {
            let rotated_us = part.rotated_us.unwrap_or(now_us);
            if part.file.is_some()
                && part.at_end
                && (part.continued || now_us.saturating_sub(rotated_us) >= LINGER_US)
            {
                part.file = None;
                self.counts.cut_lines += u64::from(!part.continued && part.has_cut_line());
                part.partial.clear();
                if !part.continued {
                    part.line_start = part.read_to;
                }
            }
        }
        let needs = self.parser.needs_from().map(|offset| Place::of_offset(offset).file);
        while let [first, _, ..] = &*self.parts.make_contiguous() {
            let needed = first.file.is_some()
                || first.line_start < first.read_to
                || needs.is_some_and(|file| file <= first.number);
            if needed && self.parts.len() <= MAX_FILES {
                break;
            }
            self.forget_oldest();
        }
    }

    /// Forgets the oldest file, and remembers how far it was read.
    fn forget_oldest(&mut self) {
        let Some(part) = self.parts.pop_front() else { return };
        if part.file.is_some() {
            self.counts.lost_rotations += u64::from(!part.at_end);
            self.counts.cut_lines += u64::from(part.at_end && !part.continued && part.has_cut_line());
        }
        self.finished.retain(|finished| finished.id() != part.id);
        if part.head.bytes > 0 {
            self.finished.push_back(part.position(None));
        }
        if self.finished.len() > MAX_FINISHED {
            self.finished.pop_front();
        }
    }
}

impl std::fmt::Debug for LogFollower {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LogFollower").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Opens a file; `None` if it is missing.
fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Finds the file of a position among rotated files.
fn find(siblings: &[Sibling], position: &Position) -> io::Result<Option<File>> {
    match siblings.iter().find(|sibling| sibling.id == position.id()) {
        Some(sibling) => sibling.open(position.offset, position.head()),
        None => Ok(None),
    }
}

/// Finds the copy of a truncated file: the newest rotated file, if it begins with the same bytes and has all that was read.
fn find_copy(
    siblings: &[Sibling],
    truncated: FileId,
    read_to: u64,
    head: Head,
) -> io::Result<Option<(File, FileId)>> {
    let rotated = |sibling: &&Sibling| sibling.name == RotatedName::Rotated && sibling.id != truncated;
    match siblings.iter().rev().find(rotated) {
        Some(newest) => Ok(newest.open(read_to, head)?.map(|file| (file, newest.id))),
        None => Ok(None),
    }
}
