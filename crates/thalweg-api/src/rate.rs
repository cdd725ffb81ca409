//! Rates with error bounds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rate estimate in bits per second and its bounds. It is flattened into the object that has the rate.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Rate {
    /// Rate on the wire in bits per second, framing included; null before the first estimate, and if only the
    /// bounds are known. 0 while there are no samples. A flow without samples may still send: see the upper bound.
    pub rate_bps: Option<f64>,
    /// Lower bound of the rate; null if there is none.
    pub rate_lower_bps: Option<f64>,
    /// Upper bound of the rate; null if there is none.
    pub rate_upper_bps: Option<f64>,
    /// Probability with which the bounds hold, at least; null if there are none.
    pub confidence: Option<f64>,
    /// Which bounds the estimate has.
    pub bounds: BoundKind,
}

impl Rate {
    /// The rate before the first estimate.
    pub const UNKNOWN: Rate = Rate {
        rate_bps: None,
        rate_lower_bps: None,
        rate_upper_bps: None,
        confidence: None,
        bounds: BoundKind::NotConverged,
    };
}

/// Which bounds an estimate has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BoundKind {
    /// A lower and an upper bound.
    Interval,
    /// A lower bound only.
    LowerBound,
    /// No bounds yet: too few samples.
    NotConverged,
    /// No bounds: none are known for this estimator.
    Unknown,
}
