//! Groups the records of row groups.
//!
//! With one key column, sums are kept per dictionary entry, contiguous in the cache and without hashing per record. They
//! are added to the groups once per row group. With several columns, each record is added to its group.

use super::groups::{Groups, Row};
use super::key::{KeyColumn, OpenColumn, Position};
use super::sums::{CounterColumns, Counters, Sums};
use super::{Key, TopError};
use crate::read::{BLOCK, GroupRows, ReadError, RowGroup};

/// The state of one worker.
pub(super) struct Grouper<const W: usize> {
    key: Vec<(Key, Position)>,
    pub(super) groups: Groups<W>,
    /// Sums over all records, each counted once.
    pub(super) whole: Sums,
    counters: Counters,
    /// State of the first end and of the other end.
    ends: [End<W>; 2],
}

impl<const W: usize> Grouper<W> {
    pub(super) fn new(key: &[Key], positions: &[Position], groups: Groups<W>) -> Grouper<W> {
        Grouper {
            key: key.iter().copied().zip(positions.iter().copied()).collect(),
            groups,
            whole: Sums::ZERO,
            counters: Counters::new(),
            ends: [End::new(), End::new()],
        }
    }

    /// Adds the records of a row group, except those that `left_out` names. Calls `each` after every block with its number of
    /// rows; it may stop the work.
    pub(super) fn read(
        &mut self,
        group: &RowGroup<'_>,
        left_out: Option<&GroupRows<'_>>,
        mut each: impl FnMut(&Grouper<W>, u64) -> Result<(), TopError>,
    ) -> Result<(), TopError> {
        let mut counters = CounterColumns::open(group)?;
        let open = |column: KeyColumn| column.open(group);
        let columns =
            self.key.iter().map(|(key, _)| Ok((open(key.column)?, key.either.map(open).transpose()?)));
        let mut columns = columns.collect::<Result<Vec<_>, ReadError>>()?;
        let mut left = group.rows;
        while left > 0 {
            let rows = left.min(BLOCK as u64) as usize;
            self.counters.read(&mut counters, rows)?;
            if let Some(left_out) = left_out {
                let done = group.rows - left;
                self.counters.leave_out(rows, |row| left_out.contains(done + row as u64));
            }
            for record in self.counters.records(rows) {
                self.whole.add(&record);
            }
            match &mut columns[..] {
                [(column, other)] => self.one_column(column, other.as_mut(), rows)?,
                columns => self.several_columns(columns, rows)?,
            }
            self.groups.apply_if_full();
            each(self, rows as u64)?;
            left -= rows as u64;
        }
        for end in &mut self.ends {
            end.drain_into(&mut self.groups);
        }
        self.groups.apply_if_full();
        Ok(())
    }

    /// Sums by dictionary entry, and by that of the other end if it differs.
    fn one_column(
        &mut self,
        column: &mut OpenColumn,
        other: Option<&mut OpenColumn>,
        rows: usize,
    ) -> Result<(), ReadError> {
        let (position, [first, second]) = (self.key[0].1, &mut self.ends);
        first.number(column, position, rows)?;
        for (&entry, record) in first.numbers.iter().zip(self.counters.records(rows)) {
            first.entries[entry as usize].sums.add(&record);
        }
        let Some(other) = other else { return Ok(()) };
        second.number(other, position, rows)?;
        let ends = first.numbers.iter().zip(&second.numbers);
        for ((&one, &other), record) in ends.zip(self.counters.records(rows)) {
            let other = &mut second.entries[other as usize];
            if first.entries[one as usize].key != other.key {
                other.sums.add(&record);
            }
        }
        Ok(())
    }

    /// Composes keys, column by column.
    fn several_columns(
        &mut self,
        columns: &mut [(OpenColumn, Option<OpenColumn>)],
        rows: usize,
    ) -> Result<(), ReadError> {
        let [first, second] = &mut self.ends;
        let is_either = columns.iter().any(|(_, other)| other.is_some());
        for ((column, other), &(_, position)) in columns.iter_mut().zip(&self.key) {
            column.read(rows, |(row, bits)| {
                position.put(&mut first.keys[row], bits);
                if other.is_none() && is_either {
                    position.put(&mut second.keys[row], bits);
                }
            })?;
            if let Some(other) = other {
                other.read(rows, |(row, bits)| position.put(&mut second.keys[row], bits))?;
            }
        }
        for (&key, sums) in first.keys.iter().zip(self.counters.records(rows)) {
            if sums.flows > 0 {
                self.groups.add(Row { key, sums });
            }
        }
        if is_either {
            let ends = first.keys.iter().zip(&second.keys);
            for ((one, other), sums) in ends.zip(self.counters.records(rows)) {
                if one != other && sums.flows > 0 {
                    self.groups.add(Row { key: *other, sums });
                }
            }
        }
        Ok(())
    }

    /// Returns the memory of the dictionary entries.
    pub(super) fn entries_bytes(&self) -> usize {
        self.ends.iter().map(|end| end.entries.capacity() * size_of::<Row<W>>()).sum()
    }
}

/// State of one end.
struct End<const W: usize> {
    /// Keys of the rows of a block, for several columns.
    keys: Vec<[u64; W]>,
    /// Entry numbers of the rows of a block, for one column.
    numbers: Vec<u32>,
    /// Sums per dictionary entry of the row group. Without a dictionary, each row has an entry.
    entries: Vec<Row<W>>,
}

impl<const W: usize> End<W> {
    fn new() -> End<W> {
        End { keys: vec![[0; W]; BLOCK], numbers: vec![0; BLOCK], entries: Vec::new() }
    }

    /// Reads the entry numbers of the next rows.
    fn number(&mut self, column: &mut OpenColumn, position: Position, rows: usize) -> Result<(), ReadError> {
        let entries = &mut self.entries;
        let entry = |bits| {
            let mut key = [0; W];
            position.put(&mut key, bits);
            entries.push(Row { key, sums: Sums::ZERO });
            entries.len() as u32 - 1
        };
        column.number(entry, &mut self.numbers[..rows])
    }

    /// Adds the sums to the groups.
    fn drain_into(&mut self, groups: &mut Groups<W>) {
        // Entries without records are not groups.
        self.entries.drain(..).filter(|entry| entry.sums.flows > 0).for_each(|entry| groups.add(entry));
    }
}
