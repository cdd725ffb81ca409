//! The dictionary of one column in one row group: each distinct value once, as Parquet's `PLAIN` encoding has it.

use std::fmt::Write;

use thalweg_wire::flow_export::{Address, Format};

use crate::schema::{Kind, Values};

use super::hybrid::width_of;
use super::table::Table;

/// Distinct values of a column, numbered as they first come.
pub(super) struct Dictionary {
    numbers: Numbers,
    entries: u32,
    plain: Vec<u8>,
}

/// How a value finds its number.
enum Numbers {
    /// Looked up by the value itself; the number plus one.
    Direct(Vec<u32>),
    Narrow(Table<u32>),
    Wide(Table<u64>),
    Addresses(Box<(Table<u32>, Table<u128>)>),
}

impl Dictionary {
    pub(super) fn new(kind: Kind) -> Dictionary {
        let numbers = match kind {
            Kind::Format => Numbers::Direct(vec![0; Format::ALL.len()]),
            Kind::U8 => Numbers::Direct(vec![0; 1 << 8]),
            Kind::U16 => Numbers::Direct(vec![0; 1 << 16]),
            Kind::U32 => Numbers::Narrow(Table::new()),
            Kind::U64 | Kind::Timestamp => Numbers::Wide(Table::new()),
            Kind::Address => Numbers::Addresses(Box::new((Table::new(), Table::new()))),
        };
        Dictionary { numbers, entries: 0, plain: Vec::new() }
    }

    /// Forgets all values, and keeps the memory.
    pub(super) fn clear(&mut self) {
        match &mut self.numbers {
            Numbers::Direct(numbers) => numbers.fill(0),
            Numbers::Narrow(table) => table.clear(),
            Numbers::Wide(table) => table.clear(),
            Numbers::Addresses(tables) => {
                tables.0.clear();
                tables.1.clear();
            }
        }
        self.entries = 0;
        self.plain.clear();
    }

    /// Distinct values.
    pub(super) fn entries(&self) -> u32 {
        self.entries
    }

    /// They, in `PLAIN` encoding.
    pub(super) fn plain(&self) -> &[u8] {
        &self.plain
    }

    /// Bits that the number of any of them needs.
    pub(super) fn width(&self) -> usize {
        width_of(self.entries.saturating_sub(1))
    }

    /// Appends the number of each value. Returns how many values were above the range of `INT64`.
    ///
    /// # Panics
    /// If the values are not of the dictionary's kind.
    pub(super) fn number(&mut self, values: Values<'_>, ids: &mut Vec<u32>) -> u64 {
        let Dictionary { numbers, entries, plain } = self;
        ids.reserve(values.len());
        match (values, numbers) {
            (Values::U8(values), Numbers::Direct(seen)) => {
                let values = values.iter().map(|&value| value.into());
                direct(seen, values, entries, ids, |value| int32(plain, value as i32));
            }
            (Values::U16(values), Numbers::Direct(seen)) => {
                let values = values.iter().map(|&value| value.into());
                direct(seen, values, entries, ids, |value| int32(plain, value as i32));
            }
            (Values::Format(values), Numbers::Direct(seen)) => {
                let values = values.iter().map(|&value| value as usize);
                direct(seen, values, entries, ids, |value| text(plain, Format::ALL[value].name()));
            }
            (Values::U32(values), Numbers::Narrow(table)) => {
                let is_new = |place: usize| int64(plain, values[place].into());
                table.number_all(values.iter().copied(), entries, ids, is_new);
            }
            (Values::Timestamp(values), Numbers::Wide(table)) => {
                let is_new = |place: usize| int64(plain, values[place]);
                table.number_all(values.iter().map(|&value| value as u64), entries, ids, is_new);
            }
            (Values::U64(values), Numbers::Wide(table)) => {
                // Values that saturate are one value, so that they share an entry.
                let saturated = |value: &u64| (*value).min(i64::MAX as u64);
                let is_new = |place: usize| int64(plain, saturated(&values[place]) as i64);
                table.number_all(values.iter().map(saturated), entries, ids, is_new);
                return values.iter().map(|&value| u64::from(value > i64::MAX as u64)).sum();
            }
            (Values::Address(values), Numbers::Addresses(tables)) => {
                let (v4, others) = &mut **tables;
                for values in values.chunk_by(|one, next| one.as_v4().is_some() == next.as_v4().is_some()) {
                    let is_new = |place: usize| address(plain, values[place]);
                    match values[0].as_v4() {
                        Some(_) => {
                            let values = values.iter().map(|value| value.0 as u32);
                            v4.number_all(values, entries, ids, is_new);
                        }
                        None => others.number_all(values.iter().map(|value| value.0), entries, ids, is_new),
                    }
                }
            }
            (values, _) => panic!("values of {:?} in the dictionary of another kind", values.kind()),
        }
        0
    }
}

/// Numbers values that are places of `seen` themselves.
#[inline]
fn direct(
    seen: &mut [u32],
    values: impl Iterator<Item = usize>,
    next: &mut u32,
    ids: &mut Vec<u32>,
    mut is_new: impl FnMut(usize),
) {
    let mut next_number = *next;
    ids.extend(values.map(|value| {
        if seen[value] == 0 {
            next_number += 1;
            seen[value] = next_number;
            is_new(value);
        }
        seen[value] - 1
    }));
    *next = next_number;
}

fn int32(plain: &mut Vec<u8>, value: i32) {
    plain.extend_from_slice(&value.to_le_bytes());
}

fn int64(plain: &mut Vec<u8>, value: i64) {
    plain.extend_from_slice(&value.to_le_bytes());
}

fn text(plain: &mut Vec<u8>, text: &str) {
    plain.extend_from_slice(&(text.len() as u32).to_le_bytes());
    plain.extend_from_slice(text.as_bytes());
}

/// IPv4 addresses are written by hand: a dictionary may have hundreds of thousands.
fn address(plain: &mut Vec<u8>, value: Address) {
    let from = plain.len();
    plain.extend_from_slice(&[0; 4]);
    match value.as_v4() {
        Some(number) => {
            for (place, octet) in number.to_be_bytes().into_iter().enumerate() {
                if place > 0 {
                    plain.push(b'.');
                }
                decimal(plain, octet);
            }
        }
        None => {
            let mut text = String::new();
            let _ = write!(text, "{value}");
            plain.extend_from_slice(text.as_bytes());
        }
    }
    let length = (plain.len() - from - 4) as u32;
    plain[from..from + 4].copy_from_slice(&length.to_le_bytes());
}

fn decimal(plain: &mut Vec<u8>, octet: u8) {
    if octet >= 100 {
        plain.push(b'0' + octet / 100);
    }
    if octet >= 10 {
        plain.push(b'0' + octet / 10 % 10);
    }
    plain.push(b'0' + octet % 10);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_they_print() {
        for octet in 0..=255_u32 {
            let value = Address::v4(octet << 24 | 0x0001_0A64 | octet << 16 & 0x00FF_0000);
            let mut plain = Vec::new();
            address(&mut plain, value);
            assert_eq!(plain[4..], *value.to_string().as_bytes());
            assert_eq!(plain[..4], (value.to_string().len() as u32).to_le_bytes());
        }
    }
}
