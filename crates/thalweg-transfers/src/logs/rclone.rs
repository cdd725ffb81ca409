//! JSON log of rclone: `--use-json-log --log-level INFO --log-file FILE`, and `--stats 1s` for start times.
//!
//! ```text
//! {"level":"info","msg":"Copied (new)","object":"f","objectType":"*local.Object","source":"...","time":"2026-11-28T20:15:02.5+00:00"}
//! ```
//!
//! Each file is a transfer. rclone logs its end only. The start and, before rclone 1.63, the size come from the latest statistics that
//! list the file as transferring: their time minus bytes divided by speed. A file that is copied between two statistics has no duration:
//! start and end are equal; and with an old rclone no size.
//!
//! A failed copy has the bytes of the latest statistics.
//!
//! A file of a local source is sent, any other is received. Copies between two remotes count as received. The log has no addresses, no
//! ports, no user, no buffers and no congestion control. A copy in several parts (`Multi-thread Copied`) has an unknown number of
//! streams. Copies inside a remote are no transfers. Several rclone processes must not write to one log: the statistics do not name their
//! process.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use serde::Deserialize;
use thalweg_api::TransferDirection;

use super::scanner::Scanner;
use super::{LineError, LogParser, LoggedTransfer, MAX_SESSIONS, time};

/// Parser of the JSON log of rclone.
#[derive(Debug)]
pub struct Rclone {
    application: String,
    zone: TimeZone,
    /// Files that the latest statistics list, by name.
    transferring: BTreeMap<String, Started>,
    dropped: u64,
}

/// A file that is being transferred.
#[derive(Clone, Copy, Debug)]
struct Started {
    /// Offset of the first statistics with the file.
    offset: u64,
    start_us: i64,
    size: u64,
    bytes: u64,
    /// Statistics without the file since it was listed.
    missing: u8,
}

/// A line of the log.
#[derive(Debug, Deserialize)]
struct Line {
    #[serde(default)]
    level: String,
    #[serde(default)]
    msg: String,
    #[serde(default)]
    object: String,
    #[serde(default, rename = "objectType")]
    object_type: String,
    #[serde(default)]
    size: Option<i64>,
    time: String,
    #[serde(default)]
    stats: Option<Statistics>,
}

#[derive(Debug, Deserialize)]
struct Statistics {
    #[serde(default)]
    transferring: Option<Vec<Transferring>>,
}

#[derive(Debug, Deserialize)]
struct Transferring {
    name: String,
    #[serde(default)]
    bytes: i64,
    #[serde(default)]
    size: i64,
    #[serde(default)]
    speed: f64,
}

impl Rclone {
    /// Creates a parser for transfers of this application.
    pub fn new(application: String, zone: TimeZone) -> Rclone {
        Rclone { application, zone, transferring: BTreeMap::new(), dropped: 0 }
    }
}

impl LogParser for Rclone {
    fn line(&mut self, line: &str, offset: u64, found: &mut Vec<LoggedTransfer>) -> Result<(), LineError> {
        if line.is_empty() || is_fatal_message(line) {
            return Ok(());
        }
        let entry: Line = serde_json::from_str(line)
            .map_err(|_| LineError::new("a JSON object with `time` (rclone --use-json-log)", line))?;
        let time_us = time::iso8601(&mut Scanner::new(&entry.time), &self.zone)?;
        if let Some(statistics) = entry.stats {
            self.statistics(statistics, time_us, offset);
            return Ok(());
        }
        let copied = is_copy(&entry.msg);
        let failed = entry.level == "error" && entry.msg.starts_with("Failed to copy");
        if !entry.object.is_empty() && (copied || failed) {
            let started = self.transferring.remove(&entry.object);
            found.push(self.transfer(entry, started, time_us));
        }
        Ok(())
    }

    fn needs_from(&self) -> Option<u64> {
        self.transferring.values().map(|started| started.offset).min()
    }

    fn dropped_sessions(&self) -> u64 {
        self.dropped
    }
}

impl Rclone {
    fn transfer(&self, entry: Line, started: Option<Started>, end_us: i64) -> LoggedTransfer {
        let failed = entry.level == "error";
        let size =
            entry.size.and_then(|size| u64::try_from(size).ok()).or(started.map(|started| started.size));
        LoggedTransfer {
            application: self.application.clone(),
            direction: match entry.object_type == "*local.Object" {
                true => TransferDirection::Send,
                false => TransferDirection::Receive,
            },
            file: entry.object,
            start_us: started.map_or(end_us, |started| started.start_us.min(end_us)),
            end_us,
            bytes: match failed {
                true => started.map_or(0, |started| started.bytes),
                false => size.unwrap_or(0),
            },
            streams: u16::from(!entry.msg.starts_with("Multi-thread")),
            error: if failed { entry.msg } else { String::new() },
            ..LoggedTransfer::default()
        }
    }

    /// Takes the files that are being transferred. A file that two statistics do not list has ended without a line.
    fn statistics(&mut self, statistics: Statistics, time_us: i64, offset: u64) {
        for started in self.transferring.values_mut() {
            started.missing += 1;
        }
        for file in statistics.transferring.unwrap_or_default() {
            let size = u64::try_from(file.size).unwrap_or(0);
            let bytes = u64::try_from(file.bytes).unwrap_or(0);
            let started = Started { offset, start_us: file.start_us(time_us), size, bytes, missing: 0 };
            if self.transferring.len() >= MAX_SESSIONS && !self.transferring.contains_key(&file.name) {
                self.dropped += 1;
                continue;
            }
            let known = self.transferring.entry(file.name).or_insert(started);
            *known = Started { offset: known.offset, ..started };
        }
        self.transferring.retain(|_, started| started.missing < 2);
    }
}

impl Transferring {
    /// The time of the statistics minus bytes divided by speed, which is the mean since the start.
    fn start_us(&self, time_us: i64) -> i64 {
        match self.speed > 0.0 && self.bytes > 0 {
            // Saturates.
            true => time_us.saturating_sub((self.bytes as f64 / self.speed * 1e6) as i64),
            false => time_us,
        }
    }
}

/// Returns whether a line is the last message of a failed run, which is not JSON: `2026/11/28 20:15:06 Failed to copy: ...`.
fn is_fatal_message(line: &str) -> bool {
    line.split(' ').nth(2) == Some("Failed") && line.as_bytes().get(4) == Some(&b'/')
}

/// Returns whether a message is the end of a copy over the network.
fn is_copy(message: &str) -> bool {
    let message = message.strip_prefix("Multi-thread ").unwrap_or(message);
    message.starts_with("Copied (") && !message.starts_with("Copied (server-side")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATISTICS: &str = r#"{"level":"info","msg":"x","source":"accounting/stats.go:482","stats":{"bytes":1,"transferring":[{"bytes":1000000,"name":"f","size":3000000,"speed":500000.0}]},"time":"2026-11-28T20:15:02+00:00"}"#;
    const COPIED: &str = r#"{"level":"info","msg":"Copied (new)","object":"f","objectType":"*local.Object","source":"s","time":"2026-11-28T20:15:06+00:00"}"#;

    fn parse(lines: &[&str]) -> Result<Vec<LoggedTransfer>, LineError> {
        let mut parser = Rclone::new("rclone".to_owned(), TimeZone::UTC);
        let mut found = Vec::new();
        for (number, line) in lines.iter().enumerate() {
            parser.line(line, number as u64, &mut found)?;
        }
        Ok(found)
    }

    #[test]
    fn statistics_give_the_start_and_the_size_of_a_file() {
        let expected = LoggedTransfer {
            application: "rclone".to_owned(),
            direction: TransferDirection::Send,
            file: "f".to_owned(),
            start_us: 1_795_896_900_000_000,
            end_us: 1_795_896_906_000_000,
            bytes: 3_000_000,
            streams: 1,
            ..LoggedTransfer::default()
        };
        assert_eq!(parse(&[STATISTICS, COPIED]), Ok(vec![expected]));
    }

    #[test]
    fn without_statistics_there_is_no_duration() {
        let found = parse(&[COPIED]).unwrap();
        assert_eq!((found[0].start_us, found[0].bytes), (found[0].end_us, 0));
        let found = parse(&[&COPIED.replace("\"object\"", "\"size\":7,\"object\"")]).unwrap();
        assert_eq!(found[0].bytes, 7);
    }

    #[test]
    fn a_failed_copy_is_an_error() {
        let line = COPIED
            .replace("Copied (new)", "Failed to copy: connection refused")
            .replace("\"info\"", "\"error\"");
        let found = parse(&[STATISTICS, &line]).unwrap();
        assert_eq!(
            (found[0].error.as_str(), found[0].bytes),
            ("Failed to copy: connection refused", 1_000_000)
        );
    }

    #[test]
    fn a_copy_inside_a_remote_is_no_transfer() {
        assert_eq!(parse(&[&COPIED.replace("(new)", "(server-side copy)")]), Ok(Vec::new()));
        let parts = parse(&[&COPIED.replace("Copied", "Multi-thread Copied")]).unwrap();
        assert_eq!(parts[0].streams, 0);
    }

    #[test]
    fn statistics_are_needed_while_a_file_is_transferring() {
        let mut parser = Rclone::new("rclone".to_owned(), TimeZone::UTC);
        let empty =
            STATISTICS.replace("{\"bytes\":1000000,\"name\":\"f\",\"size\":3000000,\"speed\":500000.0}", "");
        for (line, needed) in
            [(STATISTICS, Some(7)), (STATISTICS, Some(7)), (&empty, Some(7)), (&empty, None)]
        {
            parser.line(line, 7, &mut Vec::new()).unwrap();
            assert_eq!(parser.needs_from(), needed);
        }
    }

    #[test]
    fn a_line_of_the_plain_log_is_refused() {
        let error = parse(&["2026/11/28 20:15:06 INFO  : f: Copied (new)"]).unwrap_err();
        assert_eq!(error.expected, "a JSON object with `time` (rclone --use-json-log)");
        assert_eq!(parse(&["2026/11/28 20:15:06 Failed to copy: directory not found"]), Ok(Vec::new()));
    }
}
