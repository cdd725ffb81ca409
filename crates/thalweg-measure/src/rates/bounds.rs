//! Compact bounds of a rate, stored in a track.

use bytemuck::{Pod, Zeroable};
use thalweg_sketch::Estimate;

use super::sampling::CONFIDENCE;

/// The bounds of a rate, in bits per second.
///
/// Rates are not negative, so the sign of the upper bound encodes the confidence: with a minus both bounds hold with
/// [`CONFIDENCE`], without they are certain. Together with the rate in one cache line, this is all that the sum of a
/// link needs.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Bounds {
    /// NaN if unknown.
    lower: f32,
    upper: f32,
}

impl Bounds {
    /// The bounds of a rate that is certainly zero.
    pub(crate) const ZERO: Bounds = Bounds { lower: 0.0, upper: 0.0 };

    /// Creates bounds that are certain, or hold with [`CONFIDENCE`]; NaN if unknown.
    #[inline(always)]
    pub(crate) fn new(lower: f64, upper: f64, is_certain: bool) -> Bounds {
        let upper = if is_certain { upper } else { -upper };
        Bounds { lower: lower as f32, upper: upper as f32 }
    }

    /// Returns the rate with its bounds.
    #[inline]
    pub(crate) fn of(self, rate: u64) -> Estimate {
        let value = rate as f64;
        if self.lower.is_nan() {
            return Estimate { value, bound: thalweg_sketch::Bound::Unknown };
        }
        let confidence = if self.upper.is_sign_negative() { CONFIDENCE } else { 1.0 };
        Estimate::within(value, self.lower.into(), self.upper.abs().into(), confidence)
    }
}

#[cfg(test)]
mod tests {
    use thalweg_sketch::Bound;

    use super::*;

    #[test]
    fn packed_bounds_are_unpacked_unchanged() {
        let interval = |lower, upper, confidence| Bound::Interval { lower, upper, confidence };
        let bound = |lower, upper, is_certain| Bounds::new(lower, upper, is_certain).of(7).bound;
        assert_eq!(bound(4.0, 8.0, true), interval(4.0, 8.0, 1.0));
        assert_eq!(bound(4.0, 8.0, false), interval(4.0, 8.0, CONFIDENCE));
        assert_eq!(bound(4.0, f64::INFINITY, false), interval(4.0, f64::INFINITY, CONFIDENCE));
        assert_eq!(bound(f64::NAN, f64::NAN, false), Bound::Unknown);
        assert_eq!(Bounds::ZERO.of(0).bound, interval(0.0, 0.0, 1.0));
    }
}
