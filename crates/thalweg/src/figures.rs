//! Number formatting.

use thalweg_sketch::{Bound, Estimate};
use thalweg_wire::Timestamp;
pub(crate) use thalweg_wire::units::grouped;

/// Formats a number with thousands separators.
pub(crate) fn number(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    // Values beyond the integer range are formatted with an exponent.
    let whole = whole.parse().map_or_else(|_| format!("{:.3e}", value.abs()), grouped);
    let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    format!("{}{whole}{fraction}", if value < 0.0 && !is_zero { "-" } else { "" })
}

/// Formats a probability, rounded down: `98.3 %`.
pub(crate) fn percent(probability: f64) -> String {
    match probability {
        1.0 => "100 %".to_owned(),
        _ => format!("{:.1} %", (probability * 1000.0).floor() / 10.0),
    }
}

/// Formats the bounds of an estimate: `11,900 to 12,700`, `no bound`, or `no bound yet`.
pub(crate) fn interval(estimate: &Estimate, decimals: usize) -> String {
    match estimate.bound {
        Bound::Interval { lower, upper, .. } => {
            format!("{} to {}", number(lower, decimals), number(upper, decimals))
        }
        Bound::NotConverged => "no bound yet".to_owned(),
        _ => "no bound".to_owned(),
    }
}

/// Formats the bounds of an estimate for two columns.
pub(crate) fn bounds(estimate: &Estimate, decimals: usize) -> [String; 2] {
    match estimate.bound {
        Bound::Interval { lower, upper, .. } => [lower, upper].map(|bound| number(bound, decimals)),
        Bound::NotConverged => ["no bound".to_owned(), "yet".to_owned()],
        _ => ["no bound".to_owned(), String::new()],
    }
}

/// Formats the bounds of an estimate with their probability: `, within 11,900 to 12,700 with probability 98.3 %`.
pub(crate) fn bound_in_words(estimate: &Estimate, decimals: usize) -> String {
    match estimate.bound {
        Bound::Interval { lower, upper, .. } if lower == upper => String::new(),
        Bound::Interval { lower, upper, confidence } => format!(
            ", within {} to {} with probability {}",
            number(lower, decimals),
            number(upper, decimals),
            percent(confidence)
        ),
        Bound::NotConverged => ", no bound yet: too few samples".to_owned(),
        _ => ", no known bound".to_owned(),
    }
}

/// Formats date and time in UTC with milliseconds.
pub(crate) fn date_time(time: Timestamp) -> String {
    let text = time.to_string();
    format!("{} {}", &text[..10], &text[11..23])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_signs_and_thousands_separators() {
        assert_eq!([0, 999, 1000, 38_000_000].map(grouped), ["0", "999", "1,000", "38,000,000"]);
        let texts = [0.4, -0.4, 1_234.5, -9_999_999.0, 1e30].map(|value| number(value, 0));
        assert_eq!(texts, ["0", "0", "1,234", "-9,999,999", "1.000e30"]);
        assert_eq!([12.3456, -0.0001].map(|value| number(value, 3)), ["12.346", "0.000"]);
    }

    #[test]
    fn bounds_show_their_probability_or_are_missing() {
        let within = Estimate::within(1_000.0, 900.0, 1_100.0, 0.98437);
        assert_eq!(bound_in_words(&within, 0), ", within 900 to 1,100 with probability 98.4 %");
        assert_eq!(interval(&within, 0), "900 to 1,100");
        assert_eq!(bounds(&within, 0), ["900", "1,100"]);
        assert_eq!(bound_in_words(&Estimate::exact(5.0), 0), "");
        let unsure = Estimate { bound: Bound::NotConverged, ..within };
        assert_eq!(bound_in_words(&unsure, 0), ", no bound yet: too few samples");
        let unknown = Estimate { bound: Bound::Unknown, ..within };
        assert_eq!(interval(&unknown, 0), "no bound");
        assert_eq!([unsure, unknown].map(|it| bounds(&it, 0).join("|")), ["no bound|yet", "no bound|"]);
        assert_eq!([1.0, 0.9999].map(percent), ["100 %", "99.9 %"]);
    }
}
