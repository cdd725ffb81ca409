use proptest::prelude::*;

use super::*;

const NOON: i64 = 1_795_867_200_000_000; // 2026-11-28 12:00 UTC

fn berlin() -> TimeZone {
    TimeZone::get("Europe/Berlin").unwrap()
}

fn utc(format: TimeFormat, text: &str) -> Result<i64, LineError> {
    format.parse(text, &TimeZone::UTC, NOON)
}

#[test]
fn every_format_reads_the_same_time() {
    for (format, text) in [
        (TimeFormat::Iso8601, "2026-11-28T12:00:00"),
        (TimeFormat::Iso8601, "2026-11-28 12:00:00Z"),
        (TimeFormat::Iso8601, "2026-11-28T13:00:00.000+01:00"),
        (TimeFormat::Iso8601, "2026-11-28T06:30:00,0-0530"),
        (TimeFormat::Iso8601, "2026-11-28T13:00:00+01"),
        (TimeFormat::EpochSeconds, "1795867200"),
        (TimeFormat::EpochSeconds, "1795867200.0"),
        (TimeFormat::EpochMilliseconds, "1795867200000"),
        (TimeFormat::EpochMicroseconds, "1795867200000000"),
        (TimeFormat::Ctime, "Sat Nov 28 12:00:00 2026"),
        (TimeFormat::Slashes, "2026/11/28 12:00:00"),
        (TimeFormat::CommonLog, "28/Nov/2026:13:00:00 +0100"),
        (TimeFormat::Compact, "20261128120000.000000"),
        (TimeFormat::Syslog, "Nov 28 12:00:00"),
    ] {
        assert_eq!(utc(format, text), Ok(NOON), "{format:?} {text}");
    }
    assert_eq!(xrootd(&mut Scanner::new("261128 12:00:00 17"), &TimeZone::UTC), Ok(NOON));
}

#[test]
fn a_day_of_one_digit_is_padded_with_a_space_or_not() {
    let expected = Ok(NOON - 24 * 86_400 * SECOND_US);
    assert_eq!(utc(TimeFormat::Ctime, "Wed Nov  4 12:00:00 2026"), expected);
    assert_eq!(utc(TimeFormat::Ctime, "Wed Nov 04 12:00:00 2026"), expected);
    assert_eq!(utc(TimeFormat::Syslog, "Nov  4 12:00:00"), expected);
}

#[test]
fn fractions_are_read_to_the_microsecond() {
    assert_eq!(utc(TimeFormat::Iso8601, "2026-11-28T12:00:00.1234567891Z"), Ok(NOON + 123_456));
    assert_eq!(utc(TimeFormat::EpochSeconds, "1795867200.25"), Ok(NOON + 250_000));
    assert_eq!(utc(TimeFormat::EpochMilliseconds, "1795867200000.25"), Ok(NOON + 250));
    assert_eq!(utc(TimeFormat::Compact, "20261128120000.123456"), Ok(NOON + 123_456));
}

#[test]
fn unpadded_microseconds_of_old_gridftp_servers_are_microseconds() {
    assert_eq!(utc(TimeFormat::Compact, "20261128120000.2102"), Ok(NOON + 2_102));
}

#[test]
fn a_log_without_a_zone_is_local_time() {
    let text = "2026-11-28T13:00:00";
    assert_eq!(TimeFormat::Iso8601.parse(text, &berlin(), NOON), Ok(NOON));
    let summer = TimeFormat::Slashes.parse("2026/07/01 14:00:00", &berlin(), NOON);
    assert_eq!(summer, utc(TimeFormat::Slashes, "2026/07/01 12:00:00"));
}

#[test]
fn a_time_that_occurs_twice_is_the_earlier_one() {
    let twice = TimeFormat::Slashes.parse("2026/10/25 02:30:00", &berlin(), NOON);
    assert_eq!(twice, utc(TimeFormat::Slashes, "2026/10/25 00:30:00"));
}

#[test]
fn a_time_that_does_not_exist_is_taken_with_the_clock_of_before() {
    let skipped = TimeFormat::Slashes.parse("2026/03/29 02:30:00", &berlin(), NOON);
    assert_eq!(skipped, utc(TimeFormat::Slashes, "2026/03/29 01:30:00"));
}

#[test]
fn a_time_without_a_year_is_the_latest_that_is_not_in_the_future() {
    let parse = |text: &str| utc(TimeFormat::Syslog, text);
    assert_eq!(parse("Jan  1 00:00:00"), utc(TimeFormat::Slashes, "2026/01/01 00:00:00"));
    assert_eq!(parse("Dec 31 23:59:59"), utc(TimeFormat::Slashes, "2025/12/31 23:59:59"));
    assert_eq!(parse("Feb 29 01:02:03"), utc(TimeFormat::Slashes, "2024/02/29 01:02:03"));
    // The clock that wrote the line may be ahead.
    assert_eq!(parse("Nov 29 12:00:00"), utc(TimeFormat::Slashes, "2026/11/29 12:00:00"));
    assert_eq!(parse("Nov 29 12:00:01"), utc(TimeFormat::Slashes, "2025/11/29 12:00:01"));
}

#[test]
fn the_year_changes_with_the_local_date() {
    // 2026-12-31 23:30 UTC is 2027-01-01 00:30 in Berlin.
    let now_us = utc(TimeFormat::Slashes, "2026/12/31 23:30:00").unwrap();
    let parsed = TimeFormat::Syslog.parse("Jan  1 00:29:59", &berlin(), now_us);
    assert_eq!(parsed, Ok(now_us - SECOND_US));
    let parsed = TimeFormat::Syslog.parse("Dec 31 23:59:59", &berlin(), now_us);
    assert_eq!(parsed, utc(TimeFormat::Slashes, "2026/12/31 22:59:59"));
}

#[test]
fn names_of_another_locale_are_refused() {
    let error = utc(TimeFormat::Ctime, "Do Dez 31 22:10:30 2026").unwrap_err();
    assert_eq!(error.to_string(), "expected a day of the C locale (Mon to Sun), found \"Do\"");
    let error = utc(TimeFormat::Syslog, "Dez 31 22:10:30").unwrap_err();
    assert_eq!(error.to_string(), "expected a month of the C locale (Jan to Dec), found \"Dez\"");
    let error = utc(TimeFormat::CommonLog, "28/nov./2026:12:00:00 +0000").unwrap_err();
    assert_eq!(error.to_string(), "expected a month of the C locale (Jan to Dec), found \"nov.\"");
}

#[test]
fn dates_that_do_not_exist_are_refused() {
    for text in ["2026/02/29 00:00:00", "2026/13/01 00:00:00", "2026/00/10 00:00:00", "2026/01/01 24:00:00"] {
        let error = utc(TimeFormat::Slashes, text).unwrap_err();
        assert_eq!(error.expected, "a date and a time that exist", "{text}");
    }
}

#[test]
fn a_leap_second_is_the_second_before() {
    let leap = utc(TimeFormat::Slashes, "2016/12/31 23:59:60");
    assert_eq!(leap, utc(TimeFormat::Slashes, "2016/12/31 23:59:59"));
}

#[test]
fn text_after_a_time_is_refused() {
    for (format, text) in [
        (TimeFormat::Iso8601, "2026-11-28T12:00:00 CET"),
        (TimeFormat::Iso8601, "2026-11-28T12:00:00+1"),
        (TimeFormat::Iso8601, "2026-11-28T12:00:00+01:0"),
        (TimeFormat::EpochSeconds, "1795867200 s"),
        (TimeFormat::EpochSeconds, "-1"),
        (TimeFormat::EpochSeconds, "99999999999999999999"),
        (TimeFormat::EpochSeconds, ""),
        (TimeFormat::Slashes, "2026/11/28 12:00:00.5"),
        (TimeFormat::CommonLog, "28/Nov/2026:12:00:00 "),
    ] {
        assert!(utc(format, text).is_err(), "{format:?} {text}");
    }
}

#[test]
fn an_unknown_time_zone_is_named() {
    let error = time_zone("Europe/Atlantis").unwrap_err();
    assert_eq!(error, TimeZoneError::Unknown("Europe/Atlantis".to_owned()));
    assert!(time_zone("Asia/Tokyo").is_ok());
}

proptest! {
    #[test]
    fn a_written_time_is_read_again(seconds in 0_i64..4_000_000_000) {
        let time_us = seconds * SECOND_US;
        let zoned = Timestamp::from_microsecond(time_us).unwrap().to_zoned(TimeZone::UTC);
        for (format, pattern) in [
            (TimeFormat::Iso8601, "%Y-%m-%dT%H:%M:%S%:z"),
            (TimeFormat::Ctime, "%a %b %e %H:%M:%S %Y"),
            (TimeFormat::Slashes, "%Y/%m/%d %H:%M:%S"),
            (TimeFormat::CommonLog, "%d/%b/%Y:%H:%M:%S %z"),
            (TimeFormat::Compact, "%Y%m%d%H%M%S"),
        ] {
            let text = zoned.strftime(pattern).to_string();
            prop_assert_eq!(format.parse(&text, &berlin_or_utc(format), NOON), Ok(time_us), "{}", text);
        }
    }

    #[test]
    fn any_text_is_a_time_or_an_error(text in "[-+:./, 0-9TZa-zA-Z]{0,40}") {
        for format in [
            TimeFormat::Iso8601,
            TimeFormat::EpochSeconds,
            TimeFormat::EpochMilliseconds,
            TimeFormat::EpochMicroseconds,
            TimeFormat::Ctime,
            TimeFormat::Slashes,
            TimeFormat::CommonLog,
            TimeFormat::Compact,
            TimeFormat::Syslog,
        ] {
            let _ = format.parse(&text, &berlin(), NOON);
        }
        let _ = xrootd(&mut Scanner::new(&text), &berlin());
    }
}

/// The zone of a format that writes none; another one for those that do.
fn berlin_or_utc(format: TimeFormat) -> TimeZone {
    match format {
        TimeFormat::Iso8601 | TimeFormat::CommonLog | TimeFormat::Compact => berlin(),
        _ => TimeZone::UTC,
    }
}
