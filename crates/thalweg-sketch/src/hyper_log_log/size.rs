//! How many registers: by precision, by memory, or by guarantee.

use thiserror::Error;

use super::HyperLogLog;
use super::estimator::{Ratio, normal_quantile};

/// Why there is no distinct counter of a precision, a size or a guarantee.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum SizeError {
    /// Precision out of range.
    #[error("precision {precision}: expected {least} to {most} (2^precision registers)")]
    Precision {
        /// Precision asked for.
        precision: u8,
        /// The lowest there is.
        least: u8,
        /// The highest there is.
        most: u8,
    },
    /// The memory does not hold the smallest one.
    #[error("{bytes} bytes are too few: the smallest counter of this kind takes {least}")]
    Memory {
        /// Memory offered.
        bytes: u64,
        /// Memory needed.
        least: u64,
    },
    /// A guarantee that is not between zero and one.
    #[error("{name} = {value}: expected a number above 0 and below 1")]
    Guarantee {
        /// `eps` or `delta`.
        name: &'static str,
        /// The value given.
        value: f64,
    },
    /// A guarantee that takes more registers than a counter may have.
    #[error(
        "eps = {eps}, delta = {delta} takes more than 2^{} registers, whose error is {least}",
        HyperLogLog::MAX_PRECISION
    )]
    TooLarge {
        /// Relative error asked for.
        eps: f64,
        /// Failure probability asked for.
        delta: f64,
        /// The smallest relative error there is with this failure probability.
        least: f64,
    },
}

/// Why bytes are not the registers of a distinct counter.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum RegistersError {
    /// There is no counter of this precision.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// Too few or too many.
    #[error("{found} registers where there should be {expected}")]
    Count {
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// A rank that no hash has.
    #[error("register {register} has rank {rank}: the last rank is {last}")]
    Rank {
        /// Number of the register, from zero.
        register: usize,
        /// Its value.
        rank: u8,
        /// The highest there is at this precision.
        last: u8,
    },
}

/// The precision, if it is one of `least..=most`.
pub(crate) fn check_precision(precision: u8, least: u8, most: u8) -> Result<u8, SizeError> {
    if (least..=most).contains(&precision) {
        Ok(precision)
    } else {
        Err(SizeError::Precision { precision, least, most })
    }
}

/// Whether there are `expected` registers and each has a rank of a counter of `precision`.
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
    let least = 1 << HyperLogLog::MIN_PRECISION;
    if bytes < least {
        return Err(SizeError::Memory { bytes, least });
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
    let error = |precision: u8| Ratio::within(precision, z).relative_error();
    (HyperLogLog::MIN_PRECISION..=HyperLogLog::MAX_PRECISION)
        .find(|&precision| error(precision) <= eps)
        .ok_or_else(|| SizeError::TooLarge { eps, delta, least: error(HyperLogLog::MAX_PRECISION) })
}
