//! Decodes Parquet's hybrid of run lengths and bit packing ("Run Length Encoding / Bit-Packing Hybrid").
//!
//! Dictionary indices and definition levels use it. A header is a varint. If its lowest bit is set, the rest is the number
//! of bit-packed groups of eight values; otherwise, the rest is the length of a run of one value.

use super::malformed::Malformed;
use crate::by_width::by_width;

/// Read position and the rest of the current run.
#[derive(Debug, Default)]
pub(super) struct Hybrid {
    /// Bits per value, 0 to 32.
    width: u32,
    /// Offset of the next header.
    at: usize,
    run: Run,
}

#[derive(Clone, Copy, Debug)]
enum Run {
    Same { value: u32, left: usize },
    Packed { bit: usize, left: usize },
}

impl Default for Run {
    fn default() -> Run {
        Run::Same { value: 0, left: 0 }
    }
}

/// A batch of decoded values.
pub(super) enum Decoded {
    /// One value, repeated.
    Repeated(u32, usize),
    /// This many values, in the buffer.
    Literal(usize),
}

impl Hybrid {
    /// Starts at byte `at` with values of `width` bits.
    pub(super) fn new(width: u32, at: usize) -> Result<Hybrid, Malformed> {
        match width <= 32 {
            true => Ok(Hybrid { width, at, run: Run::default() }),
            false => Err(Malformed("dictionary indices of at most 32 bits")),
        }
    }

    /// Decodes the next values, at most `buffer.len()`, which must not be 0.
    #[inline]
    pub(super) fn next(&mut self, bytes: &[u8], buffer: &mut [u32]) -> Result<Decoded, Malformed> {
        loop {
            match &mut self.run {
                Run::Same { left: 0, .. } | Run::Packed { left: 0, .. } => self.header(bytes)?,
                Run::Same { value, left } => {
                    let count = buffer.len().min(*left);
                    *left -= count;
                    return Ok(Decoded::Repeated(*value, count));
                }
                Run::Packed { bit, left } => {
                    let count = buffer.len().min(*left);
                    unpack(bytes, *bit, self.width, &mut buffer[..count]);
                    *bit += count * self.width as usize;
                    *left -= count;
                    return Ok(Decoded::Literal(count));
                }
            }
        }
    }

    fn header(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let header = self.varint(bytes)?;
        let count = (header >> 1) as usize;
        if header & 1 == 0 {
            let length = self.width.div_ceil(8) as usize;
            let value = bytes.get(self.at..self.at + length).ok_or(Malformed("the value of a run"))?;
            self.at += length;
            let value = value.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte));
            self.run = Run::Same { value, left: count };
        } else {
            let length =
                count.checked_mul(self.width as usize).ok_or(Malformed("a shorter bit-packed run"))?;
            // The last group may be truncated at the end of the page.
            let there = bytes.len().saturating_sub(self.at).min(length);
            let values = match self.width {
                0 => count * 8,
                width => there * 8 / width as usize,
            };
            self.run = Run::Packed { bit: self.at * 8, left: values.min(count * 8) };
            self.at += there;
        }
        match self.run {
            Run::Packed { left: 0, .. } => Err(Malformed("more dictionary indices")),
            _ => Ok(()),
        }
    }

    fn varint(&mut self, bytes: &[u8]) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let byte = *bytes.get(self.at).ok_or(Malformed("more dictionary indices"))?;
            self.at += 1;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed("a run's header of at most 5 bytes"))
    }
}

/// Bytes that contain an unaligned word for each of eight values, at any width.
const WINDOW: usize = 7 * 32 / 8 + 8;

/// Unpacks values of `width` bits, least significant first, from a bit on.
fn unpack(bytes: &[u8], bit: usize, width: u32, out: &mut [u32]) {
    let width = width as usize;
    if width == 0 {
        return out.fill(0);
    }
    // Eight values take whole bytes: from a byte boundary on, bit offsets repeat every eight values.
    let first = (0..8).find(|first| (bit + first * width).is_multiple_of(8)).unwrap_or(0);
    let (first, rest) = out.split_at_mut(first.min(out.len()));
    unpack_singly(bytes, bit, width, first);

    let bit = bit + first.len() * width;
    let whole = bytes.get(bit / 8..).unwrap_or_default();
    let windows = whole.len().checked_sub(WINDOW).map_or(0, |last| last / width + 1);
    let (eights, rest) = rest.split_at_mut(8 * windows.min(rest.len() / 8));
    by_width!(of 32 width, unpack_groups(whole, eights));
    unpack_singly(bytes, bit + eights.len() * width, width, rest);
}

/// With a constant width, each value is a word, a shift and a mask.
fn unpack_groups<const WIDTH: usize>(bytes: &[u8], out: &mut [u32]) {
    let mask = u32::MAX >> (32 - WIDTH);
    for (number, eight) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let window: &[u8; WINDOW] = bytes[number * WIDTH..].first_chunk().expect("a window for each group");
        *eight = std::array::from_fn(|n| {
            let word = window[n * WIDTH / 8..].first_chunk().expect("a word for each value");
            (u64::from_le_bytes(*word) >> (n * WIDTH % 8)) as u32 & mask
        });
    }
}

/// Unpacks from any bit on, up to the last byte.
fn unpack_singly(bytes: &[u8], mut bit: usize, width: usize, out: &mut [u32]) {
    let mask = u32::MAX >> (32 - width);
    for value in out {
        let rest = bytes.get(bit / 8..).unwrap_or_default();
        let mut word = [0; 8];
        let length = rest.len().min(8);
        word[..length].copy_from_slice(&rest[..length]);
        *value = (u64::from_le_bytes(word) >> (bit % 8)) as u32 & mask;
        bit += width;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(bytes: &[u8], width: u32, count: usize, step: usize) -> Vec<u32> {
        let mut hybrid = Hybrid::new(width, 0).unwrap();
        let (mut values, mut buffer) = (Vec::new(), vec![0; step]);
        while values.len() < count {
            let room = step.min(count - values.len());
            match hybrid.next(bytes, &mut buffer[..room]).unwrap() {
                Decoded::Repeated(value, count) => values.extend(std::iter::repeat_n(value, count)),
                Decoded::Literal(count) => values.extend(&buffer[..count]),
            }
        }
        values
    }

    /// The example of the format: 0 to 7 in three bits are 0x88 0xC6 0xFA.
    #[test]
    fn runs_and_packed_groups_are_decoded_in_steps_of_any_size() {
        let bytes = [3, 0x88, 0xC6, 0xFA, 5 << 1, 6, 3, 0x88, 0xC6, 0xFA];
        let expected: Vec<u32> = (0..8).chain([6; 5]).chain(0..8).collect();
        for step in 1..30 {
            assert_eq!(all(&bytes, 3, 21, step), expected, "{step}");
        }
    }

    proptest! {
        #[test]
        fn packed_values_are_decoded_at_all_widths(
            width in 0..=32u32,
            groups in 1..40usize,
            step in 1..100usize,
            seed: u32,
        ) {
            let count = 8 * groups;
            let value = |i: usize| (i as u32 ^ seed).wrapping_mul(0x9E37_79B9).checked_shr(32 - width).unwrap_or(0);
            let values: Vec<u32> = (0..count).map(value).collect();
            let bit = |bit: usize| values[bit / width as usize] >> (bit % width as usize) & 1;
            let byte = |byte: usize| (0..8).fold(0, |bits, n| bits | (bit(8 * byte + n) as u8) << n);
            let mut bytes = vec![(groups << 1 | 1) as u8];
            bytes.extend((0..groups * width as usize).map(byte));
            prop_assert_eq!(all(&bytes, width, count, step), values);
        }
    }

    #[test]
    fn truncated_indices_are_rejected() {
        let mut hybrid = Hybrid::new(3, 0).unwrap();
        assert!(hybrid.next(&[3], &mut [0; 8]).is_err());
        let mut hybrid = Hybrid::new(3, 0).unwrap();
        assert!(hybrid.next(&[], &mut [0; 8]).is_err());
        assert!(Hybrid::new(33, 0).is_err());
    }
}
