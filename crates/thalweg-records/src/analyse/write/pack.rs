//! Numbers in as many bits as they need: bit-packed runs, and differences within blocks (`DELTA_BINARY_PACKED`).

/// Values of a block, and of one of its miniblocks (Parquet format, "Delta Encoding").
const BLOCK: usize = 128;
const MINIBLOCK: usize = 32;

/// Appends `values` with `width` bits each, least significant first, and fills up the last byte.
#[inline]
pub(super) fn bits(values: impl Iterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let (mut word, mut filled) = (0u64, 0);
    for value in values {
        word |= value << filled;
        filled += width;
        if filled >= 64 {
            out.extend_from_slice(&word.to_le_bytes());
            filled -= 64;
            // What did not fit; nothing if the value ended with the word.
            word = value.checked_shr(width - filled).unwrap_or(0);
        }
    }
    out.extend_from_slice(&word.to_le_bytes()[..filled.div_ceil(8) as usize]);
}

/// Appends a run of the hybrid of runs and bit-packed groups; `count` is the number of values.
pub(super) fn run(values: impl Iterator<Item = u64>, count: usize, width: u32, out: &mut Vec<u8>) {
    let groups = count.div_ceil(8);
    varint((groups as u64) << 1 | 1, out);
    bits(values.chain(std::iter::repeat_n(0, groups * 8 - count)), width, out);
}

/// Appends numbers as differences from one to the next: of each block the least, and of each miniblock what the
/// others have above it, in as many bits as the largest takes.
pub(in crate::analyse) fn differences<T: Copy + Into<i64>>(values: &[T], out: &mut Vec<u8>) {
    varint(BLOCK as u64, out);
    varint((BLOCK / MINIBLOCK) as u64, out);
    varint(values.len() as u64, out);
    let Some((&first, rest)) = values.split_first() else { return zigzag(0, out) };
    zigzag(first.into(), out);
    let (mut last, mut above) = (first.into(), [0u64; BLOCK]);
    for block in rest.chunks(BLOCK) {
        let mut least = i64::MAX;
        for (above, &value) in above.iter_mut().zip(block) {
            let value = value.into();
            let difference = value.wrapping_sub(last);
            (*above, least, last) = (difference as u64, least.min(difference), value);
        }
        above[..block.len()].iter_mut().for_each(|above| *above = above.wrapping_sub(least as u64));
        above[block.len()..].fill(0);
        zigzag(least, out);
        // Miniblocks beyond the last value have no bytes, and a width that nobody reads.
        let there = block.len().div_ceil(MINIBLOCK);
        let width = |values: &[u64]| 64 - values.iter().fold(0, |all, value| all | value).leading_zeros();
        let widths: [u32; BLOCK / MINIBLOCK] =
            std::array::from_fn(|at| width(&above[at * MINIBLOCK..][..MINIBLOCK]));
        out.extend(widths.map(|width| width as u8));
        for (values, width) in above.chunks(MINIBLOCK).zip(widths).take(there) {
            bits(values.iter().copied(), width, out);
        }
    }
}

fn zigzag(value: i64, out: &mut Vec<u8>) {
    varint((value << 1 ^ value >> 63) as u64, out);
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Parquet format's example: 0 to 7 in three bits.
    #[test]
    fn bits_are_packed_from_the_least_significant_on() {
        let mut out = Vec::new();
        bits(0..8, 3, &mut out);
        assert_eq!(out, [0x88, 0xC6, 0xFA]);
        let mut out = Vec::new();
        bits([u64::MAX, 1, u64::MAX].into_iter(), 64, &mut out);
        assert_eq!(out, [[0xFF; 8], [1, 0, 0, 0, 0, 0, 0, 0], [0xFF; 8]].concat());
    }

    /// The Parquet format's examples: 1 to 5, whose differences are all 1.
    #[test]
    fn equal_differences_take_no_bits() {
        let mut out = Vec::new();
        differences(&[1, 2, 3, 4, 5], &mut out);
        assert_eq!(out, [0x80, 1, 4, 5, 2, 2, 0, 0, 0, 0]);
    }
}
