//! Parquet's hybrid of run-length encoding and bit packing (`RLE`), for dictionary indices.

use super::pack::pack;

/// Minimum length of a run in groups of eight; then a run is no longer than packing, and faster to read.
const MIN_RUN_EIGHTS: usize = 2;

/// Returns the bit width of values up to `max`; at least 1, because not every reader accepts 0.
pub(super) fn width_of(max: u32) -> usize {
    (u32::BITS - max.leading_zeros()).max(1) as usize
}

/// Appends indices of at most `width` bits each. Pads the vector to a multiple of eight meanwhile.
pub(crate) fn encode(indices: &mut Vec<u32>, width: usize, out: &mut Vec<u8>) {
    let rows = indices.len();
    indices.resize(rows.next_multiple_of(8), 0);
    let eights = indices.as_chunks::<8>().0;
    let (mut at, mut packed_from) = (0, 0);
    while at < eights.len() {
        let run = run_of(&eights[at..]);
        // Padding is allowed in packed groups only, because a run states its number of values.
        let padded = (at + run) * 8 > rows;
        let run = if padded { run.saturating_sub(1) } else { run };
        if run < MIN_RUN_EIGHTS {
            at += run.max(1);
            continue;
        }
        packed(&eights[packed_from..at], width, out);
        run_length(eights[at][0], run * 8, width, out);
        at += run;
        packed_from = at;
    }
    packed(&eights[packed_from..], width, out);
    indices.truncate(rows);
}

/// Appends a run of one value.
pub(crate) fn run_length(value: u32, rows: usize, width: usize, out: &mut Vec<u8>) {
    uleb128((rows as u64) << 1, out);
    out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8)]);
}

/// Appends an unsigned integer in LEB128.
pub(super) fn uleb128(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn packed(eights: &[[u32; 8]], width: usize, out: &mut Vec<u8>) {
    if !eights.is_empty() {
        uleb128((eights.len() as u64) << 1 | 1, out);
        pack(eights.as_flattened(), width, out);
    }
}

/// Returns the number of leading groups that hold one value only.
fn run_of(eights: &[[u32; 8]]) -> usize {
    let value = eights[0][0];
    eights.iter().take_while(|eight| **eight == [value; 8]).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A naive decoder of the format's grammar.
    fn decode(mut bytes: &[u8], width: usize, rows: usize) -> Vec<u32> {
        let mut values = Vec::new();
        while values.len() < rows {
            let (mut header, mut shift) = (0_u64, 0);
            loop {
                let byte = bytes[0];
                bytes = &bytes[1..];
                header |= u64::from(byte & 0x7F) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            let count = (header >> 1) as usize;
            if header & 1 == 0 {
                let mut value = [0; 4];
                value[..width.div_ceil(8)].copy_from_slice(&bytes[..width.div_ceil(8)]);
                bytes = &bytes[width.div_ceil(8)..];
                values.extend(std::iter::repeat_n(u32::from_le_bytes(value), count));
            } else {
                for bit in (0..count * 8).map(|n| n * width) {
                    let value = (0..width).fold(0, |value, n| {
                        value | u32::from(bytes[(bit + n) / 8] >> ((bit + n) % 8) & 1) << n
                    });
                    values.push(value);
                }
                bytes = &bytes[count * width..];
            }
        }
        assert!(bytes.is_empty(), "{} bytes left", bytes.len());
        assert!(values.len() - rows < 8);
        values.truncate(rows);
        values
    }

    proptest! {
        #[test]
        fn encoded_values_round_trip(
            runs in prop::collection::vec((0_u32..40, 1_usize..40), 1..40),
            extra in 0_u32..0x00FF_FFFF,
        ) {
            let mut values: Vec<u32> =
                runs.iter().flat_map(|&(value, rows)| std::iter::repeat_n(value, rows)).collect();
            values.push(extra);
            let width = width_of(*values.iter().max().unwrap());
            let (rows, copy) = (values.len(), values.clone());
            let mut out = Vec::new();
            encode(&mut values, width, &mut out);
            prop_assert_eq!(&values, &copy);
            prop_assert_eq!(decode(&out, width, rows), copy);
        }
    }

    #[test]
    fn long_runs_are_encoded_in_few_bytes() {
        let mut values = vec![3; 8000];
        values.extend([1, 2, 3, 1]);
        let mut out = Vec::new();
        encode(&mut values, 2, &mut out);
        assert!(out.len() <= 6, "{} bytes", out.len());
    }
}
