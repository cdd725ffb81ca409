//! The columns that records can be grouped by, and the layout of keys.

use thalweg_wire::flow_export::{Address, Format, Mac, Name};

use crate::read::field::{self, Field};
use crate::read::{BLOCK, Column, ReadError, RowGroup, Schema};

/// A component of a group's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// An address, possibly empty.
    Address(Address),
    /// A number, such as a port or an AS number.
    Number(u32),
    /// A number of 64 bits, such as an observation point.
    Count(u64),
    /// An export format.
    Format(Format),
    /// A MAC address, possibly empty.
    Mac(Mac),
    /// A name, possibly empty.
    Name(Name),
}

impl Value {
    /// Returns the bits that encode it in a key.
    pub(super) fn bits(self) -> u128 {
        match self {
            Value::Address(address) => address.0,
            Value::Number(number) => number.into(),
            Value::Count(number) => number.into(),
            Value::Format(format) => format as u128,
            Value::Mac(mac) => mac.number().into(),
            Value::Name(name) => name.number().into(),
        }
    }
}

/// A column by value type.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Address(&'static Field<Address>),
    Short(&'static Field<i32>),
    Long(&'static Field<i64>),
    Count(&'static Field<i64>),
    Format(&'static Field<Format>),
    Mac(&'static Field<Mac>),
    Name(&'static Field<Name>),
}

/// A column that records can be grouped by.
#[derive(Clone, Copy, Debug)]
pub struct KeyColumn(Kind);

const COLUMNS: [Kind; 44] = [
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
    Kind::Short(&field::POST_VLAN_ID),
    Kind::Short(&field::CUSTOMER_VLAN_ID),
    Kind::Mac(&field::SRC_MAC),
    Kind::Mac(&field::DST_MAC),
    Kind::Mac(&field::POST_SRC_MAC),
    Kind::Mac(&field::POST_DST_MAC),
    Kind::Short(&field::FORWARDING_STATUS),
    Kind::Long(&field::INGRESS_VRF_ID),
    Kind::Long(&field::EGRESS_VRF_ID),
    Kind::Address(&field::BGP_NEXT_HOP),
    Kind::Long(&field::NEXT_AS),
    Kind::Long(&field::PREVIOUS_AS),
    Kind::Name(&field::EXPORTER_NAME),
    Kind::Name(&field::INGRESS_INTERFACE_NAME),
    Kind::Name(&field::EGRESS_INTERFACE_NAME),
    Kind::Name(&field::INGRESS_VRF_NAME),
    Kind::Name(&field::EGRESS_VRF_NAME),
    Kind::Name(&field::SRC_COUNTRY),
    Kind::Name(&field::DST_COUNTRY),
    Kind::Short(&field::POST_TOS),
    Kind::Short(&field::TCP_FLAGS),
    Kind::Short(&field::ICMP_TYPE_CODE),
    Kind::Short(&field::SRC_PREFIX_LENGTH),
    Kind::Short(&field::DST_PREFIX_LENGTH),
    Kind::Short(&field::MIN_TTL),
    Kind::Short(&field::MAX_TTL),
    Kind::Short(&field::FLOW_DIRECTION),
    Kind::Short(&field::FLOW_END_REASON),
    Kind::Long(&field::OBSERVATION_DOMAIN_ID),
    Kind::Count(&field::OBSERVATION_POINT_ID),
];

/// Length of the longest key in words: ten addresses, MAC addresses and counts of two words, 34 numbers of half a word.
pub(super) const MAX_WORDS: usize = 10 * 2 + 34 / 2;

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
            Kind::Long(field) | Kind::Count(field) => field.name,
            Kind::Format(field) => field.name,
            Kind::Mac(field) => field.name,
            Kind::Name(field) => field.name,
        }
    }

    /// Whether values have more than 32 bits.
    pub(super) fn is_wide(self) -> bool {
        matches!(self.0, Kind::Address(_) | Kind::Mac(_) | Kind::Count(_))
    }

    pub(super) fn check(self, schema: &Schema<'_>) -> Result<(), ReadError> {
        match self.0 {
            Kind::Address(field) => schema.find(field),
            Kind::Short(field) => schema.find(field),
            Kind::Long(field) | Kind::Count(field) => schema.find(field),
            Kind::Format(field) => schema.find(field),
            Kind::Mac(field) => schema.find(field),
            Kind::Name(field) => schema.find(field),
        }
        .map(drop)
    }

    pub(super) fn open(self, group: &RowGroup<'_>) -> Result<OpenColumn, ReadError> {
        Ok(match self.0 {
            Kind::Address(field) => OpenColumn::Address(group.column(field)?),
            Kind::Short(field) => OpenColumn::Short(group.column(field)?),
            Kind::Long(field) | Kind::Count(field) => OpenColumn::Long(group.column(field)?),
            Kind::Format(field) => OpenColumn::Format(group.column(field)?),
            Kind::Mac(field) => OpenColumn::Mac(group.column(field)?),
            Kind::Name(field) => OpenColumn::Name(group.column(field)?),
        })
    }

    /// Returns the value that was encoded in these bits.
    fn value(self, bits: u128) -> Value {
        match self.0 {
            Kind::Address(_) => Value::Address(Address(bits)),
            Kind::Short(_) | Kind::Long(_) => Value::Number(bits as u32),
            Kind::Count(_) => Value::Count(bits as u64),
            Kind::Format(_) => Value::Format(Format::ALL[bits as usize]),
            Kind::Mac(_) => Value::Mac(Mac::from_number(bits as u64)),
            Kind::Name(_) => Value::Name(Name::of_number(bits as u32)),
        }
    }
}

/// A column of a row group. Values are returned as bits: 128 of an address, 48 of a MAC address, 32 of others.
pub(super) enum OpenColumn {
    Address(Column<Address>),
    Short(Column<i32>),
    Long(Column<i64>),
    Format(Column<Format>),
    Mac(Column<Mac>),
    Name(Column<Name>),
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
            OpenColumn::Mac(column) => given(rows, |out| column.read(out), |mac| mac.number().into(), each),
            OpenColumn::Name(column) => {
                given(rows, |out| column.read(out), |name| name.number().into(), each)
            }
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
            OpenColumn::Mac(column) => column.number(&mut |mac| number(mac.number().into()), out),
            OpenColumn::Name(column) => column.number(&mut |name| number(name.number().into()), out),
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
        let addresses = columns.iter().filter(|column| column.is_wide()).count();
        let (mut words, mut halves) = (0, 4 * addresses);
        let position = |&column: &KeyColumn| match column.is_wide() {
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
        match self.column.is_wide() {
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
        self.column.value(match self.column.is_wide() {
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
                position.put(&mut key, if position.column.is_wide() { round << 100 | at } else { at % 5 });
            }
            for (at, position) in (1..).zip(&positions) {
                let bits = if position.column.is_wide() { round << 100 | at } else { at % 5 };
                assert_eq!(position.get(&key), position.column.value(bits));
            }
        }
    }
}
