//! Loss rates of links.

use std::fmt;
use std::str::FromStr;

/// The probability that a link loses a packet, in units of 10^-12: a rate prints as it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LossRate(u64);

/// Units of 1.
const UNITS: u64 = 1_000_000_000_000;

/// Units of 1 %.
const PERCENT: u64 = UNITS / 100;

impl LossRate {
    /// A link that loses nothing.
    pub const ZERO: LossRate = LossRate(0);

    /// Returns the rate of this probability, to the nearest 10^-12; `None` unless it is from 0 to 1.
    pub fn new(probability: f64) -> Option<LossRate> {
        let is_valid = (0.0..=1.0).contains(&probability);
        is_valid.then(|| LossRate((probability * UNITS as f64).round() as u64))
    }

    /// Returns the probability, from 0 to 1.
    pub fn probability(self) -> f64 {
        self.0 as f64 / UNITS as f64
    }

    /// Returns how many of `count` equally likely events are losses, rounded down; all of them at a rate of 1.
    pub const fn share_of(self, count: u64) -> u64 {
        (count as u128 * self.0 as u128 / UNITS as u128) as u64
    }
}

/// Displays a percentage, without rounding: `0.01%`.
impl fmt::Display for LossRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / PERCENT, self.0 % PERCENT);
        let text = match rest {
            0 => format!("{whole}%"),
            _ => format!("{whole}.{}%", format!("{rest:010}").trim_end_matches('0')),
        };
        f.pad(&text)
    }
}

/// Parses a percentage, `0.01%`, or a fraction, `0.0001`.
impl FromStr for LossRate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let (number, unit) = match text.trim().strip_suffix('%') {
            Some(number) => (number.trim_end(), 0.01),
            None => (text.trim(), 1.0),
        };
        let number: Option<f64> = number.parse().ok();
        number.and_then(|number| LossRate::new(number * unit)).ok_or(EXPECTED)
    }
}

const EXPECTED: &str = "expected a probability from 0% to 100%, such as 0.01%";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn percentages_and_fractions_are_probabilities() {
        for (text, probability, printed) in [
            ("0.01%", 1e-4, "0.01%"),
            ("0.0001", 1e-4, "0.01%"),
            (" 1e-3 % ", 1e-5, "0.001%"),
            ("0", 0.0, "0%"),
            ("1", 1.0, "100%"),
            ("100%", 1.0, "100%"),
            ("33.3%", 0.333, "33.3%"),
        ] {
            let rate: LossRate = text.parse().unwrap();
            assert!((rate.probability() - probability).abs() < 1e-12, "{text}");
            assert_eq!(rate.to_string(), printed);
        }
        for text in ["", "%", "1.1", "101%", "-1%", "-0.1", "nan", "inf", "0.01 percent", "1%%"] {
            assert_eq!(text.parse::<LossRate>(), Err(EXPECTED), "{text}");
        }
    }

    #[test]
    fn a_share_is_proportional_and_complete() {
        let rate = |text: &str| text.parse::<LossRate>().unwrap();
        assert_eq!(rate("0%").share_of(1 << 32), 0);
        assert_eq!(rate("25%").share_of(1 << 32), 1 << 30);
        assert_eq!(rate("100%").share_of(u64::MAX), u64::MAX);
    }

    proptest! {
        #[test]
        fn a_printed_rate_is_parsed_to_the_same(units in 0..=UNITS) {
            let rate = LossRate(units);
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }
    }
}
