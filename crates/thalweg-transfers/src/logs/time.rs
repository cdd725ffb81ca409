//! Times as logs write them.
//!
//! All functions return microseconds since 1970-01-01 00:00 UTC. A log that writes no time zone writes local time; the caller passes the
//! zone. A local time that occurs twice, at the end of daylight saving time, is taken as the earlier one, so such a time may be an hour
//! early. A local time that does not exist, at its beginning, is taken as if the clock had not been set yet. A leap second counts as the
//! second before.
//!
//! Names of months and days are those of the C locale. Another locale is an error.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Deserialize;
use thiserror::Error;

use super::LineError;
use super::scanner::Scanner;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

const CTIME: &str = "a time such as `Thu Sep  4 22:10:30 2026`";
const SLASHES: &str = "a time such as `2026/11/28 20:00:00`";
const SYSLOG: &str = "a time such as `Nov 28 20:00:00`";
const ISO_8601: &str = "a time such as `2026-11-28T20:00:00.5+01:00`";
const COMMON_LOG: &str = "a time such as `28/Nov/2026:20:00:00 +0000`";
const COMPACT: &str = "a time such as `20261128201500.123456`";
const XROOTD: &str = "a time such as `261128 20:00:00`";
const EPOCH: &str = "a time since 1970 such as `1795896000.123`";

const SECOND_US: i64 = 1_000_000;

/// How far a time without a year may be after the present before it counts as one of the year before: a day, in microseconds.
pub const YEAR_TOLERANCE_US: i64 = 86_400 * SECOND_US;

/// A name that is not in the time zone database of the host.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TimeZoneError {
    /// There is no such zone.
    #[error(
        "unknown time zone {0:?}: expected a name of the host's time zone database, such as \"Europe/Berlin\""
    )]
    Unknown(String),
    /// The zone of the host is not known.
    #[error("cannot read the time zone of this host: {0}; set `time_zone`")]
    Host(String),
}

/// Returns a time zone by its name in the IANA database; the host's if the name is empty.
///
/// # Errors
/// If there is no such zone.
pub fn time_zone(name: &str) -> Result<TimeZone, TimeZoneError> {
    match name.is_empty() {
        true => TimeZone::try_system().map_err(|error| TimeZoneError::Host(error.to_string())),
        false => TimeZone::get(name).map_err(|_| TimeZoneError::Unknown(name.to_owned())),
    }
}

/// How a column has a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeFormat {
    /// `2026-11-28T20:00:00.5+01:00`, or with a space instead of `T`, or without a zone.
    #[default]
    Iso8601,
    /// Seconds since 1970, with decimals.
    EpochSeconds,
    /// Milliseconds since 1970.
    EpochMilliseconds,
    /// Microseconds since 1970.
    EpochMicroseconds,
    /// `Thu Sep  4 22:10:30 2026`.
    Ctime,
    /// `2026/11/28 20:00:00`.
    Slashes,
    /// `28/Nov/2026:20:00:00 +0000`.
    CommonLog,
    /// `20261128201500.123456`, UTC.
    Compact,
    /// `Nov 28 20:00:00`.
    Syslog,
}

impl TimeFormat {
    /// Parses a text that is a time and nothing else.
    ///
    /// # Errors
    /// If the text does not have this format.
    pub fn parse(self, text: &str, zone: &TimeZone, now_us: i64) -> Result<i64, LineError> {
        let mut rest = Scanner::new(text.trim());
        let (time_us, expected) = match self {
            TimeFormat::Iso8601 => (iso8601(&mut rest, zone)?, ISO_8601),
            TimeFormat::EpochSeconds => return epoch(text, 6),
            TimeFormat::EpochMilliseconds => return epoch(text, 3),
            TimeFormat::EpochMicroseconds => return epoch(text, 0),
            TimeFormat::Ctime => (ctime(&mut rest, zone)?, CTIME),
            TimeFormat::Slashes => (slashes(&mut rest, zone)?, SLASHES),
            TimeFormat::CommonLog => (common_log(&mut rest)?, COMMON_LOG),
            TimeFormat::Compact => (compact(&mut rest)?, COMPACT),
            TimeFormat::Syslog => (syslog(&mut rest, zone, now_us)?, SYSLOG),
        };
        match rest.rest().is_empty() {
            true => Ok(time_us),
            false => Err(LineError::new(expected, text)),
        }
    }
}

/// Reads a time of C's `ctime`: `Thu Sep  4 22:10:30 2026`.
pub(crate) fn ctime(text: &mut Scanner<'_>, zone: &TimeZone) -> Result<i64, LineError> {
    day_name(text)?;
    let month = month_name(text, " ")?;
    let day = padded_day(text, CTIME)?;
    text.literal(" ", CTIME)?;
    let clock = clock(text, CTIME)?;
    text.literal(" ", CTIME)?;
    let year = text.digits(4, 4, CTIME)?;
    Civil { year, month, day, clock }.in_zone(zone)
}

/// Reads `2026/11/28 20:00:00`, as rsync writes it.
pub(crate) fn slashes(text: &mut Scanner<'_>, zone: &TimeZone) -> Result<i64, LineError> {
    let year = text.digits(4, 4, SLASHES)?;
    text.literal("/", SLASHES)?;
    let month = text.digits(2, 2, SLASHES)?;
    text.literal("/", SLASHES)?;
    let day = text.digits(2, 2, SLASHES)?;
    text.literal(" ", SLASHES)?;
    let clock = clock(text, SLASHES)?;
    Civil { year, month, day, clock }.in_zone(zone)
}

/// Reads `Nov 28 20:00:00`, the traditional time of syslog. Takes the latest year in which the time is not more than a day after `now_us`.
/// A line that is more than a year old therefore gets the wrong year.
pub(crate) fn syslog(text: &mut Scanner<'_>, zone: &TimeZone, now_us: i64) -> Result<i64, LineError> {
    let shown = text.rest();
    let month = month_name(text, " ")?;
    let day = padded_day(text, SYSLOG)?;
    text.literal(" ", SYSLOG)?;
    let clock = clock(text, SYSLOG)?;
    let latest_us = now_us.saturating_add(YEAR_TOLERANCE_US);
    let latest = Timestamp::from_microsecond(latest_us).map_err(|_| LineError::new(SYSLOG, shown))?;
    let latest_year = u32::try_from(zone.to_datetime(latest).year()).unwrap_or(1970);
    // 29 February exists in one of any eight years before 2100.
    for year in (latest_year.saturating_sub(8)..=latest_year).rev() {
        match (Civil { year, month, day, clock }).in_zone(zone) {
            Ok(time_us) if time_us <= latest_us => return Ok(time_us),
            _ => {}
        }
    }
    Err(LineError::new(SYSLOG, shown))
}

/// Reads a time of ISO 8601: `2026-11-28T20:00:00`, with a decimal fraction and a zone if they are there.
pub(crate) fn iso8601(text: &mut Scanner<'_>, zone: &TimeZone) -> Result<i64, LineError> {
    let year = text.digits(4, 4, ISO_8601)?;
    text.literal("-", ISO_8601)?;
    let month = text.digits(2, 2, ISO_8601)?;
    text.literal("-", ISO_8601)?;
    let day = text.digits(2, 2, ISO_8601)?;
    if !text.skip("T") {
        text.literal(" ", ISO_8601)?;
    }
    let mut clock = clock(text, ISO_8601)?;
    if text.skip(".") || text.skip(",") {
        clock.micros = fraction(text.number(), ISO_8601)?;
    }
    let civil = Civil { year, month, day, clock };
    match offset_us(text)? {
        Some(offset_us) => Ok(civil.in_zone(&TimeZone::UTC)? - offset_us),
        None => civil.in_zone(zone),
    }
}

/// Reads a time of the Common Log Format: `28/Nov/2026:20:00:00 +0000`.
pub(crate) fn common_log(text: &mut Scanner<'_>) -> Result<i64, LineError> {
    let day = text.digits(2, 2, COMMON_LOG)?;
    text.literal("/", COMMON_LOG)?;
    let month = month_name(text, "/")?;
    let year = text.digits(4, 4, COMMON_LOG)?;
    text.literal(":", COMMON_LOG)?;
    let clock = clock(text, COMMON_LOG)?;
    text.literal(" ", COMMON_LOG)?;
    let shown = text.rest();
    let offset_us = offset_us(text)?.ok_or_else(|| LineError::new(COMMON_LOG, shown))?;
    Ok(Civil { year, month, day, clock }.in_zone(&TimeZone::UTC)? - offset_us)
}

/// Reads a time of GridFTP: `20261128201500.123456`, UTC. The digits after the point are a number of microseconds: old servers do not pad
/// them.
pub(crate) fn compact(text: &mut Scanner<'_>) -> Result<i64, LineError> {
    let shown = text.rest();
    let digits = text.number();
    let invalid = || LineError::new(COMPACT, shown);
    if digits.len() != 14 {
        return Err(invalid());
    }
    let part = |from: usize, to: usize| digits[from..to].parse::<u32>().map_err(|_| invalid());
    let mut clock = Clock { hour: part(8, 10)?, minute: part(10, 12)?, second: part(12, 14)?, micros: 0 };
    if text.skip(".") {
        clock.micros = text.digits(1, 6, COMPACT)?;
    }
    Civil { year: part(0, 4)?, month: part(4, 6)?, day: part(6, 8)?, clock }.in_zone(&TimeZone::UTC)
}

/// Reads a time of XRootD: `261128 20:00:00`, with a fraction if there is one.
pub(crate) fn xrootd(text: &mut Scanner<'_>, zone: &TimeZone) -> Result<i64, LineError> {
    let shown = text.rest();
    let digits = text.number();
    let invalid = || LineError::new(XROOTD, shown);
    if digits.len() != 6 {
        return Err(invalid());
    }
    let part = |from: usize, to: usize| digits[from..to].parse::<u32>().map_err(|_| invalid());
    text.literal(" ", XROOTD)?;
    let mut clock = clock(text, XROOTD)?;
    if text.skip(".") {
        clock.micros = fraction(text.number(), XROOTD)?;
    }
    Civil { year: 2000 + part(0, 2)?, month: part(2, 4)?, day: part(4, 6)?, clock }.in_zone(zone)
}

/// Parses a time since 1970 in units of `10^-digits` microseconds^-1: seconds have 6 digits, milliseconds 3, microseconds 0.
pub(crate) fn epoch(text: &str, digits: u32) -> Result<i64, LineError> {
    decimal(text.trim(), digits).ok_or_else(|| LineError::new(EPOCH, text))
}

/// Parses a number of seconds, such as `0.125`, and returns microseconds.
pub(crate) fn seconds_us(text: &str) -> Option<i64> {
    decimal(text, 6)
}

/// Parses a decimal number without sign and multiplies it by `10^digits`; further digits are cut off.
fn decimal(text: &str, digits: u32) -> Option<i64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(decimals) {
        return None;
    }
    let mut value = whole.parse::<i64>().ok()?;
    let mut decimals = decimals.bytes();
    for _ in 0..digits {
        let digit = decimals.next().map_or(0, |byte| i64::from(byte - b'0'));
        value = value.checked_mul(10)?.checked_add(digit)?;
    }
    Some(value)
}

#[derive(Clone, Copy, Debug)]
struct Clock {
    hour: u32,
    minute: u32,
    second: u32,
    micros: u32,
}

/// A date and a time of day, without a zone.
#[derive(Clone, Copy, Debug)]
struct Civil {
    year: u32,
    month: u32,
    day: u32,
    clock: Clock,
}

impl Civil {
    fn in_zone(self, zone: &TimeZone) -> Result<i64, LineError> {
        let time_us = self.date_time().and_then(|date_time| {
            let timestamp = zone.to_ambiguous_timestamp(date_time).compatible().ok()?;
            Some(timestamp.as_microsecond())
        });
        time_us.ok_or_else(|| {
            let Civil { year, month, day, clock } = self;
            let shown = format!(
                "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}",
                clock.hour, clock.minute, clock.second
            );
            LineError::new("a date and a time that exist", &shown)
        })
    }

    fn date_time(self) -> Option<DateTime> {
        let small = |value: u32| i8::try_from(value).ok();
        let second = if self.clock.second == 60 { 59 } else { self.clock.second };
        let nanoseconds = i32::try_from(self.clock.micros.checked_mul(1_000)?).ok()?;
        DateTime::new(
            i16::try_from(self.year).ok()?,
            small(self.month)?,
            small(self.day)?,
            small(self.clock.hour)?,
            small(self.clock.minute)?,
            small(second)?,
            nanoseconds,
        )
        .ok()
    }
}

/// Reads `20:00:00`.
fn clock(text: &mut Scanner<'_>, expected: &'static str) -> Result<Clock, LineError> {
    let hour = text.digits(2, 2, expected)?;
    text.literal(":", expected)?;
    let minute = text.digits(2, 2, expected)?;
    text.literal(":", expected)?;
    let second = text.digits(2, 2, expected)?;
    Ok(Clock { hour, minute, second, micros: 0 })
}

/// Returns the microseconds of the digits after a decimal point.
fn fraction(digits: &str, expected: &'static str) -> Result<u32, LineError> {
    let error = || LineError::new(expected, digits);
    if digits.is_empty() {
        return Err(error());
    }
    let cut = &digits[..digits.len().min(6)];
    let value: u32 = cut.parse().map_err(|_| error())?;
    Ok(value * 10_u32.pow(6 - cut.len() as u32))
}

/// Reads `Z`, `+01:00`, `+0100` or `+01`, and returns the offset from UTC.
fn offset_us(text: &mut Scanner<'_>) -> Result<Option<i64>, LineError> {
    const EXPECTED: &str = "an offset from UTC such as `Z` or `+01:00`";
    if text.skip("Z") {
        return Ok(Some(0));
    }
    let sign = match text.skip("+") {
        true => 1,
        false if text.skip("-") => -1,
        false => return Ok(None),
    };
    let shown = text.rest();
    let digits = text.number();
    let (hours, minutes) = match digits.len() {
        2 if text.skip(":") => (digits, text.number()),
        2 => (digits, "00"),
        4 => digits.split_at(2),
        _ => return Err(LineError::new(EXPECTED, shown)),
    };
    let minutes_are_two_digits = minutes.len() == 2;
    match (hours.parse::<i64>(), minutes.parse::<i64>()) {
        (Ok(hours @ 0..=23), Ok(minutes @ 0..=59)) if minutes_are_two_digits => {
            Ok(Some(sign * (hours * 60 + minutes) * 60 * SECOND_US))
        }
        _ => Err(LineError::new(EXPECTED, shown)),
    }
}

/// Reads the day of a month, which a space or a zero pads to two characters.
fn padded_day(text: &mut Scanner<'_>, expected: &'static str) -> Result<u32, LineError> {
    match text.skip(" ") {
        true => text.digits(1, 1, expected),
        false => text.digits(1, 2, expected),
    }
}

fn day_name(text: &mut Scanner<'_>) -> Result<(), LineError> {
    const EXPECTED: &str = "a day of the C locale (Mon to Sun)";
    let name = text.until(" ", EXPECTED)?;
    match DAYS.contains(&name) {
        true => Ok(()),
        false => Err(LineError::new(EXPECTED, name)),
    }
}

/// Reads the name of a month and what comes after it, and returns the number of the month.
fn month_name(text: &mut Scanner<'_>, end: &str) -> Result<u32, LineError> {
    const EXPECTED: &str = "a month of the C locale (Jan to Dec)";
    let name = text.until(end, EXPECTED)?;
    let index = MONTHS.iter().position(|month| *month == name);
    index.map(|index| index as u32 + 1).ok_or_else(|| LineError::new(EXPECTED, name))
}

#[cfg(test)]
mod tests;
