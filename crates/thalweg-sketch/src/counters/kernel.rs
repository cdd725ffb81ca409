//! The two hot loops: adding to one counter of each row, and reading a key's counters.
//!
//! Both are written once, generic over the number of rows, and compiled twice: portably and for processors with AVX2.
//! Columns are masked to the rows' common width, a power of two, so the compiler can prove that every index is in
//! range and omits the bounds checks. Both versions give identical results.

use super::counter::Counter;
use crate::digest::Digest;
use crate::shape::Slices;

/// Adds to one counter of each row for each digest.
#[inline(always)]
pub(super) fn add_rows<C: Counter, const ROWS: usize, const SIGNED: bool>(
    rows: [&mut [C]; ROWS],
    slices: &Slices,
    digests: &[Digest],
    weight: impl Fn(usize) -> i64,
) {
    let width = rows[0].len();
    assert!(width > 0 && rows.iter().all(|row| row.len() == width));
    let at: [(usize, u32); ROWS] = std::array::from_fn(|row| slices.at(row));
    for (number, digest) in digests.iter().enumerate() {
        let weights = C::both_signs(weight(number));
        for row in 0..ROWS {
            let (word, shift) = at[row];
            let bits = digest.0[word] >> shift;
            let cell = &mut rows[row][(bits >> 1) as usize & (width - 1)];
            *cell = cell.plus_unchecked(weights[if SIGNED { (bits & 1) as usize } else { 0 }]);
        }
    }
}

/// Keys that are read in parallel.
pub(super) const LANES: usize = 8;

/// How the counters of a key are reduced to one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The minimum.
    Minimum,
    /// The median; for an even number of rows, the midpoint of the middle two.
    Median,
}

/// Reads eight keys in parallel, sorting their rows with a network of vector minima and maxima.
#[inline(always)]
pub(super) fn read_lanes<C: Counter, const ROWS: usize, const SIGNED: bool>(
    rows: [&[C]; ROWS],
    slices: &Slices,
    digests: &[Digest; LANES],
    reading: Reading,
) -> [C; LANES] {
    let width = rows[0].len();
    assert!(width > 0 && rows.iter().all(|row| row.len() == width));
    let mut values = [[C::default(); LANES]; ROWS];
    for row in 0..ROWS {
        let (word, shift) = slices.at(row);
        for (value, digest) in values[row].iter_mut().zip(digests) {
            let bits = digest.0[word] >> shift;
            let cell = rows[row][(bits >> 1) as usize & (width - 1)];
            *value = cell.signed(SIGNED && bits & 1 == 1);
        }
    }
    for end in (1..ROWS).rev() {
        for row in 0..end {
            let (first, second) = values.split_at_mut(row + 1);
            for (a, b) in first[row].iter_mut().zip(&mut second[0]) {
                (*a, *b) = ((*a).min(*b), (*a).max(*b));
            }
        }
    }
    match reading {
        Reading::Minimum => values[0],
        Reading::Median if ROWS % 2 == 1 => values[ROWS / 2],
        Reading::Median => {
            std::array::from_fn(|lane| values[ROWS / 2 - 1][lane].midpoint(values[ROWS / 2][lane]))
        }
    }
}

/// The same loops for processors with AVX2, all of which have single-step variable shifts (BMI2).
#[cfg(target_arch = "x86_64")]
pub(super) mod avx2 {
    use super::{Counter, Digest, LANES, Reading, Slices};

    /// Whether this processor supports the instructions that the loops are compiled for.
    #[inline(always)]
    pub(in super::super) fn is_supported() -> bool {
        std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("bmi2")
    }

    #[inline(always)]
    #[expect(unsafe_code, reason = "a function compiled for a processor's features")]
    pub(in super::super) fn add_rows<C: Counter, const ROWS: usize, const SIGNED: bool>(
        rows: [&mut [C]; ROWS],
        slices: &Slices,
        digests: &[Digest],
        weight: impl Fn(usize) -> i64,
    ) {
        // SAFETY: callers have checked `is_supported`.
        unsafe { compiled_add_rows::<C, ROWS, SIGNED>(rows, slices, digests, weight) }
    }

    #[inline(always)]
    #[expect(unsafe_code, reason = "a function compiled for a processor's features")]
    pub(in super::super) fn read_lanes<C: Counter, const ROWS: usize, const SIGNED: bool>(
        rows: [&[C]; ROWS],
        slices: &Slices,
        digests: &[Digest; LANES],
        reading: Reading,
    ) -> [C; LANES] {
        // SAFETY: callers have checked `is_supported`.
        unsafe { compiled_read_lanes::<C, ROWS, SIGNED>(rows, slices, digests, reading) }
    }

    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn compiled_read_lanes<C: Counter, const ROWS: usize, const SIGNED: bool>(
        rows: [&[C]; ROWS],
        slices: &Slices,
        digests: &[Digest; LANES],
        reading: Reading,
    ) -> [C; LANES] {
        super::read_lanes::<C, ROWS, SIGNED>(rows, slices, digests, reading)
    }

    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn compiled_add_rows<C: Counter, const ROWS: usize, const SIGNED: bool>(
        rows: [&mut [C]; ROWS],
        slices: &Slices,
        digests: &[Digest],
        weight: impl Fn(usize) -> i64,
    ) {
        super::add_rows::<C, ROWS, SIGNED>(rows, slices, digests, weight);
    }
}
