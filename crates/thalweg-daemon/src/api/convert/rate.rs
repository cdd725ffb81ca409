//! Rates with error bounds.

use thalweg_api::Rate;
use thalweg_sketch::Estimate;
use thalweg_watch::json::EstimateBounds;

/// Converts a rate estimate.
pub fn rate(estimate: Estimate) -> Rate {
    let EstimateBounds { lower, upper, confidence, kind } = EstimateBounds::from(&estimate);
    Rate {
        rate_bps: Some(estimate.value),
        rate_lower_bps: lower,
        rate_upper_bps: upper,
        confidence,
        bounds: kind,
    }
}
