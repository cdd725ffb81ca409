//! An estimate with its error bounds.

use std::fmt;

/// A value read from a sketch, with its error bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// The bounds of the truth, with their confidence.
    pub bound: Bound,
}

/// The error bounds of an estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Bound {
    /// The truth lies in `lower..=upper` with probability at least `confidence`.
    Interval {
        /// The lower bound.
        lower: f64,
        /// The upper bound.
        upper: f64,
        /// The probability that both bounds hold, over the choice of the hash's seed and the draws of the sampler; 1
        /// if they always hold.
        confidence: f64,
    },
    /// Too few updates were sampled for a bound to hold (see [`crate::nitro`]).
    NotConverged,
    /// No bound is known for this kind of estimate; only experiments show its accuracy.
    Unknown,
}

impl Estimate {
    /// Creates an exact value.
    pub const fn exact(value: f64) -> Estimate {
        Estimate { value, bound: Bound::Interval { lower: value, upper: value, confidence: 1.0 } }
    }

    /// Creates a value with an interval.
    pub const fn within(value: f64, lower: f64, upper: f64, confidence: f64) -> Estimate {
        Estimate { value, bound: Bound::Interval { lower, upper, confidence } }
    }

    /// Returns the lower bound, if known.
    pub const fn lower(&self) -> Option<f64> {
        match self.bound {
            Bound::Interval { lower, .. } => Some(lower),
            _ => None,
        }
    }

    /// Returns the upper bound, if known.
    pub const fn upper(&self) -> Option<f64> {
        match self.bound {
            Bound::Interval { upper, .. } => Some(upper),
            _ => None,
        }
    }

    /// Returns the probability that the bounds hold, if known.
    pub const fn confidence(&self) -> Option<f64> {
        match self.bound {
            Bound::Interval { confidence, .. } => Some(confidence),
            _ => None,
        }
    }

    /// Whether `truth` is within the bounds; `None` without bounds.
    pub fn contains(&self, truth: f64) -> Option<bool> {
        match self.bound {
            Bound::Interval { lower, upper, .. } => Some(lower <= truth && truth <= upper),
            _ => None,
        }
    }

    /// Applies an increasing function to the value and its bounds.
    #[must_use]
    pub fn map(self, increasing: impl Fn(f64) -> f64) -> Estimate {
        let bound = match self.bound {
            Bound::Interval { lower, upper, confidence } => {
                Bound::Interval { lower: increasing(lower), upper: increasing(upper), confidence }
            }
            other => other,
        };
        Estimate { value: increasing(self.value), bound }
    }

    /// Estimates the difference of two quantities; its bounds hold if both operands' bounds hold.
    #[must_use]
    pub fn minus(self, other: Estimate) -> Estimate {
        let value = self.value - other.value;
        match (self.bound, other.bound) {
            (
                Bound::Interval { lower, upper, confidence },
                Bound::Interval { lower: other_lower, upper: other_upper, confidence: other_confidence },
            ) => Estimate::within(
                value,
                lower - other_upper,
                upper - other_lower,
                (confidence + other_confidence - 1.0).max(0.0),
            ),
            (Bound::Interval { .. }, bound) | (bound, _) => Estimate { value, bound },
        }
    }

    /// Clamps the value and its bounds to zero, for a quantity that cannot be negative.
    #[must_use]
    pub fn at_least_zero(self) -> Estimate {
        let bound = match self.bound {
            Bound::Interval { lower, upper, confidence } => {
                Bound::Interval { lower: lower.max(0.0), upper: upper.max(0.0), confidence }
            }
            other => other,
        };
        Estimate { value: self.value.max(0.0), bound }
    }
}

/// Formats as `1234 [1200, 1260] 97 %`, `1234 (not converged)` or `1234 (no bound)`.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = f.precision().unwrap_or(0);
        write!(f, "{:.decimals$}", self.value)?;
        match self.bound {
            Bound::Interval { lower, upper, confidence } => {
                write!(f, " [{lower:.decimals$}, {upper:.decimals$}] {:.1} %", confidence * 100.0)
            }
            Bound::NotConverged => f.write_str(" (not converged)"),
            Bound::Unknown => f.write_str(" (no bound)"),
        }
    }
}

/// The factor c of Chebyshev's inequality that all intervals of row-wise sketches use: the error of a row exceeds
/// sqrt(c * variance) with probability at most 1/c.
///
/// With c = 8 one row is wrong one time in eight, and the median of five rows one time in sixty.
pub const CHEBYSHEV_FACTOR: f64 = 8.0;

/// Returns the probability that the median of `rows` independent rows is wrong when each is wrong with probability
/// `row_failure`: at least half of them have to be wrong, P(Bin(rows, q) >= rows/2).
///
/// For an even number of rows the median is the mean of the middle two, so exactly half being wrong counts as a
/// failure too.
pub fn median_failure(rows: usize, row_failure: f64) -> f64 {
    let (n, q) = (rows as u32, row_failure.clamp(0.0, 1.0));
    let mut choose = 1.0;
    let mut tail = 0.0;
    for wrong in 0..=n {
        if 2 * wrong >= n {
            tail += choose * q.powi(wrong as i32) * (1.0 - q).powi((n - wrong) as i32);
        }
        choose *= f64::from(n - wrong) / f64::from(wrong + 1);
    }
    tail.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_five_rows_fails_one_time_in_sixty() {
        // Manual calculation: 10 q^3 (1-q)^2 + 5 q^4 (1-q) + q^5 with q = 1/8.
        let by_hand = (10.0 * 49.0 + 5.0 * 7.0 + 1.0) / 32_768.0;
        assert!((median_failure(5, 1.0 / CHEBYSHEV_FACTOR) - by_hand).abs() < 1e-12);
        assert!((1.0 / 64.0..1.0 / 60.0).contains(&by_hand));
    }

    #[test]
    fn median_of_one_row_fails_like_the_row() {
        assert!((median_failure(1, 0.25) - 0.25).abs() < 1e-12);
        // One wrong row of two is enough to spoil their mean.
        assert!((median_failure(2, 0.25) - (1.0 - 0.75 * 0.75)).abs() < 1e-12);
    }

    #[test]
    fn estimates_display_their_bounds() {
        let estimate = Estimate::within(-3.0, -8.0, 2.0, 0.97);
        assert_eq!(estimate.contains(2.5), Some(false));
        assert_eq!(estimate.to_string(), "-3 [-8, 2] 97.0 %");
        assert_eq!(estimate.at_least_zero(), Estimate::within(0.0, 0.0, 2.0, 0.97));
        assert_eq!(estimate.map(|value| 2.0 * value), Estimate::within(-6.0, -16.0, 4.0, 0.97));
        let other = Estimate::within(10.0, 9.0, 12.0, 0.98);
        let difference = other.minus(estimate);
        assert_eq!((difference.value, difference.lower(), difference.upper()), (13.0, Some(7.0), Some(20.0)));
        assert!((difference.confidence().unwrap() - 0.95).abs() < 1e-12);
        let unsure = Estimate { value: 5.0, bound: Bound::NotConverged };
        assert_eq!(estimate.minus(unsure).bound, Bound::NotConverged);
        assert_eq!((unsure.to_string().as_str(), unsure.contains(5.0)), ("5 (not converged)", None));
    }
}
