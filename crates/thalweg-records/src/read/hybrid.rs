//! Parquet's hybrid of runs and bit-packed groups (Parquet format, "Run Length Encoding / Bit-Packing Hybrid").
//!
//! Dictionary indices and definition levels come in it. A header is a varint: its lowest bit tells a bit-packed
//! stretch (of eight values times the rest of it) from a run (of one value, as often as the rest says).

use super::malformed::Malformed;
use crate::by_width::by_width;

/// Values before position, and what the current run has left.
#[derive(Debug, Default)]
pub(super) struct Hybrid {
    /// Bits of a value, 0 to 32.
    width: u32,
    /// Byte at which the next header or, in a packed stretch, the next group stands.
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

/// A stretch of values of one kind.
pub(super) enum Stretch {
    /// One value, so many times.
    Same(u32, usize),
    /// So many values, now in the buffer.
    Each(usize),
}

impl Hybrid {
    /// Values of `width` bits from byte `at` on.
    pub(super) fn new(width: u32, at: usize) -> Result<Hybrid, Malformed> {
        match width <= 32 {
            true => Ok(Hybrid { width, at, run: Run::default() }),
            false => Err(Malformed("dictionary indices of at most 32 bits")),
        }
    }

    /// The next values, at most as many as the buffer takes; it must take one.
    #[inline]
    pub(super) fn next(&mut self, bytes: &[u8], buffer: &mut [u32]) -> Result<Stretch, Malformed> {
        loop {
            match &mut self.run {
                Run::Same { left: 0, .. } | Run::Packed { left: 0, .. } => self.header(bytes)?,
                Run::Same { value, left } => {
                    let count = buffer.len().min(*left);
                    *left -= count;
                    return Ok(Stretch::Same(*value, count));
                }
                Run::Packed { bit, left } => {
                    let count = buffer.len().min(*left);
                    unpack(bytes, *bit, self.width, &mut buffer[..count]);
                    *bit += count * self.width as usize;
                    *left -= count;
                    return Ok(Stretch::Each(count));
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
            // The last group may be cut short where the page ends.
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

/// Bytes from the first of eight values on in which each has a word of its own, at any width.
const WINDOW: usize = 7 * 32 / 8 + 8;

/// Values of `width` bits, least significant first, from a bit on.
fn unpack(bytes: &[u8], bit: usize, width: u32, out: &mut [u32]) {
    let width = width as usize;
    if width == 0 {
        return out.fill(0);
    }
    // Eight values take whole bytes: from a whole byte on, each stands where the one eight before it did.
    let first = (0..8).find(|first| (bit + first * width).is_multiple_of(8)).unwrap_or(0);
    let (first, rest) = out.split_at_mut(first.min(out.len()));
    one_by_one(bytes, bit, width, first);

    let bit = bit + first.len() * width;
    let whole = bytes.get(bit / 8..).unwrap_or_default();
    let windows = whole.len().checked_sub(WINDOW).map_or(0, |last| last / width + 1);
    let (eights, rest) = rest.split_at_mut(8 * windows.min(rest.len() / 8));
    by_width!(of 32 width, by_eights(whole, eights));
    one_by_one(bytes, bit + eights.len() * width, width, rest);
}

/// With the width known, a value is a word, a shift and a mask.
fn by_eights<const WIDTH: usize>(bytes: &[u8], out: &mut [u32]) {
    let mask = u32::MAX >> (32 - WIDTH);
    for (number, eight) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let window: &[u8; WINDOW] = bytes[number * WIDTH..].first_chunk().expect("a window for each eight");
        *eight = std::array::from_fn(|n| {
            let word = window[n * WIDTH / 8..].first_chunk().expect("a word for each value");
            (u64::from_le_bytes(*word) >> (n * WIDTH % 8)) as u32 & mask
        });
    }
}

/// From any bit on, to the last byte.
fn one_by_one(bytes: &[u8], mut bit: usize, width: usize, out: &mut [u32]) {
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
                Stretch::Same(value, count) => values.extend(std::iter::repeat_n(value, count)),
                Stretch::Each(count) => values.extend(&buffer[..count]),
            }
        }
        values
    }

    /// The format's own example: 0 to 7 in three bits are 0x88 0xC6 0xFA.
    #[test]
    fn runs_and_packed_groups_are_read_whatever_the_size_of_the_steps() {
        let bytes = [3, 0x88, 0xC6, 0xFA, 5 << 1, 6, 3, 0x88, 0xC6, 0xFA];
        let expected: Vec<u32> = (0..8).chain([6; 5]).chain(0..8).collect();
        for step in 1..30 {
            assert_eq!(all(&bytes, 3, 21, step), expected, "{step}");
        }
    }

    proptest! {
        #[test]
        fn packed_values_are_read_at_every_width_to_the_last_byte_whatever_the_size_of_the_steps(
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
    fn indices_that_end_early_are_refused() {
        let mut hybrid = Hybrid::new(3, 0).unwrap();
        assert!(hybrid.next(&[3], &mut [0; 8]).is_err());
        let mut hybrid = Hybrid::new(3, 0).unwrap();
        assert!(hybrid.next(&[], &mut [0; 8]).is_err());
        assert!(Hybrid::new(33, 0).is_err());
    }
}
