//! Instants in JSON.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use thalweg_wire::Timestamp;
use thiserror::Error;

/// An instant as RFC 3339 text in UTC with nanoseconds: `2026-11-21T22:16:16.495499720Z`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UtcTime(pub Timestamp);

/// Text that is not an instant in UTC.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("invalid time: expected RFC 3339 in UTC from 1970 to 2554, such as 2026-11-21T22:16:16.495499720Z")]
pub struct ParseUtcTimeError;

impl From<Timestamp> for UtcTime {
    fn from(time: Timestamp) -> UtcTime {
        UtcTime(time)
    }
}

impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Reads `YYYY-MM-DDTHH:MM:SS[.FRACTION]Z` with at most nine digits of the second's fraction.
impl FromStr for UtcTime {
    type Err = ParseUtcTimeError;

    fn from_str(text: &str) -> Result<UtcTime, ParseUtcTimeError> {
        parse(text).ok_or(ParseUtcTimeError)
    }
}

fn parse(text: &str) -> Option<UtcTime> {
    let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let is_valid = (1970..=2554).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60
        && (1..=9).contains(&fraction.len())
        && is_digits(fraction);
    if !is_valid {
        return None;
    }
    let nanos = fraction.parse::<u64>().ok()? * 10_u64.pow(9 - fraction.len() as u32);
    let seconds = ((days_from_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    let nanos = seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?;
    Some(UtcTime(Timestamp(nanos)))
}

/// Three numbers with exactly so many digits each.
fn numbers(text: &str, separator: char, digits: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(separator);
    let mut next = |length| {
        let part = parts.next().filter(|part| part.len() == length && is_digits(part))?;
        part.parse().ok()
    };
    let found = [next(digits[0])?, next(digits[1])?, next(digits[2])?];
    parts.next().is_none().then_some(found)
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn days_in_month(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_from_1970(year: u64, month: u64, day: u64) -> u64 {
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    let years = (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969);
    years + (1..month).map(|month| days_in_month(year, month)).sum::<u64>() + day - 1
}

impl Serialize for UtcTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UtcTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<UtcTime, D::Error> {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for UtcTime {
    fn schema_name() -> Cow<'static, str> {
        "UtcTime".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An instant as RFC 3339 text in UTC with nanoseconds: `2026-11-21T22:16:16.495499720Z`.",
            "type": "string",
            "format": "date-time",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_instant_round_trips_through_json(nanos: u64) {
            let time = UtcTime(Timestamp(nanos));
            let json = serde_json::to_string(&time).unwrap();
            prop_assert_eq!(serde_json::from_str::<UtcTime>(&json).unwrap(), time);
        }
    }

    #[test]
    fn the_fraction_may_be_short_or_absent() {
        let nanos = |text: &str| text.parse::<UtcTime>().unwrap().0.0;
        assert_eq!(nanos("1970-01-01T00:00:00Z"), 0);
        assert_eq!(nanos("1970-01-02T00:00:01.5Z"), 86_401_500_000_000);
        assert_eq!(nanos("2026-11-21T22:16:16.495499720Z"), 1_795_299_376_495_499_720);
    }

    #[test]
    fn invalid_times_are_rejected() {
        for text in [
            "",
            "2026-11-21",
            "2026-11-21T22:16:16",
            "2026-11-21T22:16:16+01:00",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-21T24:00:00Z",
            "2026-11-21T22:16:16.Z",
            "2026-11-21T22:16:16.0123456789Z",
            "1969-12-31T23:59:59Z",
            "2554-12-31T23:59:59Z",
            "+026-11-21T22:16:16Z",
        ] {
            assert_eq!(text.parse::<UtcTime>(), Err(ParseUtcTimeError), "{text}");
        }
    }
}
