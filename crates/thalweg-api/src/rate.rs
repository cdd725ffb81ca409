//! Estimates with their bounds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
