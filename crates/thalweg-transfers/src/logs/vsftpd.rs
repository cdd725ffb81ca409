//! vsftpd's own log (`xferlog_std_format=NO`, or `dual_log_enable=YES`), in its file or through syslog (`syslog_enable=YES`).
//!
//! ```text
//! Sat Nov 28 20:15:00 2026 [pid 17] [ada] OK DOWNLOAD: Client "192.0.2.7", "/data/f", 300000 bytes, 1464.84Kbyte/sec
//! ```
//!
//! The start is the end minus bytes divided by rate. The end has whole seconds, cut off, so both may be up to a second early; the
//! duration is right to the rate's two decimals. A failed transfer without bytes has no duration. An upload that the client broke off is
//! logged as `OK`: FTP ends a file with the connection. The log has no ports, no local address, no buffers and no congestion control.
//! vsftpd writes UTC unless `use_localtime=YES`; syslog writes local time.

use jiff::tz::TimeZone;
use thalweg_api::TransferDirection;

use super::scanner::Scanner;
use super::syslog::SyslogLine;
use super::{LineError, LogParser, LoggedTransfer, Peer, time};

/// Parser of vsftpd's own log.
#[derive(Debug)]
pub struct Vsftpd {
    application: String,
    zone: TimeZone,
    now_us: i64,
}

impl Vsftpd {
    /// Creates a parser for transfers of this application.
    pub fn new(application: String, zone: TimeZone) -> Vsftpd {
        Vsftpd { application, zone, now_us: 0 }
    }
}

impl LogParser for Vsftpd {
    fn line(&mut self, line: &str, _offset: u64, found: &mut Vec<LoggedTransfer>) -> Result<(), LineError> {
        if line.is_empty() {
            return Ok(());
        }
        if let Some(entry) = self.entry(line)? {
            found.extend(self.transfer(&entry)?);
        }
        Ok(())
    }

    fn set_now(&mut self, now_us: i64) {
        self.now_us = now_us;
    }
}

/// A line: when, who, and what.
struct Entry<'a> {
    time_us: i64,
    user: &'a str,
    action: &'a str,
    /// What comes after `Client `.
    rest: &'a str,
}

impl Vsftpd {
    /// Splits a line; `None` for lines of other programs.
    fn entry<'a>(&self, line: &'a str) -> Result<Option<Entry<'a>>, LineError> {
        const PID: &str = "`[pid ` and a process identifier";
        let (time_us, message) = match is_ctime(line) {
            true => {
                let mut text = Scanner::new(line);
                let time_us = time::ctime(&mut text, &self.zone)?;
                text.literal(" [pid ", PID)?;
                text.until("] ", PID)?;
                (time_us, text.rest())
            }
            false => {
                let entry = SyslogLine::parse(line, &self.zone, self.now_us)?;
                if entry.program != "vsftpd" {
                    return Ok(None);
                }
                (entry.time_us, entry.message)
            }
        };
        const CLIENT: &str = "`: Client ` after the action";
        let (action, rest) =
            message.split_once(": Client ").ok_or_else(|| LineError::new(CLIENT, message))?;
        let (user, action) = match action.strip_prefix('[').and_then(|action| action.split_once("] ")) {
            Some(user_and_action) => user_and_action,
            None => ("", action),
        };
        Ok(Some(Entry { time_us, user, action, rest }))
    }

    fn transfer(&self, entry: &Entry<'_>) -> Result<Option<LoggedTransfer>, LineError> {
        let (direction, error) = match entry.action {
            "OK DOWNLOAD" => (TransferDirection::Send, ""),
            "OK UPLOAD" => (TransferDirection::Receive, ""),
            "FAIL DOWNLOAD" => (TransferDirection::Send, "failed"),
            "FAIL UPLOAD" => (TransferDirection::Receive, "failed"),
            _ => return Ok(None),
        };
        let mut text = Scanner::new(entry.rest);
        text.literal("\"", "the client's address in quotes")?;
        let peer = text.until("\", \"", "the client's address in quotes, and a file")?;
        let tail = Tail::split(text.rest())?;
        Ok(Some(LoggedTransfer {
            application: self.application.clone(),
            direction,
            user: entry.user.to_owned(),
            file: tail.file.to_owned(),
            remote: Peer::parse(peer),
            start_us: entry.time_us.saturating_sub(tail.duration_us()),
            end_us: entry.time_us,
            bytes: tail.bytes,
            streams: 1,
            error: error.to_owned(),
            ..LoggedTransfer::default()
        }))
    }
}

/// The end of a line: `FILE", BYTES bytes, RATEKbyte/sec`. Read from the right, because a file name may contain quotes.
struct Tail<'a> {
    file: &'a str,
    bytes: u64,
    rate_kbyte: f64,
}

impl<'a> Tail<'a> {
    fn split(text: &'a str) -> Result<Tail<'a>, LineError> {
        const RATE: &str = "a rate in Kbyte/sec at the end";
        const BYTES: &str = "a number of bytes";
        let rest = text.strip_suffix("Kbyte/sec").ok_or_else(|| LineError::new(RATE, text))?;
        let (rest, rate) = rest.rsplit_once(", ").ok_or_else(|| LineError::new(RATE, rest))?;
        let rate_kbyte = rate.parse().map_err(|_| LineError::new(RATE, rate))?;
        let (file, bytes) = match rest.strip_suffix(" bytes").and_then(|rest| rest.rsplit_once(", ")) {
            Some((file, bytes)) => (file, bytes.parse().map_err(|_| LineError::new(BYTES, bytes))?),
            None => (rest, 0),
        };
        let file = file.strip_suffix('"').ok_or_else(|| LineError::new("a file in quotes", file))?;
        Ok(Tail { file, bytes, rate_kbyte })
    }

    /// Bytes divided by rate; 0 if the rate is 0.
    fn duration_us(&self) -> i64 {
        match self.rate_kbyte > 0.0 {
            // Saturates.
            true => (self.bytes as f64 / 1_024.0 / self.rate_kbyte * 1e6) as i64,
            false => 0,
        }
    }
}

/// Returns whether a line begins with a time of `ctime`: the third word is the day, which that of syslog has second.
fn is_ctime(line: &str) -> bool {
    line.split_ascii_whitespace().nth(2).is_some_and(|day| day.len() <= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "Sat Nov 28 20:15:00 2026 [pid 17] [ada] OK DOWNLOAD: Client \"192.0.2.7\", \"/data/f\", \
        300000 bytes, 146.48Kbyte/sec";

    fn parse(line: &str) -> Result<Vec<LoggedTransfer>, LineError> {
        let mut found = Vec::new();
        let mut parser = Vsftpd::new("vsftpd".to_owned(), TimeZone::UTC);
        parser.set_now(1_795_900_000_000_000);
        parser.line(line, 0, &mut found)?;
        Ok(found)
    }

    #[test]
    fn a_line_is_a_transfer_and_the_rate_gives_its_start() {
        let expected = LoggedTransfer {
            application: "vsftpd".to_owned(),
            direction: TransferDirection::Send,
            user: "ada".to_owned(),
            file: "/data/f".to_owned(),
            remote: Peer::parse("192.0.2.7"),
            start_us: 1_795_896_900_000_000 - 2_000_059,
            end_us: 1_795_896_900_000_000,
            bytes: 300_000,
            streams: 1,
            ..LoggedTransfer::default()
        };
        assert_eq!(parse(LINE), Ok(vec![expected]));
    }

    #[test]
    fn a_line_of_syslog_is_a_transfer() {
        for time in ["Nov 28 20:15:00", "2026-11-28T20:15:00+00:00"] {
            let line = LINE.replace("Sat Nov 28 20:15:00 2026 [pid 17]", &format!("{time} dtn1 vsftpd[17]:"));
            assert_eq!(parse(&line), parse(LINE), "{line}");
        }
        assert_eq!(parse("Nov 28 20:15:00 dtn1 sshd[17]: Server listening"), Ok(Vec::new()));
    }

    #[test]
    fn a_failed_transfer_may_have_no_bytes() {
        let line = "Sat Nov 28 20:15:00 2026 [pid 17] [ada] FAIL UPLOAD: Client \"::ffff:192.0.2.7\", \"/f\", 0.00Kbyte/sec";
        let found = parse(line).unwrap();
        assert_eq!((found[0].error.as_str(), found[0].bytes), ("failed", 0));
        assert_eq!(found[0].start_us, found[0].end_us);
        assert_eq!(found[0].remote, Peer::parse("192.0.2.7"));
    }

    #[test]
    fn a_file_name_may_contain_quotes_and_commas() {
        let found = parse(&LINE.replace("/data/f", "/a\", 7 bytes, 1.00Kbyte/sec")).unwrap();
        assert_eq!((found[0].file.as_str(), found[0].bytes), ("/a\", 7 bytes, 1.00Kbyte/sec", 300_000));
    }

    #[test]
    fn other_actions_are_no_transfers() {
        for action in [
            "CONNECT: Client \"192.0.2.7\"",
            "[ada] OK LOGIN: Client \"192.0.2.7\"",
            "[ada] FTP command: Client \"192.0.2.7\", \"RETR f\"",
            "[ada] OK DELETE: Client \"192.0.2.7\", \"/f\"",
        ] {
            assert_eq!(
                parse(&format!("Sat Nov 28 20:15:00 2026 [pid 17] {action}")),
                Ok(Vec::new()),
                "{action}"
            );
        }
    }

    #[test]
    fn a_cut_line_is_refused() {
        for end in 1..LINE.len() {
            assert!(parse(&LINE[..end]).is_err(), "{}", &LINE[..end]);
        }
    }

    #[test]
    fn another_locale_is_refused() {
        let error = parse(&LINE.replace("Sat Nov", "Sa Nov")).unwrap_err();
        assert_eq!(error.expected, "a day of the C locale (Mon to Sun)");
    }
}
