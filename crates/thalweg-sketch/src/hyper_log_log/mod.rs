//! HyperLogLog: how many different keys there were.
//!
//! Flajolet, Fusy, Gandouet, Meunier 2007, "HyperLogLog: the analysis of a near-optimal cardinality estimation
//! algorithm", read by the improved raw estimator of Ertl 2017, "New cardinality estimation algorithms for
//! HyperLogLog sketches". The top p bits of a key's digest choose one of m = 2^p registers, which keeps the highest
//! rank it has met: one more than the number of zeros that the remaining 64 - p bits begin with.
//!
//! **Guarantee.** The relative standard error is 1.04/sqrt(m) (theorem 1 there), 0.8 % for p = 14; less for fewer
//! keys than registers, and up to 1.2/sqrt(m) for the 16 registers of p = 4. The estimate's interval has [`HyperLogLog::CONFIDENCE`], 99 %, by a normal approximation with a
//! correction for skewness, which tests check; it is no inequality that could not fail. The estimate is too high
//! on average by at most 1.1/m of the truth, which is 1/sqrt(m) of its own deviation.
//!
//! Only the first word of a digest is used, so that the same key counts once whatever sketches share its digest.
//! Counting goes up to 2^64 keys, far beyond the number where two keys have the same word.
//!
//! Memory: m bytes. An update touches one of them. A register needs only 6 bits, but taking them apart costs more
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
    /// Probability that an estimate's interval holds.
    pub const CONFIDENCE: f64 = CONFIDENCE;

    /// An empty counter of 2^`precision` registers.
    ///
    /// # Errors
    /// If `precision` is not in 4..=18.
    pub fn new(precision: u8, hasher: Hasher) -> Result<HyperLogLog, SizeError> {
        let precision = size::check_precision(precision, Self::MIN_PRECISION, Self::MAX_PRECISION)?;
        Ok(HyperLogLog { hasher, precision, registers: vec![0; 1 << precision] })
    }

    /// The most precise counter that takes at most `memory_bytes`.
    ///
    /// # Errors
    /// If not even the smallest fits.
    pub fn for_memory(memory_bytes: u64, hasher: Hasher) -> Result<HyperLogLog, SizeError> {
        Self::new(size::precision_in(memory_bytes)?, hasher)
    }

    /// The smallest counter whose relative error is at most `eps` with probability 1 - `delta`, or whose error is
    /// one key.
    ///
    /// # Errors
    /// If they are not between 0 and 1, or ask for a counter larger than there is.
    pub fn for_guarantee(eps: f64, delta: f64, hasher: Hasher) -> Result<HyperLogLog, SizeError> {
        Self::new(size::precision_for(eps, delta)?, hasher)
    }

    /// A counter as it was saved.
    ///
    /// # Errors
    /// If the precision is out of range, the registers are not as many as it says, or one has a rank that no hash
    /// has.
    pub fn from_registers(
        precision: u8,
        hasher: Hasher,
        registers: Vec<u8>,
    ) -> Result<HyperLogLog, RegistersError> {
        let precision = size::check_precision(precision, Self::MIN_PRECISION, Self::MAX_PRECISION)?;
        size::check_registers(&registers, 1 << precision, precision)?;
        Ok(HyperLogLog { hasher, precision, registers })
    }

    /// Its hash.
    pub fn hasher(&self) -> Hasher {
        self.hasher
    }

    /// p: the binary logarithm of the number of registers.
    pub fn precision(&self) -> u8 {
        self.precision
    }

    /// The highest rank that each register has met; zero if none.
    pub fn registers(&self) -> &[u8] {
        &self.registers
    }

    /// Memory of its registers, in bytes.
    pub fn bytes(&self) -> u64 {
        self.registers.len() as u64
    }

    /// Standard deviation of estimate/truth: 1.04/sqrt(m).
    pub fn relative_standard_error(&self) -> f64 {
        DEVIATION / (self.registers.len() as f64).sqrt()
    }

    /// The relative error eps, and the probability of more, delta = 1 - [`HyperLogLog::CONFIDENCE`].
    pub fn guarantee(&self) -> (f64, f64) {
        (Ratio::of(self.precision).relative_error(), 1.0 - CONFIDENCE)
    }

    /// Counts the key of `digest`, unless it was counted before. Whether a register grew: if so, the key is new;
    /// if not, nothing has changed.
    #[inline(always)]
    pub fn add(&mut self, digest: Digest) -> bool {
        let (index, rank) = place(digest, self.precision);
        raise(&mut self.registers[index], rank)
    }

    /// Counts the keys of all `digests`.
    pub fn add_batch(&mut self, digests: &[Digest]) {
        let precision = self.precision;
        let registers = self.registers.as_mut_slice();
        for &digest in digests {
            let (index, rank) = place(digest, precision);
            raise(&mut registers[index], rank);
        }
    }

    /// Number of different keys counted. Exactly zero if there were none.
    ///
    /// Looks at every register.
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

    /// Makes it the counter of the keys of both.
    ///
    /// # Errors
    /// If precisions or seeds differ; then nothing has changed.
    pub fn merge(&mut self, other: &HyperLogLog) -> Result<(), MergeError> {
        MergeError::unless_same_precision(self.precision, other.precision)?;
        MergeError::unless_same_seed(self.hasher, other.hasher)?;
        join(&mut self.registers, &other.registers);
        Ok(())
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.registers.fill(0);
    }
}

/// Number of different first words of a digest.
const HASHES: f64 = 18_446_744_073_709_551_616.0;

/// The rank of a hash whose remaining 64 - p bits are all zero; there is none above.
pub(crate) const fn last_rank(precision: u8) -> u8 {
    (u64::BITS + 1) as u8 - precision
}

/// Which register counts a key, below 2^`precision`, and with which rank.
#[inline(always)]
pub(crate) const fn place(digest: Digest, precision: u8) -> (usize, u8) {
    let word = digest.0[0];
    // A one behind the last bit ends the run of zeros there.
    let rest = word << precision | 1 << (precision - 1);
    ((word >> (u64::BITS - precision as u32)) as usize, rest.leading_zeros() as u8 + 1)
}

/// Raises a register to `rank`; whether it grew. Hardly ever, once there are many keys: the branch is foreseen.
#[inline(always)]
pub(crate) fn raise(register: &mut u8, rank: u8) -> bool {
    let grows = rank > *register;
    if grows {
        *register = rank;
    }
    grows
}

/// Takes the higher one of each pair of registers.
pub(crate) fn join(mine: &mut [u8], theirs: &[u8]) {
    for (mine, &theirs) in mine.iter_mut().zip(theirs) {
        *mine = (*mine).max(theirs);
    }
}

#[cfg(test)]
mod tests;
