//! Instants and durations in whole nanoseconds.
//!
//! [`Timestamp`] is a point in time, [`Nanos`] a duration, as separate types. This module reads no clock: timestamps
//! come from capture files, from the kernel, or from a virtual clock.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;

use thiserror::Error;

/// A duration in nanoseconds, 0 to 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// A point in time: nanoseconds since 1970-01-01T00:00:00Z without leap seconds (as in pcap files).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Nanos {
    /// Zero.
    pub const ZERO: Nanos = Nanos(0);

    /// Converts microseconds, saturating.
    pub const fn from_micros(n: u64) -> Self {
        Nanos(n.saturating_mul(1_000))
    }

    /// Converts milliseconds, saturating.
    pub const fn from_millis(n: u64) -> Self {
        Nanos(n.saturating_mul(1_000_000))
    }

    /// Converts seconds, saturating.
    pub const fn from_secs(n: u64) -> Self {
        Nanos(n.saturating_mul(1_000_000_000))
    }

    /// The duration in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self + other`, saturating.
    pub const fn saturating_add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl From<Nanos> for std::time::Duration {
    fn from(span: Nanos) -> Self {
        Self::from_nanos(span.0)
    }
}

impl Timestamp {
    /// Creates a timestamp `seconds` and `nanos` after the epoch, saturating.
    pub const fn new(seconds: u64, nanos: u32) -> Self {
        Timestamp(seconds.saturating_mul(1_000_000_000).saturating_add(nanos as u64))
    }

    /// Returns the time since `earlier`; zero if `earlier` is later (times in capture files may run backwards).
    pub const fn since(self, earlier: Timestamp) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// `self - span`, saturating at the epoch.
    pub const fn saturating_sub(self, span: Nanos) -> Timestamp {
        Timestamp(self.0.saturating_sub(span.0))
    }

    /// Whole seconds since the epoch.
    pub const fn seconds(self) -> u64 {
        self.0 / 1_000_000_000
    }

    /// Nanoseconds within the second.
    pub const fn subsec_nanos(self) -> u32 {
        (self.0 % 1_000_000_000) as u32
    }
}

impl Add<Nanos> for Timestamp {
    type Output = Timestamp;

    /// Saturates in the year 2554.
    fn add(self, span: Nanos) -> Timestamp {
        Timestamp(self.0.saturating_add(span.0))
    }
}

impl Sub<Timestamp> for Timestamp {
    type Output = Nanos;

    fn sub(self, earlier: Timestamp) -> Nanos {
        self.since(earlier)
    }
}

/// Displays three significant digits with the largest unit for which the value is at least 1: `1.50 s`, `24.0 ms`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            n if n >= 1_000_000_000 => (n as f64 / 1e9, "s"),
            n if n >= 1_000_000 => (n as f64 / 1e6, "ms"),
            n if n >= 1_000 => (n as f64 / 1e3, "us"),
            n => return f.pad(&format!("{n} ns")),
        };
        f.pad(&format!("{} {unit}", crate::amount::three_digits(value)))
    }
}

/// Displays RFC 3339 in UTC with nanoseconds: `2026-11-21T10:00:00.000000001Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days((self.seconds() / 86_400) as i64);
        let second = self.seconds() % 86_400;
        let (hour, minute) = (second / 3600, second / 60 % 60);
        let (second, nanos) = (second % 60, self.subsec_nanos());
        f.pad(&format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z"))
    }
}

/// Returns the proleptic Gregorian date of a day number since 1970-01-01. The computation starts years on 1 March, so
/// the leap day is the last day of its year, and 400 years have 146,097 days.
fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let from_march_0000 = days + 719_468;
    let era = from_march_0000.div_euclid(146_097);
    let day_of_era = from_march_0000.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u32;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 } as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The error of parsing a duration.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("invalid duration `{text}`: expected a number and a unit, as in 100ms, 1.5s, 5m, 200us")]
pub struct ParseNanosError {
    /// The invalid text.
    pub text: String,
}

impl FromStr for Nanos {
    type Err = ParseNanosError;

    /// Parses `100ms`, `1.5s`, `5m`, `1h`, `200us`, `10ns`; a space before the unit is allowed.
    fn from_str(text: &str) -> Result<Self, ParseNanosError> {
        let wrong = || ParseNanosError { text: text.to_owned() };
        let (number, unit) = crate::amount::split_unit(text).ok_or_else(wrong)?;
        let scale = match unit.to_ascii_lowercase().as_str() {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" | "sec" => 1e9,
            "m" | "min" => 60e9,
            "h" => 3600e9,
            _ => return Err(wrong()),
        };
        let nanos = (number * scale).round();
        if nanos.is_finite() && nanos < u64::MAX as f64 { Ok(Nanos(nanos as u64)) } else { Err(wrong()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_parse_with_units() {
        for (text, nanos) in
            [("100ms", 100_000_000), ("1.5s", 1_500_000_000), ("5 m", 300_000_000_000), ("200us", 200_000)]
        {
            assert_eq!(text.parse(), Ok(Nanos(nanos)), "{text}");
        }
        for text in ["", "ms", "100", "-1s", "1 parsec", "1e400s"] {
            assert!(text.parse::<Nanos>().is_err(), "{text}");
        }
    }

    #[test]
    fn timestamps_print_as_rfc_3339() {
        assert_eq!(Timestamp::new(0, 1).to_string(), "1970-01-01T00:00:00.000000001Z");
        assert_eq!(Timestamp::new(951_782_400, 0).to_string(), "2000-02-29T00:00:00.000000000Z");
        assert_eq!(Timestamp::new(1_795_255_199, 5).to_string(), "2026-11-21T09:59:59.000000005Z");
    }

    #[test]
    fn a_negative_difference_is_zero() {
        assert_eq!(Timestamp(5) - Timestamp(9), Nanos::ZERO);
    }
}
