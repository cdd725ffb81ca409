//! HyperLogLog: the number of distinct keys.
//!
//! Flajolet, Fusy, Gandouet, Meunier 2007, "HyperLogLog: the analysis of a near-optimal cardinality estimation
//! algorithm", with the improved raw estimator of Ertl 2017, "New cardinality estimation algorithms for HyperLogLog
//! sketches". The top p bits of a key's digest choose one of m = 2^p registers. It keeps the highest rank of its
//! keys: one more than the number of leading zeros of the remaining 64 - p bits.
//!
//! **Guarantee.** The relative standard error is 1.04/sqrt(m) (theorem 1 there), 0.8 % for p = 14. It is lower with
//! fewer keys than registers, and up to 1.2/sqrt(m) for the 16 registers of p = 4. The estimate's interval has
//! [`HyperLogLog::CONFIDENCE`], 99 %. It is a normal approximation with a correction for skewness, verified by tests,
//! not a proven inequality. The estimate is too high on average by at most 1.1/m of the truth, which is 1/sqrt(m) of
//! its standard deviation.
//!
//! Only the first word of a digest is used, so a key counts once even if other sketches use the same digest. The
//! range ends at 2^64 keys, far beyond the number where two keys have the same word.
//!
//! Memory: m bytes. An update touches one of them. A register needs only 6 bits, but packing them costs more time
//! than the memory is worth.

pub(crate) mod estimator;
pub(crate) mod size;

use crate::digest::{Digest, Hasher};
use crate::estimate::{Bound, Estimate};
use crate::merge::MergeError;
use estimator::{CONFIDENCE, DEVIATION, Ratio};
pub use size::{RegistersError, SizeError};

/// A counter of distinct keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HyperLogLog {
    hasher: Hasher,
    precision: u8,
    registers: Vec<u8>,
}

impl HyperLogLog {
    /// The lowest precision: 16 registers, a standard error of 26 %.
    pub const MIN_PRECISION: u8 = 4;
    /// The highest precision: 256 Ki registers, a standard error of 0.2 %.
    pub const MAX_PRECISION: u8 = 18;
    /// The probability that an estimate's interval holds.
    pub const CONFIDENCE: f64 = CONFIDENCE;

    /// Creates an empty counter of 2^`precision` registers.
    ///
    /// # Errors
    /// If `precision` is not in 4..=18.
    pub fn new(precision: u8, hasher: Hasher) -> Result<HyperLogLog, SizeError> {
        let precision = size::check_precision(precision, Self::MIN_PRECISION, Self::MAX_PRECISION)?;
        Ok(HyperLogLog { hasher, precision, registers: vec![0; 1 << precision] })
    }

    /// Creates the most precise counter that takes at most `memory_bytes`.
    ///
    /// # Errors
    /// If the smallest counter does not fit.
    pub fn for_memory(memory_bytes: u64, hasher: Hasher) -> Result<HyperLogLog, SizeError> {
        Self::new(size::precision_in(memory_bytes)?, hasher)
    }

    /// Creates the smallest counter whose relative error is at most `eps` with probability 1 - `delta`, or whose
    /// error is one key.
    ///
    /// # Errors
    /// If `eps` or `delta` is not between 0 and 1, or the counter would exceed the maximum size.
    pub fn for_guarantee(eps: f64, delta: f64, hasher: Hasher) -> Result<HyperLogLog, SizeError> {
        Self::new(size::precision_for(eps, delta)?, hasher)
    }

    /// Restores a saved counter.
    ///
    /// # Errors
    /// If the precision is out of range, the number of registers does not match it, or a register has an impossible
    /// rank.
    pub fn from_registers(
        precision: u8,
        hasher: Hasher,
        registers: Vec<u8>,
    ) -> Result<HyperLogLog, RegistersError> {
        let precision = size::check_precision(precision, Self::MIN_PRECISION, Self::MAX_PRECISION)?;
        size::check_registers(&registers, 1 << precision, precision)?;
        Ok(HyperLogLog { hasher, precision, registers })
    }

    /// Returns the hash.
    pub fn hasher(&self) -> Hasher {
        self.hasher
    }

    /// Returns p, the binary logarithm of the number of registers.
    pub fn precision(&self) -> u8 {
        self.precision
    }

    /// Returns the highest rank of each register; zero if it has no key.
    pub fn registers(&self) -> &[u8] {
        &self.registers
    }

    /// Returns the memory of the registers, in bytes.
    pub fn bytes(&self) -> u64 {
        self.registers.len() as u64
    }

    /// Returns the standard deviation of estimate/truth: 1.04/sqrt(m).
    pub fn relative_standard_error(&self) -> f64 {
        DEVIATION / (self.registers.len() as f64).sqrt()
    }

    /// Returns (eps, delta): the relative error is at most eps with probability 1 - delta =
    /// [`HyperLogLog::CONFIDENCE`].
    pub fn guarantee(&self) -> (f64, f64) {
        (Ratio::of(self.precision).relative_error(), 1.0 - CONFIDENCE)
    }

    /// Counts the key of `digest`, unless it was counted before. Returns whether a register changed; if so, the key
    /// is new.
    #[inline(always)]
    pub fn add(&mut self, digest: Digest) -> bool {
        let (index, rank) = register_and_rank(digest, self.precision);
        raise(&mut self.registers[index], rank)
    }

    /// Counts the keys of all `digests`.
    pub fn add_batch(&mut self, digests: &[Digest]) {
        let precision = self.precision;
        let registers = self.registers.as_mut_slice();
        for &digest in digests {
            let (index, rank) = register_and_rank(digest, precision);
            raise(&mut registers[index], rank);
        }
    }

    /// Estimates the number of distinct keys. Exactly zero if there were none.
    ///
    /// Reads every register.
    pub fn estimate(&self) -> Estimate {
        let value = estimator::keys(&self.registers, self.precision);
        if value == 0.0 {
            return Estimate::exact(0.0);
        }
        if value >= HASHES {
            return Estimate { value: HASHES, bound: Bound::Unknown };
        }
        let ratio = Ratio::of(self.precision);
        let occupied = self.registers.iter().filter(|&&rank| rank > 0).count() as f64;
        let lower = ratio.lower(value).max(occupied);
        Estimate::within(value, lower, ratio.upper(value), CONFIDENCE)
    }

    /// Merges `other` into this counter, which then counts the keys of both.
    ///
    /// # Errors
    /// If precisions or seeds differ; then nothing changes.
    pub fn merge(&mut self, other: &HyperLogLog) -> Result<(), MergeError> {
        MergeError::unless_same_precision(self.precision, other.precision)?;
        MergeError::unless_same_seed(self.hasher, other.hasher)?;
        join(&mut self.registers, &other.registers);
        Ok(())
    }

    /// Resets the counter.
    pub fn clear(&mut self) {
        self.registers.fill(0);
    }
}

/// The number of different first words of a digest.
const HASHES: f64 = 18_446_744_073_709_551_616.0;

/// The highest rank: that of a hash whose remaining 64 - p bits are all zero.
pub(crate) const fn last_rank(precision: u8) -> u8 {
    (u64::BITS + 1) as u8 - precision
}

/// Returns the register of a key, below 2^`precision`, and its rank.
#[inline(always)]
pub(crate) const fn register_and_rank(digest: Digest, precision: u8) -> (usize, u8) {
    let word = digest.0[0];
    // The one after the last bit ends the run of zeros.
    let rest = word << precision | 1 << (precision - 1);
    ((word >> (u64::BITS - precision as u32)) as usize, rest.leading_zeros() as u8 + 1)
}

/// Raises a register to `rank`; returns whether it changed. With many keys it rarely does, so the branch predicts
/// well.
#[inline(always)]
pub(crate) fn raise(register: &mut u8, rank: u8) -> bool {
    let grows = rank > *register;
    if grows {
        *register = rank;
    }
    grows
}

/// Takes the maximum of each pair of registers.
pub(crate) fn join(ours: &mut [u8], theirs: &[u8]) {
    for (ours, &theirs) in ours.iter_mut().zip(theirs) {
        *ours = (*ours).max(theirs);
    }
}

#[cfg(test)]
mod tests;
