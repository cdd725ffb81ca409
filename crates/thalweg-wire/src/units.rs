//! Amounts and rates of data.

use std::fmt;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

use thiserror::Error;

use crate::amount::{split_unit, three_digits};
use crate::time::Nanos;

/// Formats a number with thousands separators: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(pub u64);

impl Add for Bytes {
    type Output = Bytes;

    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}

impl BitRate {
    /// Returns the rate of `amount` in `span`: `8 * amount / span`, rounded down; the maximum rate if `span` is zero.
    pub fn of(amount: Bytes, span: Nanos) -> BitRate {
        let bits_times_second = u128::from(amount.0) * 8 * 1_000_000_000;
        let rate = bits_times_second.checked_div(u128::from(span.0)).unwrap_or(u128::from(u64::MAX));
        BitRate(rate.min(u128::from(u64::MAX)) as u64)
    }

    /// Returns the amount of data at this rate in `span`, rounded down to whole bytes.
    pub fn amount_in(self, span: Nanos) -> Bytes {
        let bytes = u128::from(self.0) * u128::from(span.0) / 8_000_000_000;
        Bytes(bytes.min(u128::from(u64::MAX)) as u64)
    }
}

/// Displays decimal multiples with three significant digits: `1.50 MB`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&scaled(self.0, ["B", "kB", "MB", "GB", "TB", "PB", "EB"]))
    }
}

/// Displays decimal multiples with three significant digits: `200 Mbit/s`.
impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&scaled(self.0, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "Pbit/s", "Ebit/s"]))
    }
}

fn scaled(value: u64, units: [&str; 7]) -> String {
    if value < 1000 {
        return format!("{value} {}", units[0]);
    }
    let mut scaled = value as f64;
    let mut power = 0;
    while scaled >= 999.5 && power < 6 {
        scaled /= 1000.0;
        power += 1;
    }
    format!("{} {}", three_digits(scaled), units[power])
}

/// The error of parsing an amount or a rate.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ParseUnitError {
    /// An invalid rate.
    #[error("invalid bit rate `{0}`: expected a number and a unit, as in 50mbps, 1.5gbit/s, 800kbps")]
    BitRate(String),
    /// A rate in bytes.
    #[error("`{0}` is a rate in bytes: expected bits, as in 50mbps, 1.5gbit/s, 800kbps")]
    BytesPerSecond(String),
    /// An invalid amount of data.
    #[error("invalid amount of data `{0}`: expected a number and a unit, as in 64MiB, 1.5GB, 600B")]
    Bytes(String),
}

impl FromStr for BitRate {
    type Err = ParseUnitError;

    /// Parses `50mbps`, `50Mbit/s`, `1.5gbit`, `800k`. Multiples are decimal, case does not matter, and a plain number
    /// is in bits per second. `MBps` and `MB/s` are refused, as they mean bytes elsewhere.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let wrong = || ParseUnitError::BitRate(text.to_owned());
        let (number, unit) = split_unit(text).ok_or_else(wrong)?;
        if unit.ends_with("Bps") || unit.ends_with("B/s") {
            return Err(ParseUnitError::BytesPerSecond(text.to_owned()));
        }
        let unit = unit.to_ascii_lowercase();
        let prefix = ["bit/s", "bits/s", "bps", "bit", "b/s"]
            .iter()
            .find_map(|suffix| unit.strip_suffix(suffix))
            .unwrap_or(&unit);
        let scale = match prefix {
            "" => 1.0,
            "k" => 1e3,
            "m" => 1e6,
            "g" => 1e9,
            "t" => 1e12,
            _ => return Err(wrong()),
        };
        whole(number * scale).map(BitRate).ok_or_else(wrong)
    }
}

impl FromStr for Bytes {
    type Err = ParseUnitError;

    /// Parses `600`, `600B`, `64MiB`, `1.5GB`. `K`, `M`, `G` alone and with `iB` are binary, with `B` decimal.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let wrong = || ParseUnitError::Bytes(text.to_owned());
        let (number, unit) = split_unit(text).ok_or_else(wrong)?;
        let scale = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1.0,
            "kb" => 1e3,
            "mb" => 1e6,
            "gb" => 1e9,
            "tb" => 1e12,
            "k" | "kib" => 1024.0,
            "m" | "mib" => 1024.0 * 1024.0,
            "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
            "t" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
            _ => return Err(wrong()),
        };
        whole(number * scale).map(Bytes).ok_or_else(wrong)
    }
}

fn whole(value: f64) -> Option<u64> {
    let value = value.round();
    (value.is_finite() && value < u64::MAX as f64).then_some(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_parse_with_units() {
        for (text, rate) in [
            ("50mbps", 50_000_000),
            ("50 Mbit/s", 50_000_000),
            ("1.5gbit", 1_500_000_000),
            ("800k", 800_000),
            ("9600", 9600),
        ] {
            assert_eq!(text.parse(), Ok(BitRate(rate)), "{text}");
        }
        for text in ["", "fast", "-5mbps", "5 MB", "5xbps"] {
            assert!(text.parse::<BitRate>().is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_parse_with_units() {
        assert_eq!("64MiB".parse(), Ok(Bytes(64 << 20)));
        assert_eq!("1.5GB".parse(), Ok(Bytes(1_500_000_000)));
        assert_eq!("600".parse(), Ok(Bytes(600)));
        assert!("600 apples".parse::<Bytes>().is_err());
    }

    #[test]
    fn values_display_three_significant_digits() {
        assert_eq!(BitRate(200_000_000).to_string(), "200 Mbit/s");
        assert_eq!(BitRate(999_999).to_string(), "1.00 Mbit/s");
        assert_eq!(Bytes(1_234).to_string(), "1.23 kB");
        assert_eq!(Bytes(999).to_string(), "999 B");
        assert_eq!(Bytes(u64::MAX).to_string(), "18.4 EB");
    }

    #[test]
    fn rate_and_amount_are_inverse() {
        let flight = BitRate(50_000_000).amount_in(Nanos::from_millis(100));
        assert_eq!(flight, Bytes(625_000));
        assert_eq!(BitRate::of(flight, Nanos::from_millis(100)), BitRate(50_000_000));
    }
}
