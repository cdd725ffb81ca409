//! Bit packing: the first value in the lowest bits, as Parquet's hybrid and delta encodings have it.

/// Appends values of `width` bits each. The number of values is a multiple of eight, so that whole bytes result.
///
/// # Panics
/// If it is not, or `width` is above 32. Values wider than `width` spill into their neighbours.
pub(super) fn pack(values: &[u32], width: usize, out: &mut Vec<u8>) {
    assert!(values.len().is_multiple_of(8), "{} values", values.len());
    macro_rules! by_width {
        ($($width:literal)*) => {
            match width {
                0 => {}
                $($width => pack_eights::<$width>(values, out),)*
                _ => panic!("{width} bits"),
            }
        };
    }
    by_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
}

/// With the width known, the compiler unrolls each eight into shifts.
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

/// The same for any width up to 64, a value at a time.
pub(super) fn pack_wide(values: &[u64], width: usize, out: &mut Vec<u8>) {
    let (mut bits, mut filled) = (0_u128, 0);
    for &value in values {
        bits |= u128::from(value) << filled;
        filled += width;
        while filled >= 8 {
            out.push(bits as u8);
            (bits, filled) = (bits >> 8, filled - 8);
        }
    }
    if filled > 0 {
        out.push(bits as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_pack_agree_at_all_widths() {
        for width in 1..=32_usize {
            let values: Vec<u32> = (0..64_u32).map(|n| n.wrapping_mul(0x9E37_79B9) >> (32 - width)).collect();
            let (mut narrow, mut wide) = (Vec::new(), Vec::new());
            pack(&values, width, &mut narrow);
            pack_wide(&values.iter().map(|&value| value.into()).collect::<Vec<_>>(), width, &mut wide);
            assert_eq!(narrow, wide, "{width} bits");
        }
    }

    #[test]
    fn the_example_of_the_parquet_format_comes_out_bit_for_bit() {
        // Encodings.md, bit packing: 0 to 7 in three bits.
        let mut out = Vec::new();
        pack(&[0, 1, 2, 3, 4, 5, 6, 7], 3, &mut out);
        assert_eq!(out, [0b1000_1000, 0b1100_0110, 0b1111_1010]);
    }
}
