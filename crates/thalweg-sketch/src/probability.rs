//! The sampling probability of a row update: a power of two.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A probability 2^-k with k in 0..=10, so the increment 1/p is an integer and estimates are unbiased to the last
/// bit.
///
/// Ordered as numbers: 1/128 is less than 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Probability {
    log2_inverse: u8,
}

/// Invalid text for a sampling probability.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "invalid sampling probability `{text}`: expected 1, 1/2, 1/4, ... or 1/{}",
    Probability::FINEST_INVERSE
)]
pub struct ParseProbabilityError {
    /// The invalid text.
    pub text: String,
}

impl Probability {
    /// No sampling: every update is made.
    pub const ONE: Probability = Probability { log2_inverse: 0 };
    /// The smallest probability in the paper, 1/128.
    pub const PAPER_MIN: Probability = Probability { log2_inverse: 7 };
    /// The smallest supported probability, 1/1024.
    pub const MIN: Probability = Probability { log2_inverse: 10 };
    const FINEST_INVERSE: u64 = Self::MIN.inverse();

    /// Creates 2^-`log2_inverse`; `None` if that is below [`Probability::MIN`].
    pub const fn new(log2_inverse: u8) -> Option<Probability> {
        if log2_inverse <= Self::MIN.log2_inverse { Some(Probability { log2_inverse }) } else { None }
    }

    /// Returns the largest probability that is at most `value`, or else [`Probability::MIN`].
    pub fn at_most(value: f64) -> Probability {
        let log2_inverse = (0..=Self::MIN.log2_inverse).find(|&log2| 1.0 / f64::from(1u32 << log2) <= value);
        Probability { log2_inverse: log2_inverse.unwrap_or(Self::MIN.log2_inverse) }
    }

    /// Returns k of 2^-k.
    #[inline(always)]
    pub const fn log2_inverse(self) -> u8 {
        self.log2_inverse
    }

    /// Returns 1/p, the increment of a sampled update.
    #[inline(always)]
    pub const fn inverse(self) -> u64 {
        1 << self.log2_inverse
    }

    /// Returns 1/p - 1: the variance that sampling adds to a count, per unit of count.
    #[inline(always)]
    pub const fn excess(self) -> f64 {
        (self.inverse() - 1) as f64
    }

    /// Returns the smaller of two probabilities.
    #[inline(always)]
    #[must_use]
    pub const fn min(self, other: Probability) -> Probability {
        if self.log2_inverse >= other.log2_inverse { self } else { other }
    }

    /// Returns the probability as a number.
    pub const fn get(self) -> f64 {
        1.0 / self.inverse() as f64
    }
}

impl PartialOrd for Probability {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Probability {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.log2_inverse.cmp(&self.log2_inverse)
    }
}

/// Formats as `1`, `1/2`, `1/128`.
impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.log2_inverse {
            0 => f.pad("1"),
            _ => f.pad(&format!("1/{}", self.inverse())),
        }
    }
}

/// Parses a fraction or a decimal number: `1/16`, `0.0625`.
impl FromStr for Probability {
    type Err = ParseProbabilityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseProbabilityError { text: text.to_owned() };
        let value = match text.trim().split_once('/') {
            Some((one, inverse)) if one.trim() == "1" => {
                1.0 / inverse.trim().parse::<u32>().map_err(|_| error())? as f64
            }
            Some(_) => return Err(error()),
            None => text.trim().parse::<f64>().map_err(|_| error())?,
        };
        (0..=Self::MIN.log2_inverse)
            .map(|log2_inverse| Probability { log2_inverse })
            .find(|probability| probability.get() == value)
            .ok_or_else(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_parse_back_from_their_display() {
        for log2 in 0..=10 {
            let probability = Probability::new(log2).unwrap();
            assert_eq!(probability.to_string().parse(), Ok(probability));
            assert_eq!(probability.get().to_string().parse(), Ok(probability));
            assert_eq!(Probability::at_most(probability.get()), probability);
        }
        assert_eq!(Probability::new(11), None);
    }

    #[test]
    fn other_numbers_than_powers_of_two_are_rejected() {
        for text in ["0.3", "2", "0", "1/3", "2/4", "1/2048", "", "x", "-1", "NaN"] {
            assert!(text.parse::<Probability>().is_err(), "{text}");
        }
        assert!("1/3".parse::<Probability>().unwrap_err().to_string().contains("1/1024"));
    }

    #[test]
    fn probabilities_are_ordered_as_numbers() {
        assert!(Probability::MIN < Probability::PAPER_MIN && Probability::PAPER_MIN < Probability::ONE);
        assert_eq!(Probability::ONE.min(Probability::MIN), Probability::MIN);
        assert_eq!(Probability::at_most(0.3), Probability::new(2).unwrap());
        assert_eq!(Probability::at_most(0.0), Probability::MIN);
    }
}
