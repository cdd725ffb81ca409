//! Selects records of a store: those that were received in a time range and match a flow filter.
//!
//! 1. The footers of the files of each hour are read, the latest hour first, until there are more rows than wanted. Row groups
//!    outside the range are skipped by the bounds of their times of reception.
//! 2. The latest row groups are kept, at most [`Query::max_rows`] rows. If others remain, the selection is partial: it starts
//!    after the last row of the others.
//! 3. Rows outside the range, and those that the filter does not select, are marked. Only row groups at the ends of the range are
//!    read for that, unless there is a filter.
//!
//! Analyses read a [`Selection`] as they read whole files, and leave marked rows out. A file that cannot be read is left out, and
//! named.
//!
//! **Memory**: one bit per row, and 100 bytes per file and row group.

mod columns;
#[cfg(test)]
mod tests;

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use thalweg_measure::filter::FlowFilter;
use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::RecordBatch;

use crate::read::{BLOCK, Bounds, ReadError, RowSet, Source, field};
use crate::schema::Dataset;
use crate::store::layout::{hour_start_us, hours, partition};
use columns::{FilterBlock, FilterColumns, FilterRow};

/// One hour.
const HOUR_US: i64 = 3_600_000_000;

/// Which records to select.
#[derive(Clone, Debug)]
pub struct Query {
    /// Directory of the store.
    pub directory: PathBuf,
    /// Start of the time of reception, microseconds since 1970 (UTC).
    pub start_us: i64,
    /// End of it, exclusive.
    pub end_us: i64,
    /// Which records, compiled for [`thalweg_measure::filter::RECORDS`].
    pub filter: FlowFilter,
    /// Maximum number of rows to read.
    pub max_rows: u64,
}

/// Why records cannot be selected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// A directory cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The progress callback stopped the selection.
    #[error("interrupted")]
    Interrupted,
}

/// A file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub error: String,
}

/// Selected records.
#[derive(Debug)]
pub struct Selection {
    sources: Vec<Source>,
    /// Bounds of the time of reception, of each source.
    bounds: Vec<Bounds>,
    /// Rows that are not selected; `None` if all are.
    left_out: Option<RowSet>,
    unreadable: Vec<Unreadable>,
    covered_start_us: i64,
    is_partial: bool,
    rows: u64,
    selected: u64,
}

impl Selection {
    /// Selects records. A store without records of flows has none.
    ///
    /// Calls `progress` after each file and each block of rows, with the rows read so far. If it stops the work while files are
    /// listed, the selection is partial.
    ///
    /// # Errors
    /// If the directory cannot be read, or `progress` stops the work later.
    pub fn new(
        query: &Query,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Selection, SelectError> {
        let listed = Listed::new(query, progress)?;
        let mut selection = listed.selection(query);
        selection.mark(query, progress)?;
        Ok(selection)
    }

    /// Returns the number of files with selected row groups.
    pub fn files(&self) -> usize {
        self.sources.iter().filter(|source| source.groups().next().is_some()).count()
    }

    /// Returns the files that cannot be read.
    pub fn unreadable(&self) -> &[Unreadable] {
        &self.unreadable
    }

    /// Whether rows at the start of the range are left out because there are too many.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Returns the start of the range that the selection covers.
    pub fn covered_start_us(&self) -> i64 {
        self.covered_start_us
    }

    /// Returns the number of rows in the row groups that are read.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the number of selected rows.
    pub fn selected(&self) -> u64 {
        self.selected
    }

    /// Leaves out a file that an analysis could not read. Returns whether it was part of the selection.
    pub fn leave_out_file(&mut self, error: &ReadError) -> bool {
        let Some(source) = self.sources.iter().position(|source| source.path == error.path()) else {
            return false;
        };
        let is_read = self.sources[source].groups().next().is_some();
        if is_read {
            self.skip_file(source, error);
        }
        is_read
    }

    pub(crate) fn sources(&self) -> &[Source] {
        &self.sources
    }

    pub(crate) fn left_out(&self) -> Option<&RowSet> {
        self.left_out.as_ref()
    }

    /// Skips all row groups of a file.
    fn skip_file(&mut self, source: usize, error: &ReadError) {
        let groups: Vec<usize> = self.sources[source].groups().collect();
        for group in groups {
            let (rows, selected) = self.count(&self.sources[source], group);
            self.rows -= rows;
            self.selected -= selected;
        }
        let source = &mut self.sources[source];
        source.skipped = vec![true; source.row_groups.len()];
        self.unreadable.push(unreadable(error));
    }

    /// Returns the rows of a row group, and the selected ones.
    fn count(&self, source: &Source, group: usize) -> (u64, u64) {
        let rows = source.row_groups[group];
        let Some(left_out) = &self.left_out else { return (rows, rows) };
        let left_out = left_out.of_group(source, group);
        (rows, (0..rows).filter(|&row| !left_out.contains(row)).count() as u64)
    }

    /// Marks the rows that are not selected.
    fn mark(
        &mut self,
        query: &Query,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), SelectError> {
        let range = self.covered_start_us..query.end_us;
        let is_within = |bounds: &Option<(i64, i64)>| {
            bounds.is_some_and(|(min, max)| range.contains(&min) && range.contains(&max))
        };
        let mut marks =
            Marks { block: FilterBlock::new(), received: vec![0; BLOCK].into(), done: 0, marked: 0 };
        for number in 0..self.sources.len() {
            let groups: Vec<usize> = self.sources[number].groups().collect();
            for group in groups {
                if query.filter.is_empty() && is_within(&self.bounds[number][group]) {
                    continue;
                }
                let left_out = self.left_out.get_or_insert_with(|| RowSet::new(&self.sources));
                match marks.read(&self.sources[number], group, query, range.start, left_out, progress) {
                    Ok(()) => self.selected -= marks.marked,
                    Err(MarkError::Read(error)) => {
                        self.selected -= marks.marked;
                        self.skip_file(number, &error);
                        break;
                    }
                    Err(MarkError::Interrupted) => return Err(SelectError::Interrupted),
                }
            }
        }
        Ok(())
    }
}

enum MarkError {
    Read(ReadError),
    Interrupted,
}

impl From<ReadError> for MarkError {
    fn from(error: ReadError) -> MarkError {
        MarkError::Read(error)
    }
}

/// Marks rows, with buffers of a block.
struct Marks {
    block: FilterBlock,
    received: Box<[i64]>,
    /// Rows read.
    done: u64,
    /// Rows of the row group that were marked.
    marked: u64,
}

impl Marks {
    /// Marks the rows of a row group that are not selected, and counts them.
    fn read(
        &mut self,
        source: &Source,
        number: usize,
        query: &Query,
        start_us: i64,
        left_out: &RowSet,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), MarkError> {
        self.marked = 0;
        let group = source.open(number)?;
        let mut received = group.column(&field::RECEIVED)?;
        let mut columns = FilterColumns::open(&group, &query.filter)?;
        let (first_row, mut at) = (source.first_row(number), 0);
        while at < group.rows {
            let rows = (group.rows - at).min(BLOCK as u64) as usize;
            received.read(&mut self.received[..rows])?;
            columns.read(&mut self.block, rows)?;
            for row in 0..rows {
                let is_within = (start_us..query.end_us).contains(&self.received[row]);
                if !is_within || !query.filter.matches(&FilterRow { block: &self.block, row }) {
                    left_out.insert(first_row + at + row as u64);
                    self.marked += 1;
                }
            }
            at += rows as u64;
            self.done += rows as u64;
            if progress(self.done).is_break() {
                return Err(MarkError::Interrupted);
            }
        }
        Ok(())
    }
}

/// A file whose footer was read.
struct ListedFile {
    source: Source,
    bounds: Bounds,
    /// Bounds of row groups that have none: files are partitioned by the hour of reception.
    hour_us: (i64, i64),
}

impl ListedFile {
    /// Returns the first and the last time of reception in a row group.
    fn bounds(&self, group: usize) -> (i64, i64) {
        self.bounds[group].unwrap_or(self.hour_us)
    }
}

/// The files of a time range.
#[derive(Default)]
struct Listed {
    files: Vec<ListedFile>,
    unreadable: Vec<Unreadable>,
    /// Start of the hours that were not listed, exclusive.
    listed_from_us: Option<i64>,
}

impl Listed {
    /// Reads the footers of the hours in the range, the latest first, until there are enough rows.
    fn new(query: &Query, progress: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<Listed, SelectError> {
        let dataset = query.directory.join(RecordBatch::NAME);
        let all = match hours(&dataset) {
            Ok(all) => all,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Listed::default()),
            Err(source) => return Err(SelectError::Directory { path: dataset, source }),
        };
        let name = |us: i64| partition(Timestamp((us.max(0) as u64).saturating_mul(1000)));
        let range = name(query.start_us)..=name(query.end_us.saturating_sub(1));
        let mut listed = Listed::default();
        let (mut rows, mut has_stopped) = (0, false);
        for (names, folder) in all.iter().rev().filter(|(names, _)| range.contains(names)) {
            let Some(start_us) = hour_start_us(names) else { continue };
            if rows > query.max_rows || has_stopped {
                return Ok(listed);
            }
            rows += listed.add_hour(query, start_us, folder, &mut || {
                has_stopped |= progress(0).is_break();
            })?;
            listed.listed_from_us = Some(start_us);
        }
        listed.listed_from_us = None;
        Ok(listed)
    }

    /// Reads the footers of an hour. Returns the rows of its row groups in the range.
    fn add_hour(
        &mut self,
        query: &Query,
        start_us: i64,
        folder: &Path,
        each: &mut dyn FnMut(),
    ) -> Result<u64, SelectError> {
        let failed = |source| SelectError::Directory { path: folder.to_owned(), source };
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            // Retention has removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(failed(error)),
        };
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "parquet") {
                paths.push(path);
            }
        }
        paths.sort();
        let mut rows = 0;
        for path in paths {
            each();
            match Source::read_bounds(&path, &field::RECEIVED) {
                Ok((source, bounds)) => {
                    let mut file = ListedFile { source, bounds, hour_us: (start_us, start_us + HOUR_US - 1) };
                    let is_outside = |group| {
                        let (min, max) = file.bounds(group);
                        max < query.start_us || min >= query.end_us
                    };
                    file.source.skipped = (0..file.bounds.len()).map(is_outside).collect();
                    rows += file.source.rows();
                    self.files.push(file);
                }
                Err(error) if is_removed(&error) => {}
                Err(error) => self.unreadable.push(unreadable(&error)),
            }
        }
        Ok(rows)
    }

    /// Keeps the latest row groups.
    fn selection(mut self, query: &Query) -> Selection {
        let mut groups: Vec<(i64, usize, usize)> = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            groups.extend(file.source.groups().map(|group| (file.bounds(group).1, number, group)));
        }
        groups.sort_unstable_by_key(|&group| std::cmp::Reverse(group));
        let mut covered_start_us = self.listed_from_us.unwrap_or(query.start_us).max(query.start_us);
        let mut rows = 0;
        for (latest_us, number, group) in groups {
            let source = &mut self.files[number].source;
            let of_group = source.row_groups[group];
            if rows > 0 && rows + of_group > query.max_rows {
                covered_start_us = covered_start_us.max(latest_us + 1);
                source.skipped[group] = true;
                // All that follow are older.
                rows = query.max_rows;
            } else {
                rows += of_group;
            }
        }
        let (mut sources, mut bounds) = (Vec::new(), Vec::new());
        for mut file in self.files {
            for group in 0..file.bounds.len() {
                let is_before = file.bounds(group).1 < covered_start_us;
                file.source.skipped[group] |= is_before;
            }
            sources.push(file.source);
            bounds.push(file.bounds);
        }
        Source::number(&mut sources);
        let rows = sources.iter().map(Source::rows).sum();
        Selection {
            sources,
            bounds,
            left_out: None,
            unreadable: self.unreadable,
            covered_start_us,
            is_partial: covered_start_us > query.start_us,
            rows,
            selected: rows,
        }
    }
}

/// Whether a file has been removed since it was listed.
fn is_removed(error: &ReadError) -> bool {
    matches!(error, ReadError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
}

fn unreadable(error: &ReadError) -> Unreadable {
    let path = error.path().to_owned();
    // The message starts with the path.
    let text = error.to_string();
    let message = text.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&text).to_owned();
    Unreadable { path, error: message }
}
