//! Lines that a syslog daemon writes: `Nov 28 20:00:00 host program[17]: message`, or with a time of ISO 8601.

use jiff::tz::TimeZone;

use super::scanner::Scanner;
use super::{LineError, time};

/// A line of syslog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SyslogLine<'a> {
    /// Time in microseconds since 1970.
    pub(super) time_us: i64,
    /// Program.
    pub(super) program: &'a str,
    /// Process identifier; 0 if the line has none.
    pub(super) pid: u32,
    /// Message.
    pub(super) message: &'a str,
}

impl<'a> SyslogLine<'a> {
    /// Parses a line.
    ///
    /// # Errors
    /// If it is not a line of syslog.
    pub(super) fn parse(line: &'a str, zone: &TimeZone, now_us: i64) -> Result<SyslogLine<'a>, LineError> {
        const TAG: &str = "a host, a program, `:` and a message";
        let mut text = Scanner::new(line);
        let time_us = match line.starts_with(|first: char| first.is_ascii_digit()) {
            true => time::iso8601(&mut text, zone)?,
            false => time::syslog(&mut text, zone, now_us)?,
        };
        text.literal(" ", "a space after the time")?;
        let (_host, rest) = text.rest().split_once(' ').ok_or_else(|| LineError::new(TAG, text.rest()))?;
        let (tag, message) = rest.split_once(": ").ok_or_else(|| LineError::new(TAG, rest))?;
        let (program, pid) = match tag.strip_suffix(']').and_then(|tag| tag.split_once('[')) {
            Some((program, pid)) => {
                (program, pid.parse().map_err(|_| LineError::new("a process identifier", pid))?)
            }
            None => (tag, 0),
        };
        Ok(SyslogLine { time_us, program, pid, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_US: i64 = 1_795_900_000_000_000;

    #[test]
    fn both_times_of_syslog_are_read() {
        let expected =
            SyslogLine { time_us: 1_795_896_900_000_000, program: "sshd", pid: 17, message: "a: b" };
        for line in
            ["Nov 28 20:15:00 dtn1 sshd[17]: a: b", "2026-11-28T21:15:00.000000+01:00 dtn1 sshd[17]: a: b"]
        {
            assert_eq!(SyslogLine::parse(line, &TimeZone::UTC, NOW_US), Ok(expected));
        }
    }

    #[test]
    fn a_program_may_have_no_process_identifier() {
        let line = SyslogLine::parse("Nov 28 20:15:00 dtn1 kernel: [1.5] x", &TimeZone::UTC, NOW_US).unwrap();
        assert_eq!((line.program, line.pid, line.message), ("kernel", 0, "[1.5] x"));
    }

    #[test]
    fn other_lines_are_refused() {
        for line in ["", "Nov 28 20:15:00", "Nov 28 20:15:00 dtn1", "Nov 28 20:15:00 dtn1 sshd[x]: y", "x"] {
            assert!(SyslogLine::parse(line, &TimeZone::UTC, NOW_US).is_err(), "{line}");
        }
    }
}
