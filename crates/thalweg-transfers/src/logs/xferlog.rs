//! xferlog of wu-ftpd (xferlog(5)), as vsftpd (`xferlog_std_format=YES`) and ProFTPD (`TransferLog`) write it.
//!
//! ```text
//! Sat Nov 28 20:15:00 2026 2 192.0.2.7 300000 /data/f b _ o r ada ftp 0 * c
//! ```
//!
//! That is: end, seconds, peer, bytes, file, type, special action, direction (`i` into the server, `o` out of it, `d` deleted), access
//! mode, user, service, authentication, its user, completion (`c` complete, `i` incomplete).
//!
//! vsftpd logs an upload that the client broke off as complete: FTP ends a file with the connection. The duration has whole seconds;
//! vsftpd writes 1 for anything shorter. Spaces in file names are underscores. The log has no ports, no local address, no buffers and no
//! congestion control. vsftpd writes UTC unless `use_localtime=YES`.

use jiff::tz::TimeZone;
use thalweg_api::TransferDirection;

use super::scanner::Scanner;
use super::{LineError, LogParser, LoggedTransfer, Peer, time};

/// Parser of an xferlog.
#[derive(Debug)]
pub struct Xferlog {
    application: String,
    zone: TimeZone,
}

impl Xferlog {
    /// Creates a parser. An empty application means the service that each line names, such as `ftp` or `sftp`.
    pub fn new(application: String, zone: TimeZone) -> Xferlog {
        Xferlog { application, zone }
    }
}

impl LogParser for Xferlog {
    fn line(&mut self, line: &str, _offset: u64, found: &mut Vec<LoggedTransfer>) -> Result<(), LineError> {
        if line.is_empty() {
            return Ok(());
        }
        let mut text = Scanner::new(line);
        let end_us = time::ctime(&mut text, &self.zone)?;
        text.literal(" ", "a space after the time")?;
        let seconds = text.until(" ", "a number of seconds")?;
        let seconds: i64 = seconds.parse().map_err(|_| LineError::new("a number of seconds", seconds))?;
        let peer = text.until(" ", "the peer")?;
        let bytes = text.until(" ", "a number of bytes")?;
        let bytes = bytes.parse().map_err(|_| LineError::new("a number of bytes", bytes))?;
        let fields = Fields::split(text.rest())?;
        let direction = match fields.direction {
            "o" => TransferDirection::Send,
            "i" => TransferDirection::Receive,
            "d" => return Ok(()),
            other => return Err(LineError::new("direction `i`, `o` or `d`", other)),
        };
        let error = match fields.completion {
            "c" => String::new(),
            "i" => "incomplete".to_owned(),
            other => return Err(LineError::new("completion `c` or `i`", other)),
        };
        found.push(LoggedTransfer {
            application: match self.application.is_empty() {
                true => fields.service.to_owned(),
                false => self.application.clone(),
            },
            direction,
            user: fields.user.to_owned(),
            file: fields.file.to_owned(),
            remote: Peer::parse(peer),
            start_us: end_us.saturating_sub(seconds.saturating_mul(1_000_000)),
            end_us,
            bytes,
            streams: 1,
            error,
            ..LoggedTransfer::default()
        });
        Ok(())
    }
}

/// The fields from the file name on. Read from the right, so that a file name with spaces is read whole.
struct Fields<'a> {
    file: &'a str,
    direction: &'a str,
    user: &'a str,
    service: &'a str,
    completion: &'a str,
}

impl<'a> Fields<'a> {
    fn split(text: &'a str) -> Result<Fields<'a>, LineError> {
        let fields: Vec<&str> = text.rsplitn(10, ' ').collect();
        match fields[..] {
            [completion, _, _, service, user, _, direction, _, kind, file] if kind == "a" || kind == "b" => {
                Ok(Fields { file, direction, user, service, completion })
            }
            _ => Err(LineError::new("a file name, `a` or `b`, and 8 fields", text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "Sat Nov 28 20:15:00 2026 2 192.0.2.7 300000 /data/a_b b _ o r ada ftp 0 * c";

    fn parse(line: &str) -> Result<Vec<LoggedTransfer>, LineError> {
        let mut found = Vec::new();
        Xferlog::new(String::new(), TimeZone::UTC).line(line, 0, &mut found)?;
        Ok(found)
    }

    #[test]
    fn a_line_is_a_transfer() {
        let expected = LoggedTransfer {
            application: "ftp".to_owned(),
            direction: TransferDirection::Send,
            user: "ada".to_owned(),
            file: "/data/a_b".to_owned(),
            remote: Peer::parse("192.0.2.7"),
            start_us: 1_795_896_898_000_000,
            end_us: 1_795_896_900_000_000,
            bytes: 300_000,
            streams: 1,
            ..LoggedTransfer::default()
        };
        assert_eq!(parse(LINE), Ok(vec![expected]));
    }

    #[test]
    fn a_file_name_with_spaces_is_read_whole() {
        let found = parse(&LINE.replace("/data/a_b", "/data/a b _ i r c")).unwrap();
        assert_eq!(found[0].file, "/data/a b _ i r c");
    }

    #[test]
    fn an_incomplete_upload_is_an_error() {
        let found = parse(&LINE.replace("_ o r", "_ i r").replace("* c", "* i")).unwrap();
        assert_eq!((found[0].direction, found[0].error.as_str()), (TransferDirection::Receive, "incomplete"));
    }

    #[test]
    fn a_deleted_file_is_no_transfer() {
        assert_eq!(parse(&LINE.replace("_ o r", "_ d r")), Ok(Vec::new()));
    }

    #[test]
    fn a_cut_line_is_refused() {
        for end in 1..LINE.len() {
            assert!(parse(&LINE[..end]).is_err(), "{}", &LINE[..end]);
        }
    }
}
