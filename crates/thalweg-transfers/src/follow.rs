//! Reads a log across rotation, truncation and restarts.
//!
//! The caller polls, and saves the [`Position`] together with the reports of the transfers that were found. Then no transfer is lost and
//! none is reported twice, whenever the process ends:
//!
//! - After a restart, reading begins at `needs_from`, so that a parser knows the sessions that were open; transfers whose last line ends
//!   at or before `offset` are not returned again.
//! - **Rotation by rename**: the old file is read to its end, and kept open for [`LINGER_US`] because writers may still have it open. Then
//!   its unfinished last line is dropped and counted. If the process was down, the old file is found by its inode among `NAME.*` and
//!   `NAME-*`. Files that were rotated in between are read too, if their names end in a number or a date.
//! - **Truncation** (`copytruncate`): seen by the length or by the first bytes. The rest is read from the newest rotated file that begins
//!   with the same bytes; a line that was cut continues at the beginning of the truncated file.
//! - A file that is missing is waited for.
//!
//! Lost are: lines that logrotate loses itself between copying and truncating; those of a file that was compressed before it was read to
//! its end; those of a truncated file without a copy; and those of a file that was truncated before a line of it was read, or twice
//! between two polls. Truncated and compressed files are in the counts.
//!
//! Cost: memory is a chunk of 64 KiB, an incomplete line of at most [`MAX_LINE_BYTES`], and what the parser keeps. A poll without news
//! costs a few system calls.

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

use crate::logs::{LogParser, LoggedTransfer};
use head::Head;
use part::{Lines, Part, Place};
use siblings::{Age, FileId, RotatedName, Sibling, siblings};

/// Maximum length of a line in bytes. Longer ones are skipped and counted.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// How long a rotated file is read after its log has a new file, in microseconds: a minute. Servers reopen their log when they are told to,
/// and worker processes when they finish what they do.
pub const LINGER_US: i64 = 60_000_000;

/// Maximum number of files of a log that are kept in mind: the current one, and rotated ones that are read or that a parser needs.
pub const MAX_FILES: usize = 16;

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
    /// Rotated files that are not finished, or that the parser still needs; the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Position>,
}

impl Position {
    fn id(&self) -> FileId {
        FileId { device: self.device, inode: self.inode }
    }

    fn head(&self) -> Head {
        Head { bytes: self.head_bytes, digest: self.head_digest }
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
    /// Rotated files that could not be found any more, or were compressed before they were read.
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
    /// Rotated files, and the current one last.
    parts: VecDeque<Part>,
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
            next_number: 0,
            counts: FollowCounts::default(),
        }
    }

    /// Reads at most `max_bytes` of what was written, and appends the transfers that ended. `now_us` is the present time in microseconds
    /// since 1970.
    ///
    /// # Errors
    /// If a file cannot be read. A missing file is no error.
    pub fn poll(&mut self, now_us: i64, max_bytes: u64, found: &mut Vec<Found>) -> io::Result<()> {
        self.parser.set_now(now_us);
        if self.start.is_some() && !self.begin(now_us)? {
            return Ok(());
        }
        let mut budget = max_bytes;
        loop {
            self.follow_truncation()?;
            let at_end = self.read(&mut budget, found)?;
            if !at_end || !self.follow_rotation(now_us)? {
                break;
            }
        }
        self.finish_rotated(now_us);
        Ok(())
    }

    /// Returns how far the log was read; `None` before its file was first opened.
    pub fn position(&self) -> Option<Position> {
        if let Some(Start::At(position)) = &self.start {
            return Some(position.clone());
        }
        let needs = self.parser.needs_from().map(Place::of_offset);
        let mut positions: Vec<Position> = self.parts.iter().map(|part| part.position(needs)).collect();
        let current = positions.pop()?;
        Some(Position { earlier: positions, ..current })
    }

    /// Returns what was read since the start.
    pub fn counts(&self) -> FollowCounts {
        FollowCounts { dropped_sessions: self.parser.dropped_sessions(), ..self.counts.clone() }
    }

    /// Opens the first files. Returns whether there are any.
    fn begin(&mut self, now_us: i64) -> io::Result<bool> {
        match self.start.clone() {
            Some(Start::At(position)) => return self.resume(&position, now_us),
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
        self.start = None;
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
            self.counts.lost_rotations += 1;
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
    fn read(&mut self, budget: &mut u64, found: &mut Vec<Found>) -> io::Result<bool> {
        for index in 0..self.parts.len() {
            let mut lines = Lines {
                path: &self.path,
                parser: &mut *self.parser,
                counts: &mut self.counts,
                found: &mut *found,
            };
            let part = &mut self.parts[index];
            let carried = part.carried_from.is_some();
            part.read(budget, &mut lines)?;
            let at_end = part.at_end;
            if carried && part.carried_from.is_none() {
                self.parts[index - 1].finish_carried();
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

    /// If the log has a new file, begins to read it. Returns whether it has.
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
        self.push_files_between(id, now_us)?;
        self.counts.rotations += 1;
        let number = self.number();
        self.parts.push_back(Part::new(number, file)?);
        Ok(true)
    }

    /// Begins to read files that were rotated after the last one that is known, and before the current one.
    fn push_files_between(&mut self, current: FileId, now_us: i64) -> io::Result<()> {
        let siblings = siblings(&self.path)?;
        let Some(last) = self.parts.back() else { return Ok(()) };
        let age = match (siblings.iter().find(|sibling| sibling.id == last.id), &last.file) {
            (Some(sibling), _) => sibling.age.clone(),
            (None, Some(file)) => Age::of(&file.metadata()?),
            (None, None) => return Ok(()),
        };
        let known: Vec<FileId> = self.parts.iter().map(|part| part.id).collect();
        for sibling in siblings.iter().filter(|sibling| sibling.age > age) {
            if sibling.id == current || known.contains(&sibling.id) {
                continue;
            }
            match sibling.name {
                RotatedName::Rotated => {
                    let Some(file) = sibling.open(0, Head::default())? else { continue };
                    self.counts.rotations += 1;
                    let number = self.number();
                    let mut part = Part::new(number, file)?;
                    part.rotated_us = Some(now_us);
                    self.parts.push_back(part);
                }
                RotatedName::Compressed => self.counts.lost_rotations += 1,
                RotatedName::Other => {}
            }
        }
        Ok(())
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
            self.parts.pop_front();
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
