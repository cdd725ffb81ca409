//! Estimates with their bounds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thalweg_sketch::{Bound, Estimate};

/// An estimate and where the truth lies.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "Estimate")]
pub struct Rate {
    /// The estimate.
    pub value: f64,
    /// The truth is at least this; null if there is no bound.
    pub lower: Option<f64>,
    /// The truth is at most this; null if there is no bound, or none on this side.
    pub upper: Option<f64>,
    /// The probability, at least, that both hold; null if there is no bound.
    pub confidence: Option<f64>,
    /// What kind of bound it is.
    pub bound: BoundKind,
}

/// What is known of the truth behind an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BoundKind {
    /// It lies between `lower` and `upper`.
    Interval,
    /// It is at least `lower`, and nobody knows how much more.
    LowerBound,
    /// Too little was sampled for a bound to hold yet.
    NotConverged,
    /// There is no bound for this kind of estimate.
    Unknown,
}

impl From<Estimate> for Rate {
    fn from(estimate: Estimate) -> Rate {
        let (lower, upper) = (estimate.lower(), estimate.upper().filter(|upper| upper.is_finite()));
        let bound = match estimate.bound {
            Bound::Interval { .. } if upper.is_none() => BoundKind::LowerBound,
            Bound::Interval { .. } => BoundKind::Interval,
            Bound::NotConverged => BoundKind::NotConverged,
            _ => BoundKind::Unknown,
        };
        Rate { value: estimate.value, lower, upper, confidence: estimate.confidence(), bound }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_without_an_upper_bound_is_a_lower_bound_and_says_so() {
        let rate = Rate::from(Estimate::within(5.0, 4.0, f64::INFINITY, 1.0));
        assert_eq!((rate.bound, rate.lower, rate.upper), (BoundKind::LowerBound, Some(4.0), None));
        let unknown = Rate::from(Estimate { value: 5.0, bound: Bound::Unknown });
        assert_eq!((unknown.bound, unknown.lower, unknown.confidence), (BoundKind::Unknown, None, None));
    }
}
