//! Records into groups, a row group at a time.
//!
//! With one column, what a dictionary's entries sum lies together, in the cache, and nothing is hashed for a record:
//! the sums of a row group go into the whole once, by value. With several columns, each record goes to its group.

use super::groups::{Groups, Row};
use super::key::{KeyColumn, OpenColumn, Place};
use super::sums::{CounterColumns, Counters, Sums};
use super::{Key, TopError};
use crate::read::{BLOCK, ReadError, RowGroup};

/// One worker.
pub(super) struct Grouper<const W: usize> {
    key: Vec<(Key, Place)>,
    pub(super) groups: Groups<W>,
    /// Of all records, each once.
    pub(super) whole: Sums,
    counters: Counters,
    /// Of the first end and of the second.
    ends: [End<W>; 2],
}

impl<const W: usize> Grouper<W> {
    pub(super) fn new(key: &[Key], places: &[Place], groups: Groups<W>) -> Grouper<W> {
        Grouper {
            key: key.iter().copied().zip(places.iter().copied()).collect(),
            groups,
            whole: Sums::ZERO,
            counters: Counters::new(),
            ends: [End::new(), End::new()],
        }
    }

    /// Takes the records of a row group; `each` is told how many after every block, and may stop.
    pub(super) fn read(
        &mut self,
        group: &RowGroup<'_>,
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
            for record in self.counters.records(rows) {
                self.whole.add(&record);
            }
            match &mut columns[..] {
                [(column, other)] => self.one_column(column, other.as_mut(), rows)?,
                columns => self.several_columns(columns, rows)?,
            }
            self.groups.keep_within();
            each(self, rows as u64)?;
            left -= rows as u64;
        }
        for end in &mut self.ends {
            end.empty_into(&mut self.groups);
        }
        self.groups.keep_within();
        Ok(())
    }

    /// Sums by entries of the dictionary, also of that of the other end, where it differs.
    fn one_column(
        &mut self,
        column: &mut OpenColumn,
        other: Option<&mut OpenColumn>,
        rows: usize,
    ) -> Result<(), ReadError> {
        let (place, [first, second]) = (self.key[0].1, &mut self.ends);
        first.number(column, place, rows)?;
        for (&entry, record) in first.numbers.iter().zip(self.counters.records(rows)) {
            first.entries[entry as usize].sums.add(&record);
        }
        let Some(other) = other else { return Ok(()) };
        second.number(other, place, rows)?;
        let ends = first.numbers.iter().zip(&second.numbers);
        for ((&one, &other), record) in ends.zip(self.counters.records(rows)) {
            let other = &mut second.entries[other as usize];
            if first.entries[one as usize].key != other.key {
                other.sums.add(&record);
            }
        }
        Ok(())
    }

    /// Puts keys together, column by column.
    fn several_columns(
        &mut self,
        columns: &mut [(OpenColumn, Option<OpenColumn>)],
        rows: usize,
    ) -> Result<(), ReadError> {
        let [first, second] = &mut self.ends;
        let is_either = columns.iter().any(|(_, other)| other.is_some());
        for ((column, other), &(_, place)) in columns.iter_mut().zip(&self.key) {
            column.read(rows, |(row, bits)| {
                place.put(&mut first.keys[row], bits);
                if other.is_none() && is_either {
                    place.put(&mut second.keys[row], bits);
                }
            })?;
            if let Some(other) = other {
                other.read(rows, |(row, bits)| place.put(&mut second.keys[row], bits))?;
            }
        }
        for (&key, sums) in first.keys.iter().zip(self.counters.records(rows)) {
            self.groups.add(Row { key, sums });
        }
        if is_either {
            let ends = first.keys.iter().zip(&second.keys);
            for ((one, other), sums) in ends.zip(self.counters.records(rows)) {
                if one != other {
                    self.groups.add(Row { key: *other, sums });
                }
            }
        }
        Ok(())
    }

    /// Memory that entries take.
    pub(super) fn entries_bytes(&self) -> usize {
        self.ends.iter().map(|end| end.entries.capacity() * size_of::<Row<W>>()).sum()
    }
}

/// What is held of one end.
struct End<const W: usize> {
    /// Keys of the rows of a block, with several columns.
    keys: Vec<[u64; W]>,
    /// Entries of the rows of a block, with one column.
    numbers: Vec<u32>,
    /// What each entry of the column's dictionaries sums in a row group; without a dictionary, each row has an entry.
    entries: Vec<Row<W>>,
}

impl<const W: usize> End<W> {
    fn new() -> End<W> {
        End { keys: vec![[0; W]; BLOCK], numbers: vec![0; BLOCK], entries: Vec::new() }
    }

    /// The entries of the next rows.
    fn number(&mut self, column: &mut OpenColumn, place: Place, rows: usize) -> Result<(), ReadError> {
        let entries = &mut self.entries;
        let entry = |bits| {
            let mut key = [0; W];
            place.put(&mut key, bits);
            entries.push(Row { key, sums: Sums::ZERO });
            entries.len() as u32 - 1
        };
        column.number(entry, &mut self.numbers[..rows])
    }

    /// Gives what is summed to the groups.
    fn empty_into(&mut self, groups: &mut Groups<W>) {
        // An entry that no record has is no group.
        self.entries.drain(..).filter(|entry| entry.sums.flows > 0).for_each(|entry| groups.add(entry));
    }
}
