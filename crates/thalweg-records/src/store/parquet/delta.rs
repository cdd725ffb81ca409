//! Parquet's `DELTA_BINARY_PACKED` encoding of 64-bit integers.

use super::hybrid::uleb128;
use super::pack::{pack, pack_wide};

/// Values per block, as in parquet-mr; a multiple of 128.
const BLOCK: usize = 128;

/// Miniblocks per block, each with its own width.
const MINIBLOCKS: usize = 4;

/// Values per miniblock; a multiple of 32.
const MINIBLOCK: usize = BLOCK / MINIBLOCKS;

/// Appends the values. Small differences between neighbours give short output.
pub(crate) fn encode<T: Copy + Into<i64>>(values: &[T], out: &mut Vec<u8>) {
    uleb128(BLOCK as u64, out);
    uleb128(MINIBLOCKS as u64, out);
    uleb128(values.len() as u64, out);
    let Some((&first, rest)) = values.split_first() else { return zigzag(0, out) };
    let mut before = first.into();
    zigzag(before, out);
    let mut deltas = [0; BLOCK];
    for block in rest.chunks(BLOCK) {
        for (delta, &value) in deltas.iter_mut().zip(block) {
            let value = value.into();
            *delta = value.wrapping_sub(before);
            before = value;
        }
        encode_block(&mut deltas, block.len(), out);
    }
}

fn encode_block(deltas: &mut [i64; BLOCK], count: usize, out: &mut Vec<u8>) {
    let min = deltas[..count].iter().copied().fold(i64::MAX, i64::min);
    zigzag(min, out);
    // Pad the last miniblock with the minimum delta.
    deltas[count..].fill(min);
    let above: [u64; BLOCK] = std::array::from_fn(|n| deltas[n].wrapping_sub(min) as u64);
    let widths_at = out.len();
    out.extend([0; MINIBLOCKS]);
    for (number, part) in above.as_chunks::<MINIBLOCK>().0.iter().enumerate() {
        if number * MINIBLOCK >= count {
            break;
        }
        let width = (u64::BITS - part.iter().fold(0, |bits, value| bits | value).leading_zeros()) as usize;
        out[widths_at + number] = width as u8;
        if width <= 32 {
            pack(&part.map(|value| value as u32), width, out);
        } else {
            pack_wide(part, width, out);
        }
    }
}

fn zigzag(value: i64, out: &mut Vec<u8>) {
    uleb128(((value << 1) ^ (value >> 63)) as u64, out);
}
