//! The number of registers: by precision, by memory, or by guarantee.

use thiserror::Error;

use super::HyperLogLog;
use super::estimator::{Ratio, normal_quantile};

/// Why a distinct counter cannot have a precision, a size or a guarantee.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum SizeError {
    /// The precision is out of range.
    #[error("precision {precision}: expected {min} to {max} (2^precision registers)")]
    Precision {
        /// The requested precision.
        precision: u8,
        /// The lowest supported precision.
        min: u8,
        /// The highest supported precision.
        max: u8,
    },
    /// The memory is too small for the smallest counter.
    #[error("{bytes} bytes of memory are too few: the smallest counter of this kind needs {min}")]
    Memory {
        /// The available memory.
        bytes: u64,
        /// The required memory.
        min: u64,
    },
    /// A parameter of the guarantee is not between 0 and 1.
    #[error("{name} = {value}: expected a number above 0 and below 1")]
    Guarantee {
        /// `eps` or `delta`.
        name: &'static str,
        /// The invalid value.
        value: f64,
    },
    /// The guarantee needs more registers than a counter may have.
    #[error(
        "eps = {eps}, delta = {delta} needs more than 2^{} registers, whose relative error is {min}: increase eps or delta",
        HyperLogLog::MAX_PRECISION
    )]
    TooLarge {
        /// The requested relative error.
        eps: f64,
        /// The requested failure probability.
        delta: f64,
        /// The smallest relative error with this failure probability.
        min: f64,
    },
}

/// Why bytes are not the registers of a distinct counter.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum RegistersError {
    /// The precision is out of range.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// The number of registers is wrong.
    #[error("{found} registers: expected {expected}")]
    Count {
        /// The number found.
        found: usize,
        /// The number expected.
        expected: usize,
    },
    /// The rank is impossible.
    #[error("register {register} has rank {rank}: expected at most {last}")]
    Rank {
        /// The index of the register.
        register: usize,
        /// Its value.
        rank: u8,
        /// The highest rank at this precision.
        last: u8,
    },
}

/// Returns the precision if it is in `least..=most`.
pub(crate) fn check_precision(precision: u8, min: u8, max: u8) -> Result<u8, SizeError> {
    if (min..=max).contains(&precision) {
        Ok(precision)
    } else {
        Err(SizeError::Precision { precision, min, max })
    }
}

/// Checks that there are `expected` registers, each with a valid rank for `precision`.
pub(crate) fn check_registers(
    registers: &[u8],
    expected: usize,
    precision: u8,
) -> Result<(), RegistersError> {
    if registers.len() != expected {
        return Err(RegistersError::Count { found: registers.len(), expected });
    }
    let last = super::last_rank(precision);
    match registers.iter().position(|&rank| rank > last) {
        Some(register) => Err(RegistersError::Rank { register, rank: registers[register], last }),
        None => Ok(()),
    }
}

/// The highest precision whose registers fit into `bytes`.
pub(super) fn precision_in(bytes: u64) -> Result<u8, SizeError> {
    let min = 1 << HyperLogLog::MIN_PRECISION;
    if bytes < min {
        return Err(SizeError::Memory { bytes, min });
    }
    Ok((bytes.ilog2() as u8).min(HyperLogLog::MAX_PRECISION))
}

/// The lowest precision whose relative error is at most `eps` with probability 1 - `delta`.
pub(super) fn precision_for(eps: f64, delta: f64) -> Result<u8, SizeError> {
    for (name, value) in [("eps", eps), ("delta", delta)] {
        if !(value > 0.0 && value < 1.0) {
            return Err(SizeError::Guarantee { name, value });
        }
    }
    let z = normal_quantile(delta);
    let error = |precision: u8| Ratio::deviations(precision, z).relative_error();
    (HyperLogLog::MIN_PRECISION..=HyperLogLog::MAX_PRECISION)
        .find(|&precision| error(precision) <= eps)
        .ok_or_else(|| SizeError::TooLarge { eps, delta, min: error(HyperLogLog::MAX_PRECISION) })
}
