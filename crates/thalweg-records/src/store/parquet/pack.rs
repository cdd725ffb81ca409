//! Bit packing with the first value in the lowest bits, as in Parquet's hybrid and delta encodings.

use crate::by_width::by_width;

/// Appends values of `width` bits each. Values wider than `width` corrupt their neighbours.
///
/// # Panics
/// If the number of values is not a multiple of eight, or `width` exceeds 32.
pub(crate) fn pack(values: &[u32], width: usize, out: &mut Vec<u8>) {
    assert!(values.len().is_multiple_of(8), "{} values", values.len());
    by_width!(of 32 width, pack_eights(values, out));
}

/// The constant width lets the compiler unroll each group into shifts.
fn pack_eights<const WIDTH: usize>(values: &[u32], out: &mut Vec<u8>) {
    let from = out.len();
    out.resize(from + values.len() / 8 * WIDTH, 0);
    for (eight, packed) in values.as_chunks::<8>().0.iter().zip(out[from..].as_chunks_mut::<WIDTH>().0) {
        let mut bytes = [0; 36];
        let (mut bits, mut filled, mut at) = (0_u64, 0, 0);
        for &value in eight {
            bits |= u64::from(value) << filled;
            filled += WIDTH;
            if filled >= 32 {
                bytes[at..at + 4].copy_from_slice(&(bits as u32).to_le_bytes());
                (bits, filled, at) = (bits >> 32, filled - 32, at + 4);
            }
        }
        bytes[at..at + 4].copy_from_slice(&(bits as u32).to_le_bytes());
        packed.copy_from_slice(&bytes[..WIDTH]);
    }
}

/// Appends values of up to 64 bits each.
///
/// # Panics
/// As [`pack`], but for a width above 64.
pub(super) fn pack_wide(values: &[u64], width: usize, out: &mut Vec<u8>) {
    assert!(values.len().is_multiple_of(8), "{} values", values.len());
    by_width!(of 64 width, pack_wide_eights(values, out));
}

fn pack_wide_eights<const WIDTH: usize>(values: &[u64], out: &mut Vec<u8>) {
    let from = out.len();
    out.resize(from + values.len() / 8 * WIDTH, 0);
    for (eight, packed) in values.as_chunks::<8>().0.iter().zip(out[from..].as_chunks_mut::<WIDTH>().0) {
        // Eight values take as many bytes as one value has bits.
        let mut bytes = [0; 72];
        let (mut bits, mut filled, mut at) = (0_u64, 0, 0);
        for &value in eight {
            bits |= value << filled;
            filled += WIDTH;
            if filled >= 64 {
                bytes[at..at + 8].copy_from_slice(&bits.to_le_bytes());
                (filled, at) = (filled - 64, at + 8);
                // The rest of the value; 0 if it ended with the word.
                bits = if filled > 0 { value >> (WIDTH - filled) } else { 0 };
            }
        }
        bytes[at..at + 8].copy_from_slice(&bits.to_le_bytes());
        packed.copy_from_slice(&bytes[..WIDTH]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pack_and_pack_wide_agree_at_all_widths() {
        for width in 1..=32_usize {
            let values: Vec<u32> = (0..64_u32).map(|n| n.wrapping_mul(0x9E37_79B9) >> (32 - width)).collect();
            let (mut narrow, mut wide) = (Vec::new(), Vec::new());
            pack(&values, width, &mut narrow);
            pack_wide(&values.iter().map(|&value| value.into()).collect::<Vec<_>>(), width, &mut wide);
            assert_eq!(narrow, wide, "{width} bits");
        }
    }

    #[test]
    fn values_are_packed_from_the_lowest_bit() {
        for width in 1..=64_usize {
            let values: Vec<u64> =
                (0..64_u64).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - width)).collect();
            let mut packed = Vec::new();
            pack_wide(&values, width, &mut packed);
            assert_eq!(packed.len(), 8 * width);
            for (index, value) in values.into_iter().enumerate() {
                let bit = |bit: usize| u64::from(packed[bit / 8] >> (bit % 8) & 1);
                let found = (0..width).fold(0, |found, n| found | bit(index * width + n) << n);
                assert_eq!(found, value, "{width} bits");
            }
        }
    }

    #[test]
    fn the_example_of_the_format_is_reproduced() {
        // Encodings.md, bit packing: 0 to 7 in three bits.
        let mut out = Vec::new();
        pack(&[0, 1, 2, 3, 4, 5, 6, 7], 3, &mut out);
        assert_eq!(out, [0b1000_1000, 0b1100_0110, 0b1111_1010]);
    }
}
