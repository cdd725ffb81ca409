//! Transfer log of globus-gridftp-server.
//!
//! ```text
//! DATE=20261128201500.123456 HOST=dtn1 PROG=globus-gridftp-server NL.EVNT=FTP_INFO START=20261128201459.000001 USER=ada FILE=/data/a b
//! BUFFER=1048576 BLOCK=262144 NBYTES=300000 VOLUME=/ STREAMS=4 STRIPES=1 DEST=[192.0.2.7] TYPE=RETR CODE=226 TASKID=none
//! ```
//!
//! (one line). Written by `-log-transfer FILE`. In the main log, `-log-level ALL` writes the same after `Transfer stats: `; other lines
//! of the main log describe no transfer. Times are UTC, `DATE` is the end.
//!
//! `DEST` is the peer of the data connection, and of the first one only. The log has no ports, no local address and no congestion
//! control. `BUFFER` is the size of the socket's buffer that the kernel reports, twice what a client requested (`-tcp-bs`); without a
//! request it is the size at that moment, which the kernel changes. Transfers of directory listings are left out.
//!
//! The server logs a transfer that the client broke off with code 226 and the bytes so far, and does not log a file that it could not
//! open. So an entry without an error may be incomplete.

use thalweg_api::TransferDirection;

use super::scanner::Scanner;
use super::{LineError, LogParser, LoggedTransfer, Peer, time};

/// Parser of the transfer log of globus-gridftp-server.
#[derive(Debug)]
pub struct GridFtp {
    application: String,
    /// Whether a line of the main log was seen. Its messages may have several lines.
    is_main_log: bool,
}

impl GridFtp {
    /// Creates a parser for transfers of this application.
    pub fn new(application: String) -> GridFtp {
        GridFtp { application, is_main_log: false }
    }
}

impl LogParser for GridFtp {
    fn line(&mut self, line: &str, _offset: u64, found: &mut Vec<LoggedTransfer>) -> Result<(), LineError> {
        let entry = match line.split_once("Transfer stats: DATE=") {
            Some((_, entry)) => entry,
            None => match line.strip_prefix("DATE=") {
                Some(entry) => entry,
                None if self.is_main_log || line.is_empty() => return Ok(()),
                None if line.starts_with('[') => {
                    self.is_main_log = true;
                    return Ok(());
                }
                None => return Err(LineError::new("`DATE=` or a line of the server's main log", line)),
            },
        };
        found.extend(self.entry(entry)?);
        Ok(())
    }
}

impl GridFtp {
    /// Parses what comes after `DATE=`.
    fn entry(&self, entry: &str) -> Result<Option<LoggedTransfer>, LineError> {
        let fields = Fields::split(entry)?;
        let direction = match fields.get("TYPE", "`TYPE=`")? {
            "RETR" | "ERET" => TransferDirection::Send,
            "STOR" | "ESTO" | "APPE" | "STOU" => TransferDirection::Receive,
            "" => return Err(LineError::new("`TYPE=`", entry)),
            _ => return Ok(None),
        };
        let buffer_bytes = fields.number("BUFFER", "`BUFFER=` and a number")?;
        let code = fields.number("CODE", "`CODE=` and a number")?;
        let streams = fields.number("STREAMS", "`STREAMS=` and a number")?;
        let stripes = fields.number("STRIPES", "`STRIPES=` and a number")?;
        let start_us = time::compact(&mut Scanner::new(fields.get("START", "`START=`")?))?;
        let end_us = time::compact(&mut Scanner::new(fields.end))?;
        let mut transfer = LoggedTransfer {
            application: self.application.clone(),
            direction,
            user: fields.get("USER", "`USER=`")?.to_owned(),
            file: fields.file.to_owned(),
            remote: Peer::parse(
                fields.get("DEST", "`DEST=[`")?.trim_start_matches('[').trim_end_matches(']'),
            ),
            start_us: start_us.min(end_us),
            end_us,
            bytes: fields.number("NBYTES", "`NBYTES=` and a number")?,
            streams: u16::try_from(streams.saturating_mul(stripes.max(1))).unwrap_or(u16::MAX),
            ..LoggedTransfer::default()
        };
        match direction {
            TransferDirection::Send => transfer.send_buffer_bytes = buffer_bytes,
            TransferDirection::Receive => transfer.receive_buffer_bytes = buffer_bytes,
        }
        if !(100..700).contains(&code) {
            return Err(LineError::new("a reply code of three digits", &code.to_string()));
        }
        if !(200..300).contains(&code) {
            transfer.error = format!("FTP reply {code}");
        }
        Ok(Some(transfer))
    }
}

/// The fields of an entry. Only the file name may contain spaces.
struct Fields<'a> {
    end: &'a str,
    file: &'a str,
    before_file: &'a str,
    after_file: &'a str,
}

impl<'a> Fields<'a> {
    fn split(entry: &'a str) -> Result<Fields<'a>, LineError> {
        let (end, rest) = entry.split_once(' ').ok_or_else(|| LineError::new("`HOST=`", entry))?;
        let (before_file, rest) = rest.split_once(" FILE=").ok_or_else(|| LineError::new("`FILE=`", rest))?;
        let (file, after_file) =
            rest.rsplit_once(" BUFFER=").ok_or_else(|| LineError::new("`BUFFER=`", rest))?;
        // The name of the first field is cut off.
        Ok(Fields { end, file, before_file, after_file })
    }

    fn get(&self, name: &str, expected: &'static str) -> Result<&'a str, LineError> {
        if name == "BUFFER" {
            return Ok(self.after_file.split(' ').next().unwrap_or(""));
        }
        let fields = self.before_file.split(' ').chain(self.after_file.split(' '));
        let value = fields.filter_map(|field| field.split_once('=')).find(|(key, _)| *key == name);
        value.map(|(_, value)| value).ok_or_else(|| LineError::new(expected, self.after_file))
    }

    fn number(&self, name: &str, expected: &'static str) -> Result<u64, LineError> {
        let value = self.get(name, expected)?;
        value.parse().map_err(|_| LineError::new(expected, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "DATE=20261128201500.123456 HOST=dtn1 PROG=globus-gridftp-server NL.EVNT=FTP_INFO \
        START=20261128201459.000001 USER=ada FILE=/data/a b BUFFER=1048576 BLOCK=262144 NBYTES=300000 VOLUME=/ \
        STREAMS=4 STRIPES=2 DEST=[192.0.2.7] TYPE=RETR CODE=226 TASKID=none";

    fn parse(line: &str) -> Result<Vec<LoggedTransfer>, LineError> {
        let mut found = Vec::new();
        GridFtp::new("gridftp".to_owned()).line(line, 0, &mut found)?;
        Ok(found)
    }

    #[test]
    fn a_line_is_a_transfer() {
        let found = parse(LINE).unwrap();
        let expected = LoggedTransfer {
            application: "gridftp".to_owned(),
            direction: TransferDirection::Send,
            user: "ada".to_owned(),
            file: "/data/a b".to_owned(),
            remote: Peer::parse("192.0.2.7"),
            start_us: 1_795_896_899_000_001,
            end_us: 1_795_896_900_123_456,
            bytes: 300_000,
            streams: 8,
            send_buffer_bytes: 1_048_576,
            ..LoggedTransfer::default()
        };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn the_main_log_has_the_same_line_after_its_own_time() {
        let line = format!("[24775] Sat Nov 28 20:15:00 2026 :: Transfer stats: {LINE}");
        assert_eq!(parse(&line), parse(LINE));
        assert_eq!(
            parse("[24775] Sat Nov 28 20:15:00 2026 :: Server started in daemon mode."),
            Ok(Vec::new())
        );
    }

    #[test]
    fn a_code_other_than_2xx_is_an_error() {
        let found = parse(&LINE.replace("CODE=226", "CODE=426").replace("RETR", "STOR")).unwrap();
        assert_eq!(
            (found[0].error.as_str(), found[0].direction),
            ("FTP reply 426", TransferDirection::Receive)
        );
        assert_eq!((found[0].send_buffer_bytes, found[0].receive_buffer_bytes), (0, 1_048_576));
    }

    #[test]
    fn a_listing_is_no_transfer() {
        assert_eq!(parse(&LINE.replace("RETR", "MLSD")), Ok(Vec::new()));
    }

    #[test]
    fn a_file_may_be_named_like_a_field() {
        let found = parse(&LINE.replace("/data/a b", "/a BUFFER=1 NBYTES=7 b")).unwrap();
        assert_eq!((found[0].file.as_str(), found[0].bytes), ("/a BUFFER=1 NBYTES=7 b", 300_000));
    }

    #[test]
    fn a_cut_line_is_refused() {
        for end in 1..LINE.len() - "6 TASKID=none".len() {
            assert!(!parse(&LINE[..end]).is_ok_and(|found| !found.is_empty()), "{}", &LINE[..end]);
        }
        let error = parse(&LINE.replace("NBYTES=300000", "NBYTES=x")).unwrap_err();
        assert_eq!(error.to_string(), "expected `NBYTES=` and a number, found \"x\"");
    }
}
