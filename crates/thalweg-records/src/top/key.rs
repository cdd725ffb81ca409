//! The columns that records can be grouped by, and the layout of keys.

use thalweg_wire::flow_export::{Address, Format};

use crate::read::field::{self, Field};
use crate::read::{BLOCK, Column, ReadError, RowGroup, Schema};

/// A component of a group's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// An address, possibly empty.
    Address(Address),
    /// A number, such as a port or an AS number.
    Number(u32),
    /// An export format.
    Format(Format),
}

impl Value {
    /// Returns the bits that encode it in a key.
    pub(super) fn bits(self) -> u128 {
        match self {
            Value::Address(address) => address.0,
            Value::Number(number) => number.into(),
            Value::Format(format) => format as u128,
        }
    }
}

/// A column by value type.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Address(&'static Field<Address>),
    Short(&'static Field<i32>),
    Long(&'static Field<i64>),
    Format(&'static Field<Format>),
}

/// A column that records can be grouped by.
#[derive(Clone, Copy, Debug)]
pub struct KeyColumn(Kind);

const COLUMNS: [Kind; 14] = [
    Kind::Address(&field::EXPORTER),
    Kind::Format(&field::FORMAT),
    Kind::Address(&field::SRC),
    Kind::Address(&field::DST),
    Kind::Short(&field::SRC_PORT),
    Kind::Short(&field::DST_PORT),
    Kind::Short(&field::PROTOCOL),
    Kind::Short(&field::TOS),
    Kind::Long(&field::INGRESS_INTERFACE),
    Kind::Long(&field::EGRESS_INTERFACE),
    Kind::Long(&field::SRC_AS),
    Kind::Long(&field::DST_AS),
    Kind::Address(&field::NEXT_HOP),
    Kind::Short(&field::VLAN_ID),
];

/// Length of the longest key in words: four addresses of two words, ten numbers of half a word.
pub(super) const MAX_WORDS: usize = 4 * 2 + 10 / 2;

impl KeyColumn {
    /// Returns the column with this name; `None` if it does not exist or cannot be grouped by.
    #[must_use]
    pub fn named(name: &str) -> Option<KeyColumn> {
        COLUMNS.into_iter().map(KeyColumn).find(|column| column.name() == name)
    }

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Address(field) => field.name,
            Kind::Short(field) => field.name,
            Kind::Long(field) => field.name,
            Kind::Format(field) => field.name,
        }
    }

    pub(super) fn is_address(self) -> bool {
        matches!(self.0, Kind::Address(_))
    }

    pub(super) fn check(self, schema: &Schema<'_>) -> Result<(), ReadError> {
        match self.0 {
            Kind::Address(field) => schema.find(field),
            Kind::Short(field) => schema.find(field),
            Kind::Long(field) => schema.find(field),
            Kind::Format(field) => schema.find(field),
        }
        .map(drop)
    }

    pub(super) fn open(self, group: &RowGroup<'_>) -> Result<OpenColumn, ReadError> {
        Ok(match self.0 {
            Kind::Address(field) => OpenColumn::Address(group.column(field)?),
            Kind::Short(field) => OpenColumn::Short(group.column(field)?),
            Kind::Long(field) => OpenColumn::Long(group.column(field)?),
            Kind::Format(field) => OpenColumn::Format(group.column(field)?),
        })
    }

    /// Returns the value that was encoded in these bits.
    fn value(self, bits: u128) -> Value {
        match self.0 {
            Kind::Address(_) => Value::Address(Address(bits)),
            Kind::Short(_) | Kind::Long(_) => Value::Number(bits as u32),
            Kind::Format(_) => Value::Format(Format::ALL[bits as usize]),
        }
    }
}

/// A column of a row group. Values are returned as bits: 128 of an address, 32 of a number.
pub(super) enum OpenColumn {
    Address(Column<Address>),
    Short(Column<i32>),
    Long(Column<i64>),
    Format(Column<Format>),
}

impl OpenColumn {
    /// Passes the next values to `each`, with indices from 0; at most a block.
    pub(super) fn read(&mut self, rows: usize, each: impl FnMut((usize, u128))) -> Result<(), ReadError> {
        fn given<V: Copy + Default>(
            rows: usize,
            read: impl FnOnce(&mut [V]) -> Result<(), ReadError>,
            bits: impl Fn(V) -> u128,
            each: impl FnMut((usize, u128)),
        ) -> Result<(), ReadError> {
            let mut values = [V::default(); BLOCK];
            read(&mut values[..rows])?;
            values[..rows].iter().map(|&value| bits(value)).enumerate().for_each(each);
            Ok(())
        }
        match self {
            OpenColumn::Address(column) => given(rows, |out| column.read(out), |address| address.0, each),
            OpenColumn::Short(column) => given(rows, |out| column.read(out), |number| number as u128, each),
            OpenColumn::Long(column) => given(rows, |out| column.read(out), |number| number as u128, each),
            OpenColumn::Format(column) => given(rows, |out| column.read(out), |format| format as u128, each),
        }
    }

    /// Reads the numbers that `number` assigns to the next values, once per dictionary entry (see [`Column::number`]).
    pub(super) fn number(
        &mut self,
        mut number: impl FnMut(u128) -> u32,
        out: &mut [u32],
    ) -> Result<(), ReadError> {
        match self {
            OpenColumn::Address(column) => column.number(&mut |address| number(address.0), out),
            OpenColumn::Short(column) => column.number(&mut |value| number(value as u128), out),
            OpenColumn::Long(column) => column.number(&mut |value| number(value as u128), out),
            OpenColumn::Format(column) => column.number(&mut |format| number(format as u128), out),
        }
    }
}

/// Position of a column's value in a key: two words, or half a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    column: KeyColumn,
    word: usize,
    /// First bit of a number in its word.
    shift: u32,
}

impl Position {
    /// Returns the positions of the columns and the key length in words; addresses come first.
    pub(super) fn all(columns: &[KeyColumn]) -> (Vec<Position>, usize) {
        let addresses = columns.iter().filter(|column| column.is_address()).count();
        let (mut words, mut halves) = (0, 4 * addresses);
        let position = |&column: &KeyColumn| match column.is_address() {
            true => {
                words += 2;
                Position { column, word: words - 2, shift: 0 }
            }
            false => {
                halves += 1;
                Position { column, word: (halves - 1) / 2, shift: (halves - 1) as u32 % 2 * 32 }
            }
        };
        let positions = columns.iter().map(position).collect();
        (positions, halves.div_ceil(2))
    }

    /// Writes a value into a key.
    #[inline]
    pub(super) fn put(self, key: &mut [u64], bits: u128) {
        match self.column.is_address() {
            true => {
                key[self.word] = (bits >> 64) as u64;
                key[self.word + 1] = bits as u64;
            }
            false => {
                let others = u64::from(u32::MAX) << (32 - self.shift);
                key[self.word] = key[self.word] & others | (bits as u64) << self.shift;
            }
        }
    }

    /// Reads a value from a key.
    pub(super) fn get(self, key: &[u64]) -> Value {
        self.column.value(match self.column.is_address() {
            true => u128::from(key[self.word]) << 64 | u128::from(key[self.word + 1]),
            false => u128::from((key[self.word] >> self.shift) as u32),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_do_not_overlap_in_a_key() {
        let columns = COLUMNS.map(KeyColumn);
        let (positions, words) = Position::all(&columns);
        assert_eq!(words, MAX_WORDS);
        let mut key = [u64::MAX; MAX_WORDS];
        for round in [1, 2] {
            for (at, position) in (1..).zip(&positions) {
                position.put(&mut key, if position.column.is_address() { round << 100 | at } else { at % 5 });
            }
            for (at, position) in (1..).zip(&positions) {
                let bits = if position.column.is_address() { round << 100 | at } else { at % 5 };
                assert_eq!(position.get(&key), position.column.value(bits));
            }
        }
    }
}
