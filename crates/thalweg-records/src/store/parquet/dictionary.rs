//! The dictionary of a column chunk: its distinct values in `PLAIN` encoding.

use std::collections::HashMap;

use thalweg_wire::flow_export::{Address, Format, LabelStack};

use crate::schema::dataset::Text;
use crate::schema::{Kind, Values};

use super::super::split::Split;
use super::hybrid::width_of;
use super::table::Table;
use super::text;

/// Distinct values of a column, numbered by first occurrence.
pub(crate) struct Dictionary {
    numbers: Numbers,
    entries: u32,
    plain: Vec<u8>,
}

/// Maps values to their numbers.
enum Numbers {
    /// Indexed by the value; holds the number plus one.
    Direct(Vec<u32>),
    Narrow(Table<u32>),
    Wide(Table<u64>),
    Addresses(Box<Addresses>),
    Texts(HashMap<Text, u32>),
    Labels(HashMap<LabelStack, u32>),
}

impl Dictionary {
    pub(crate) fn new(kind: Kind) -> Dictionary {
        let numbers = match kind {
            Kind::Format => Numbers::Direct(vec![0; Format::ALL.len()]),
            Kind::U8 => Numbers::Direct(vec![0; 1 << 8]),
            Kind::U16 => Numbers::Direct(vec![0; 1 << 16]),
            Kind::U32 | Kind::Name => Numbers::Narrow(Table::new()),
            Kind::U64 | Kind::Timestamp | Kind::Mac => Numbers::Wide(Table::new()),
            Kind::Labels => Numbers::Labels(HashMap::new()),
            Kind::Address => Numbers::Addresses(Box::default()),
            Kind::Text => Numbers::Texts(HashMap::new()),
        };
        Dictionary { numbers, entries: 0, plain: Vec::new() }
    }

    /// Removes all values; keeps the memory.
    pub(crate) fn clear(&mut self) {
        match &mut self.numbers {
            Numbers::Direct(numbers) => numbers.fill(0),
            Numbers::Narrow(table) => table.clear(),
            Numbers::Wide(table) => table.clear(),
            Numbers::Addresses(addresses) => addresses.clear(),
            Numbers::Texts(texts) => texts.clear(),
            Numbers::Labels(stacks) => stacks.clear(),
        }
        self.entries = 0;
        self.plain.clear();
    }

    /// Returns the number of distinct values.
    pub(crate) fn entries(&self) -> u32 {
        self.entries
    }

    /// Returns the distinct values in `PLAIN` encoding.
    pub(crate) fn plain(&self) -> &[u8] {
        &self.plain
    }

    /// Returns the bit width of the largest number.
    pub(crate) fn width(&self) -> usize {
        width_of(self.entries.saturating_sub(1))
    }

    /// Appends the number of each value. Returns how many values exceeded the range of `INT64`.
    ///
    /// # Panics
    /// If the values are not of the dictionary's kind.
    pub(crate) fn number(&mut self, values: Values<'_>, ids: &mut Vec<u32>) -> u64 {
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
                direct(seen, values, entries, ids, |value| name(plain, Format::ALL[value].name()));
            }
            (Values::U32(values), Numbers::Narrow(table)) => {
                let is_new = |index: usize| int64(plain, values[index].into());
                table.number_all(values.iter().copied(), entries, ids, is_new);
            }
            (Values::Timestamp(values), Numbers::Wide(table)) => {
                let is_new = |index: usize| int64(plain, values[index]);
                table.number_all(values.iter().map(|&value| value as u64), entries, ids, is_new);
            }
            (Values::U64(values), Numbers::Wide(table)) => {
                // All saturated values share an entry.
                let saturated = |value: &u64| (*value).min(i64::MAX as u64);
                let is_new = |index: usize| int64(plain, saturated(&values[index]) as i64);
                table.number_all(values.iter().map(saturated), entries, ids, is_new);
                return values.iter().map(|&value| u64::from(value > i64::MAX as u64)).sum();
            }
            (Values::Name(values), Numbers::Narrow(table)) => {
                let is_new = |index: usize| name(plain, values[index].text());
                table.number_all(values.iter().map(|name| name.number()), entries, ids, is_new);
            }
            (Values::Mac(values), Numbers::Wide(table)) => {
                let is_new = |index: usize| name(plain, &values[index].to_string());
                table.number_all(values.iter().map(|mac| mac.number()), entries, ids, is_new);
            }
            (Values::Labels(values), Numbers::Labels(stacks)) => {
                for value in values {
                    let is_new = || {
                        name(plain, &value.to_string());
                        *entries += 1;
                        *entries - 1
                    };
                    ids.push(*stacks.entry(*value).or_insert_with(is_new));
                }
            }
            (Values::Address(values), Numbers::Addresses(addresses)) => {
                addresses.number(values, entries, ids, plain);
            }
            (Values::Text(values), Numbers::Texts(texts)) => {
                for value in values {
                    let id = match texts.get(value) {
                        Some(id) => *id,
                        None => {
                            let id = *entries;
                            *entries += 1;
                            name(plain, value);
                            texts.insert(Text::clone(value), id);
                            id
                        }
                    };
                    ids.push(id);
                }
            }
            (values, _) => panic!("values of {:?} in a dictionary of another kind", values.kind()),
        }
        0
    }
}

/// Separate tables for IPv4 and other addresses, so that slots of IPv4 have eight bytes only.
#[derive(Default)]
struct Addresses {
    v4: Table<u32>,
    others: Table<u128>,
    split: Split,
    other_ids: Vec<u32>,
}

impl Addresses {
    fn clear(&mut self) {
        self.v4.clear();
        self.others.clear();
    }

    /// Numbers IPv4 first, then the others, so that each table serves many lookups in a row.
    fn number(&mut self, values: &[Address], next: &mut u32, ids: &mut Vec<u32>, plain: &mut Vec<u8>) {
        let Addresses { v4, others, split, other_ids } = self;
        split.assign(values);
        let from = ids.len();
        v4.number_all(split.v4.iter().copied(), next, ids, |index| v4_entry(plain, split.v4[index]));
        other_ids.clear();
        let is_new = |index: usize| entry(plain, Address(split.others[index]));
        others.number_all(split.others.iter().copied(), next, other_ids, is_new);
        if split.v4.is_empty() {
            return ids.extend_from_slice(other_ids);
        }
        for (&position, &id) in split.positions.iter().zip(&*other_ids) {
            ids[from + position as usize] = id;
        }
    }
}

/// Numbers values that are themselves indices of `seen`.
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

fn name(plain: &mut Vec<u8>, name: &str) {
    plain.extend_from_slice(&(name.len() as u32).to_le_bytes());
    plain.extend_from_slice(name.as_bytes());
}

/// Copies 16 bytes and truncates, which is faster than a copy of variable length.
#[inline]
fn v4_entry(plain: &mut Vec<u8>, number: u32) {
    let (text, length) = text::v4(number);
    plain.extend_from_slice(&(length as u32).to_le_bytes());
    let from = plain.len();
    plain.extend_from_slice(&text);
    plain.truncate(from + length);
}

fn entry(plain: &mut Vec<u8>, value: Address) {
    let (text, length) = text::address(value);
    plain.extend_from_slice(&(length as u32).to_le_bytes());
    plain.extend_from_slice(&text[..length]);
}
