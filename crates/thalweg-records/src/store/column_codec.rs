//! Encodes the columns of a spool segment's block, as [`spool`](super::spool) describes them.

use std::collections::HashMap;

use thalweg_wire::flow_export::label_stack::MAX_LABELS;
use thalweg_wire::flow_export::{Address, Format, LabelStack, Mac, Name, Sparse};

use crate::schema::dataset::Text;
use crate::schema::{Kind, SparseMut, Values, ValuesMut};

use super::split::Split;

/// Length of the width and the minimum of a column of numbers.
pub(super) const COLUMN_HEADER: usize = 17;

/// Maximum length of a text in bytes; the rest is cut off.
pub(super) const MAX_TEXT: usize = 1_024;

/// Declares the encoding of one type: differences from the minimum, in as few bytes as needed.
macro_rules! differences {
    ($encode:ident, $decode:ident, $type:ty; $($narrow:ty),*) => {
        fn $encode(values: impl ExactSizeIterator<Item = $type> + Clone, block: &mut Vec<u8>) {
            let bounds = values.clone().fold((<$type>::MAX, <$type>::MIN), |(min, max), value| {
                (min.min(value), max.max(value))
            });
            let (min, span) = (bounds.0, bounds.1.wrapping_sub(bounds.0));
            block.push(0);
            let width_at = block.len() - 1;
            block.extend_from_slice(&(min as u128).to_le_bytes());
            if span == 0 || values.len() == 0 {
                return;
            }
            $(
                if span as u128 <= <$narrow>::MAX as u128 {
                    const WIDTH: usize = size_of::<$narrow>();
                    block[width_at] = WIDTH as u8;
                    let from = block.len();
                    block.resize(from + values.len() * WIDTH, 0);
                    let positions = block[from..].as_chunks_mut::<WIDTH>().0;
                    for (position, value) in positions.iter_mut().zip(values) {
                        *position = (value.wrapping_sub(min) as $narrow).to_le_bytes();
                    }
                    return;
                }
            )*
            unreachable!("the last width holds every difference");
        }

        fn $decode<'a>(
            columns: &mut &'a [u8],
            rows: usize,
        ) -> Option<impl Iterator<Item = $type> + use<'a>> {
            let header = columns.split_off(..COLUMN_HEADER)?;
            let width = usize::from(header[0]);
            let mut min = [0; 16];
            min.copy_from_slice(&header[1..]);
            let min = u128::from_le_bytes(min) as $type;
            if width > size_of::<$type>() {
                return None;
            }
            let differences = columns.split_off(..rows * width)?;
            Some((0..rows).map(move |row| {
                let mut bytes = [0; size_of::<$type>()];
                bytes[..width].copy_from_slice(&differences[row * width..][..width]);
                min.wrapping_add(<$type>::from_le_bytes(bytes))
            }))
        }
    };
}

differences!(encode_u8, decode_u8, u8; u8);
differences!(encode_u16, decode_u16, u16; u8, u16);
differences!(encode_u32, decode_u32, u32; u8, u16, u32);
differences!(encode_u64, decode_u64, u64; u8, u16, u32, u64);
differences!(encode_u128, decode_u128, u128; u8, u16, u32, u64, u128);

/// Appends a column to a block.
pub(super) fn encode(values: Values<'_>, split: &mut Split, block: &mut Vec<u8>) {
    match values {
        // In practice all times are after 1970, so their differences are as small when unsigned.
        Values::Timestamp(values) => encode_u64(values.iter().map(|&value| value as u64), block),
        Values::Address(values) => encode_addresses(values, split, block),
        Values::Format(values) => encode_u8(values.iter().map(|&value| value as u8), block),
        Values::Text(values) => encode_texts(values, block),
        Values::U8(values) => encode_u8(values.iter().copied(), block),
        Values::U16(values) => encode_u16(values.iter().copied(), block),
        Values::U32(values) => encode_u32(values.iter().copied(), block),
        Values::U64(values) => encode_u64(values.iter().copied(), block),
        Values::Name(values) => encode_names(values, block),
        Values::Mac(values) => encode_u64(values.iter().map(|mac| mac.number()), block),
        Values::Labels(values) => encode_labels(values, block),
        Values::Unset(kind, rows) => encode_unset(kind, rows, block),
    }
}

/// Encodes rows without a value, as a constant column.
fn encode_unset(kind: Kind, rows: usize, block: &mut Vec<u8>) {
    match kind {
        Kind::Address => {
            block.extend_from_slice(&(rows as u32).to_le_bytes());
            encode_u128([Address::NONE.0].into_iter(), block);
        }
        Kind::Name => encode_names(&[Name::NONE], block),
        Kind::Labels => block.push(0),
        _ => encode_u64([0].into_iter(), block),
    }
}

fn encode_names(values: &[Name], block: &mut Vec<u8>) {
    let mut positions = HashMap::new();
    let mut entries = Vec::new();
    let mut ids = Vec::with_capacity(values.len());
    for &value in values {
        ids.push(*positions.entry(value).or_insert_with(|| {
            entries.push(value.text());
            entries.len() as u32 - 1
        }));
    }
    block.extend_from_slice(&(entries.len() as u32).to_le_bytes());
    for entry in entries {
        block.push(entry.len() as u8);
        block.extend_from_slice(entry.as_bytes());
    }
    encode_u32(ids.into_iter(), block);
}

/// Decodes names. One that is not known to this process is none if there are too many.
fn decode_names(columns: &mut &[u8], rows: usize, values: &mut Sparse<Name>) -> Option<()> {
    let count = u32::from_le_bytes(*columns.split_off(..4)?.first_chunk()?);
    let mut entries = Vec::new();
    for _ in 0..count {
        let length = columns.split_off(..1)?[0];
        let text = std::str::from_utf8(columns.split_off(..usize::from(length))?).ok()?;
        entries.push(Name::of(text).unwrap_or_default());
    }
    for position in decode_u32(columns, rows)? {
        values.push(*entries.get(position as usize)?);
    }
    Some(())
}

fn encode_labels(values: &[LabelStack], block: &mut Vec<u8>) {
    block.push(1);
    values.iter().for_each(|stack| block.extend_from_slice(stack.0.as_flattened()));
}

fn decode_labels(columns: &mut &[u8], rows: usize, values: &mut Sparse<LabelStack>) -> Option<()> {
    if columns.split_off(..1)? == [0] {
        values.resize(values.len() + rows);
        return Some(());
    }
    for _ in 0..rows {
        let mut stack = LabelStack::default();
        stack.0.as_flattened_mut().copy_from_slice(columns.split_off(..3 * MAX_LABELS)?);
        values.push(stack);
    }
    Some(())
}

/// Appends the values of a sparse column; `None` if the data is malformed.
fn decode_sparse(columns: &mut &[u8], rows: usize, column: SparseMut<'_>) -> Option<()> {
    match column {
        SparseMut::Address(values) => {
            let mut addresses = Vec::new();
            decode_addresses(columns, rows, &mut addresses)?;
            values.extend(addresses);
        }
        SparseMut::U8(values) => values.extend(decode_u8(columns, rows)?),
        SparseMut::U16(values) => values.extend(decode_u16(columns, rows)?),
        SparseMut::U32(values) => values.extend(decode_u32(columns, rows)?),
        SparseMut::U64(values) => values.extend(decode_u64(columns, rows)?),
        SparseMut::Mac(values) => values.extend(decode_u64(columns, rows)?.map(Mac::from_number)),
        SparseMut::Name(values) => decode_names(columns, rows, values)?,
        SparseMut::Labels(values) => decode_labels(columns, rows, values)?,
    }
    Some(())
}

fn encode_texts(values: &[Text], block: &mut Vec<u8>) {
    encode_u16(values.iter().map(|value| shortened(value).len() as u16), block);
    values.iter().for_each(|value| block.extend_from_slice(shortened(value).as_bytes()));
}

/// Returns the part of a text that a block holds.
fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

fn decode_texts(columns: &mut &[u8], rows: usize, values: &mut Vec<Text>) -> Option<()> {
    let lengths: Vec<u16> = decode_u16(columns, rows)?.collect();
    for length in lengths {
        values.push(std::str::from_utf8(columns.split_off(..usize::from(length))?).ok()?.into());
    }
    Some(())
}

fn encode_addresses(values: &[Address], split: &mut Split, block: &mut Vec<u8>) {
    split.assign(values);
    let Split { v4, others, positions } = split;
    block.extend_from_slice(&(others.len() as u32).to_le_bytes());
    if others.len() < values.len() {
        encode_u32(v4.iter().copied(), block);
    }
    if !positions.is_empty() {
        encode_u32(positions.iter().copied(), block);
    }
    if !others.is_empty() {
        encode_u128(others.iter().copied(), block);
    }
}

fn decode_addresses(columns: &mut &[u8], rows: usize, values: &mut Vec<Address>) -> Option<()> {
    let others = u32::from_le_bytes(*columns.split_off(..4)?.first_chunk()?) as usize;
    if others > 0 && others == rows {
        values.extend(decode_u128(columns, rows)?.map(Address));
        return Some(());
    }
    let from = values.len();
    if rows > 0 {
        values.extend(decode_u32(columns, rows)?.map(Address::v4));
    }
    if others > 0 {
        let positions = decode_u32(columns, others)?;
        for (position, other) in positions.zip(decode_u128(columns, others)?) {
            *values[from..].get_mut(position as usize)? = Address(other);
        }
    }
    Some(())
}

/// Appends a column's values; `None` if the data is malformed.
pub(super) fn decode(columns: &mut &[u8], rows: usize, values: ValuesMut<'_>) -> Option<()> {
    match values {
        ValuesMut::Timestamp(values) => {
            values.extend(decode_u64(columns, rows)?.map(|value| value as i64));
        }
        ValuesMut::Address(values) => decode_addresses(columns, rows, values)?,
        ValuesMut::Format(values) => {
            for number in decode_u8(columns, rows)? {
                values.push(*Format::ALL.get(usize::from(number))?);
            }
        }
        ValuesMut::Text(values) => decode_texts(columns, rows, values)?,
        ValuesMut::U8(values) => values.extend(decode_u8(columns, rows)?),
        ValuesMut::U16(values) => values.extend(decode_u16(columns, rows)?),
        ValuesMut::U32(values) => values.extend(decode_u32(columns, rows)?),
        ValuesMut::U64(values) => values.extend(decode_u64(columns, rows)?),
        ValuesMut::Sparse(column) => decode_sparse(columns, rows, column)?,
    }
    Some(())
}
