//! Decodes Parquet's `DELTA_BINARY_PACKED` encoding.
//!
//! A page starts with the block size, the number of miniblocks per block, the number of values, and the first value. A
//! block consists of its minimum difference, the width of each miniblock, and the differences above the minimum.

use super::malformed::Malformed;

/// Maximum block size that is accepted; writers use 128 or 256.
const MAX_BLOCK: usize = 1 << 14;

/// Read position in a page.
#[derive(Debug, Default)]
pub(crate) struct Delta {
    at: usize,
    miniblocks: usize,
    per_miniblock: usize,
    /// Number of values after `block`.
    left: usize,
    last: i64,
    /// Values of the current block, and the number already returned.
    block: Vec<i64>,
    given: usize,
}

impl Delta {
    /// Starts at byte `at` of a page; keeps the buffer.
    pub(super) fn begin(&mut self, bytes: &[u8], at: usize) -> Result<(), Malformed> {
        self.at = at;
        let block = self.varint(bytes)? as usize;
        self.miniblocks = self.varint(bytes)? as usize;
        self.left = self.varint(bytes)? as usize;
        self.last = self.zigzag(bytes)?;
        if block > MAX_BLOCK || self.miniblocks == 0 || !block.is_multiple_of(8 * self.miniblocks) {
            return Err(Malformed("blocks of at most 16384 values in miniblocks of whole bytes"));
        }
        self.per_miniblock = block / self.miniblocks;
        self.given = 0;
        self.block.clear();
        if self.left > 0 {
            self.left -= 1;
            self.block.push(self.last);
        }
        Ok(())
    }

    /// Passes the next values to `each`.
    #[inline]
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(i64),
        mut count: usize,
    ) -> Result<(), Malformed> {
        while count > 0 {
            if self.given == self.block.len() {
                self.next_block(bytes)?;
            }
            let now = &self.block[self.given..];
            let now = &now[..now.len().min(count)];
            now.iter().for_each(|&value| each(value));
            self.given += now.len();
            count -= now.len();
        }
        Ok(())
    }

    fn next_block(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        const SHORT: Malformed = Malformed("more differences in the page");
        if self.left == 0 {
            return Err(SHORT);
        }
        let min = self.zigzag(bytes)?;
        let widths = bytes.get(self.at..self.at + self.miniblocks).ok_or(SHORT)?;
        self.at += self.miniblocks;
        self.block.clear();
        self.given = 0;
        for &width in widths {
            let count = self.per_miniblock.min(self.left);
            if count == 0 {
                break;
            }
            let width = usize::from(width);
            if width > 64 {
                return Err(Malformed("differences of at most 64 bits"));
            }
            let rest = bytes.get(self.at..).ok_or(SHORT)?;
            if rest.len() * 8 < count * width {
                return Err(SHORT);
            }
            let start = self.block.len();
            self.block.resize(start + count, 0);
            let values = &mut self.block[start..];
            unpack(rest, width, values);
            for value in values {
                self.last = self.last.wrapping_add(min).wrapping_add(*value);
                *value = self.last;
            }
            self.at += self.per_miniblock / 8 * width;
            self.left -= count;
        }
        Ok(())
    }

    fn zigzag(&mut self, bytes: &[u8]) -> Result<i64, Malformed> {
        let value = self.varint(bytes)?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn varint(&mut self, bytes: &[u8]) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = *bytes.get(self.at).ok_or(Malformed("a number"))?;
            self.at += 1;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed("a number of at most 64 bits"))
    }
}

/// Unpacks values of `width` bits from the first byte on. The bytes must contain all of them.
fn unpack(bytes: &[u8], width: usize, out: &mut [i64]) {
    let mask = u64::MAX.checked_shr(64 - width as u32).unwrap_or(0);
    // A load of eight bytes contains any value of up to 57 bits.
    let fast = match bytes.len().checked_sub(8) {
        Some(last) if (1..=57).contains(&width) => ((last * 8 + 7) / width).min(out.len()),
        _ => 0,
    };
    let (head, tail) = out.split_at_mut(fast);
    let mut bit = 0;
    for value in head {
        let word: [u8; 8] = bytes[bit >> 3..(bit >> 3) + 8].try_into().expect("eight bytes");
        *value = (u64::from_le_bytes(word) >> (bit & 7) & mask) as i64;
        bit += width;
    }
    for value in tail {
        let mut word = [0; 16];
        let rest = bytes.get(bit >> 3..).unwrap_or_default();
        let length = rest.len().min(16);
        word[..length].copy_from_slice(&rest[..length]);
        *value = ((u128::from_le_bytes(word) >> (bit & 7)) as u64 & mask) as i64;
        bit += width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], count: usize, step: usize) -> Result<Vec<i64>, Malformed> {
        let (mut delta, mut values) = (Delta::default(), Vec::new());
        delta.begin(bytes, 0)?;
        while values.len() < count {
            let room = step.min(count - values.len());
            delta.read(bytes, |value| values.push(value), room)?;
        }
        Ok(values)
    }

    /// The example of the Parquet format: 7 5 3 1 2 3 4 5, with differences -2 three times and 1 four times.
    #[test]
    fn the_example_of_the_format_is_decoded_in_steps_of_any_size() {
        // Minimum -2; above it 0 0 0 3 3 3 3 in two bits; the miniblock has room for 32.
        let bytes = [0x80, 1, 4, 8, 14, 3, 2, 0, 0, 0, 0xC0, 0x3F, 0, 0, 0, 0, 0, 0];
        for step in 1..10 {
            assert_eq!(all(&bytes, 8, step), Ok(vec![7, 5, 3, 1, 2, 3, 4, 5]), "{step}");
        }
        assert!(all(&bytes, 9, 4).is_err());
        assert!(all(&bytes[..9], 8, 4).is_err());
    }

    #[test]
    fn all_widths_round_trip() {
        for width in 0..64 {
            let values: Vec<i64> =
                (0..300).map(|i: i64| ((i * i * 31 % 97) << (width.max(7) - 7)) >> (2 * (i & 1))).collect();
            let mut bytes = Vec::new();
            crate::store::parquet::delta::encode(&values, &mut bytes);
            assert_eq!(all(&bytes, 300, 77), Ok(values), "{width}");
        }
    }
}
