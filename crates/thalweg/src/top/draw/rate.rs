//! Rates with their bounds.

use thalweg_api::{Basis, BoundKind, Link, Rate};
use thalweg_wire::BitRate;

use super::super::model::is_lower_bound;
use crate::terminal::quantity::short;

/// Columns of `≥9.99M`.
pub(super) const SHORT_RATE: u16 = 6;
/// Columns of `≥ 9.99 Mbit/s`.
pub(super) const FULL_RATE: u16 = 13;
/// Columns of `9.99M..9.99M`.
pub(super) const BOUND: u16 = 12;

/// Whether the rate is known to be zero, so that bounds are omitted.
pub(super) fn is_idle(rate: &Rate) -> bool {
    rate.rate_bps == Some(0.0) && rate.rate_upper_bps == Some(0.0)
}

/// Formats a rate in [`SHORT_RATE`] or [`FULL_RATE`] columns: `9.31G`, `9.31 Gbit/s`; with `≥` if it is a lower bound.
pub(super) fn rate_text(rate: &Rate, width: u16) -> String {
    value_text(rate.rate_bps.unwrap_or(0.0), is_lower_bound(rate), width)
}

/// Formats a rate, or a bound if that is all that is known: `9.31 Gbit/s`, `≥ 9.31 Gbit/s`, `≤ 9.31 Gbit/s`.
pub(super) fn rate_or_bound(rate: &Rate) -> String {
    match (rate.rate_bps, rate.rate_lower_bps, rate.rate_upper_bps) {
        (Some(_), ..) => rate_text(rate, FULL_RATE),
        (None, Some(lower), _) if lower > 0.0 => format!("≥ {}", BitRate(bits(lower))),
        (None, _, Some(upper)) => format!("≤ {}", BitRate(bits(upper))),
        _ => "unknown rate".to_owned(),
    }
}

/// Formats the smoothed rate of a link, which its utilisation is a share of, in the same way.
pub(super) fn link_rate_text(link: &Link, width: u16) -> String {
    value_text(link.smoothed_bps, is_lower_bound(&link.rate), width)
}

fn value_text(value: f64, is_lower_bound: bool, width: u16) -> String {
    let is_full = width >= FULL_RATE;
    let value = bits(value);
    let text = if is_full { BitRate(value).to_string() } else { short(value) };
    match (is_lower_bound, is_full) {
        (true, true) => format!("≥ {text}"),
        (true, false) => format!("≥{text}"),
        (false, _) => text,
    }
}

/// Formats the bounds in [`BOUND`] columns.
pub(super) fn bound_text(rate: &Rate) -> String {
    match (rate.bounds, rate.rate_lower_bps, rate.rate_upper_bps) {
        _ if is_idle(rate) => "idle".to_owned(),
        (BoundKind::Interval, Some(0.0), Some(upper)) => format!("below {}", short(bits(upper).max(1))),
        (BoundKind::Interval, Some(lower), Some(upper)) => {
            format!("{}..{}", short(bits(lower)), short(bits(upper)))
        }
        (BoundKind::LowerBound, ..) if is_lower_bound(rate) => "at least".to_owned(),
        (BoundKind::LowerBound, Some(lower), _) => format!("above {}", short(bits(lower))),
        (BoundKind::NotConverged, ..) => "no bound yet".to_owned(),
        _ => "no bound".to_owned(),
    }
}

/// Formats the bounds in words, with their probability.
pub(super) fn bound_in_words(rate: &Rate) -> String {
    let sure = rate.confidence.map_or_else(String::new, |confidence| {
        format!(" with probability {}", crate::figures::percent(confidence))
    });
    match (rate.bounds, rate.rate_lower_bps, rate.rate_upper_bps) {
        _ if is_idle(rate) => "idle".to_owned(),
        (BoundKind::Interval, Some(0.0), Some(upper)) => {
            format!("at most {}{sure}", BitRate(bits(upper).max(1)))
        }
        (BoundKind::Interval, Some(lower), Some(upper)) => {
            format!("{} to {}{sure}", BitRate(bits(lower)), BitRate(bits(upper)))
        }
        (BoundKind::LowerBound, Some(lower), _) => {
            format!("at least {}, upper bound unknown", BitRate(bits(lower)))
        }
        (BoundKind::NotConverged, ..) => "no bound yet: too few samples".to_owned(),
        _ => "no known bound".to_owned(),
    }
}

/// Returns the basis of a rate in 8 columns.
pub(super) fn basis_text(basis: Basis) -> &'static str {
    match basis {
        Basis::Nothing => "-",
        Basis::SequenceNumbers => "sequence",
        Basis::Identification => "ip id",
        Basis::SamplingRatio => "ratio",
        Basis::SamplesAlone => "samples",
    }
}

/// Rounds bits per second to an integer.
pub(super) fn bits(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_shows_its_interval_or_lower_bound() {
        let rate = |bounds, lower, upper| Rate {
            rate_bps: Some(1.204e9),
            rate_lower_bps: lower,
            rate_upper_bps: upper,
            confidence: Some(0.95),
            bounds,
        };
        let within = rate(BoundKind::Interval, Some(1.19e9), Some(1.22e9));
        assert_eq!(
            (rate_text(&within, SHORT_RATE).as_str(), bound_text(&within).as_str()),
            ("1.20G", "1.19G..1.22G")
        );
        assert_eq!(bound_in_words(&within), "1.19 Gbit/s to 1.22 Gbit/s with probability 95.0 %");
        let above = rate(BoundKind::LowerBound, Some(9.9e8), None);
        assert_eq!(
            [rate_text(&above, SHORT_RATE), bound_text(&above)],
            ["1.20G", "above 990M"],
            "an estimate is not a bound"
        );
        let least = rate(BoundKind::LowerBound, Some(1.204e9), None);
        assert_eq!(
            [rate_text(&least, SHORT_RATE), rate_text(&least, FULL_RATE), bound_text(&least)],
            ["≥1.20G", "≥ 1.20 Gbit/s", "at least"]
        );
        let idle = Rate { rate_bps: Some(0.0), ..rate(BoundKind::Interval, Some(0.0), Some(0.0)) };
        assert_eq!([bound_text(&idle), bound_in_words(&idle)], ["idle", "idle"]);
        let only = |lower, upper| Rate { rate_bps: None, ..rate(BoundKind::Interval, lower, upper) };
        assert_eq!(
            [only(Some(9.9e8), None), only(Some(0.0), Some(2e9)), only(None, None)]
                .map(|rate| rate_or_bound(&rate)),
            ["≥ 990 Mbit/s", "≤ 2.00 Gbit/s", "unknown rate"]
        );
        let unknown = rate(BoundKind::NotConverged, None, None);
        assert_eq!(bound_text(&unknown), "no bound yet");
    }
}
