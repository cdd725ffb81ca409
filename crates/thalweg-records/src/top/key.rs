//! What records can be grouped by: columns, and how their values lie in a key.

use thalweg_wire::flow_export::{Address, Format};

use crate::read::field::{self, Field};
use crate::read::{BLOCK, Column, ReadError, RowGroup, Schema};

/// What a group has in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// An address, or none.
    Address(Address),
    /// A port, an autonomous system, ...
    Number(u32),
    /// What records came in.
    Format(Format),
}

/// Where a column's values are, by their type.
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

/// Words of the longest key: four addresses of two, ten numbers of half a word.
pub(super) const MAX_WORDS: usize = 4 * 2 + 10 / 2;

impl KeyColumn {
    /// The column of this name in files; none if there is none, or it is nothing to group by.
    #[must_use]
    pub fn named(name: &str) -> Option<KeyColumn> {
        COLUMNS.into_iter().map(KeyColumn).find(|column| column.name() == name)
    }

    /// Its name.
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

    /// The value that these bits were made of.
    fn value(self, bits: u128) -> Value {
        match self.0 {
            Kind::Address(_) => Value::Address(Address(bits)),
            Kind::Short(_) | Kind::Long(_) => Value::Number(bits as u32),
            Kind::Format(_) => Value::Format(Format::ALL[bits as usize]),
        }
    }
}

/// A column of a row group. Its values are given as bits: those of an address, 32 of a number.
pub(super) enum OpenColumn {
    Address(Column<Address>),
    Short(Column<i32>),
    Long(Column<i64>),
    Format(Column<Format>),
}

impl OpenColumn {
    /// Gives the next values to `each`, with their places from 0 on; at most a block.
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

    /// The numbers of the next values; `number` gives them, once for each entry of a dictionary (see [`Column::number`]).
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

/// Where the values of a column lie in a key: in two words, or in half of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    column: KeyColumn,
    word: usize,
    /// Of a number, the bit of the word where it begins.
    shift: u32,
}

impl Place {
    /// Places for columns, in their order, and the words of a key: first addresses, then numbers.
    pub(super) fn all(columns: &[KeyColumn]) -> (Vec<Place>, usize) {
        let addresses = columns.iter().filter(|column| column.is_address()).count();
        let (mut words, mut halves) = (0, 4 * addresses);
        let place = |&column: &KeyColumn| match column.is_address() {
            true => {
                words += 2;
                Place { column, word: words - 2, shift: 0 }
            }
            false => {
                halves += 1;
                Place { column, word: (halves - 1) / 2, shift: (halves - 1) as u32 % 2 * 32 }
            }
        };
        let places = columns.iter().map(place).collect();
        (places, halves.div_ceil(2))
    }

    /// Puts a value into a key.
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

    /// The value in a key.
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
    fn all_columns_fit_into_a_key_and_none_touches_another() {
        let columns = COLUMNS.map(KeyColumn);
        let (places, words) = Place::all(&columns);
        assert_eq!(words, MAX_WORDS);
        let mut key = [u64::MAX; MAX_WORDS];
        for round in [1, 2] {
            for (at, place) in (1..).zip(&places) {
                place.put(&mut key, if place.column.is_address() { round << 100 | at } else { at % 5 });
            }
            for (at, place) in (1..).zip(&places) {
                let bits = if place.column.is_address() { round << 100 | at } else { at % 5 };
                assert_eq!(place.get(&key), place.column.value(bits));
            }
        }
    }
}
