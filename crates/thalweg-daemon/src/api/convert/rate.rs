//! Estimates with their bounds.

use thalweg_api::{BoundKind, Rate};
use thalweg_sketch::{Bound, Estimate};

/// An estimate and where the truth lies.
pub fn rate(estimate: Estimate) -> Rate {
    let (lower, upper) = (estimate.lower(), estimate.upper().filter(|upper| upper.is_finite()));
    let bound = match estimate.bound {
        Bound::Interval { .. } if upper.is_none() => BoundKind::LowerBound,
        Bound::Interval { .. } => BoundKind::Interval,
        Bound::NotConverged => BoundKind::NotConverged,
        _ => BoundKind::Unknown,
    };
    Rate { value: estimate.value, lower, upper, confidence: estimate.confidence(), bound }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_without_an_upper_bound_is_a_lower_bound_and_says_so() {
        let known = rate(Estimate::within(5.0, 4.0, f64::INFINITY, 1.0));
        assert_eq!((known.bound, known.lower, known.upper), (BoundKind::LowerBound, Some(4.0), None));
        let unknown = rate(Estimate { value: 5.0, bound: Bound::Unknown });
        assert_eq!((unknown.bound, unknown.lower, unknown.confidence), (BoundKind::Unknown, None, None));
    }
}
