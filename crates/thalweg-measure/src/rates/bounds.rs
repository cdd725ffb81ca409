//! Bounds of a rate in the little room that a track has for them.

use bytemuck::{Pod, Zeroable};
use thalweg_sketch::Estimate;

use super::sampling::CONFIDENCE;

/// Between which values a rate lies, in bits per second.
///
/// Rates are not negative. So the sign of the upper bound is free to say how sure both are: with a minus they hold with
/// [`CONFIDENCE`], without for certain. Beside the rate in one cache line this is all that summing up a link takes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Bounds {
    /// Not a number if nothing is known.
    lower: f32,
    upper: f32,
}

impl Bounds {
    /// Of a rate that is zero for certain.
    pub(crate) const ZERO: Bounds = Bounds { lower: 0.0, upper: 0.0 };

    /// Bounds that hold for certain, or with [`CONFIDENCE`]; not a number if unknown.
    #[inline(always)]
    pub(crate) fn new(lower: f64, upper: f64, is_certain: bool) -> Bounds {
        let upper = if is_certain { upper } else { -upper };
        Bounds { lower: lower as f32, upper: upper as f32 }
    }

    /// The rate with its bounds.
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
    fn what_goes_in_comes_out() {
        let interval = |lower, upper, confidence| Bound::Interval { lower, upper, confidence };
        let bound = |lower, upper, is_certain| Bounds::new(lower, upper, is_certain).of(7).bound;
        assert_eq!(bound(4.0, 8.0, true), interval(4.0, 8.0, 1.0));
        assert_eq!(bound(4.0, 8.0, false), interval(4.0, 8.0, CONFIDENCE));
        assert_eq!(bound(4.0, f64::INFINITY, false), interval(4.0, f64::INFINITY, CONFIDENCE));
        assert_eq!(bound(f64::NAN, f64::NAN, false), Bound::Unknown);
        assert_eq!(Bounds::ZERO.of(0).bound, interval(0.0, 0.0, 1.0));
    }
}
