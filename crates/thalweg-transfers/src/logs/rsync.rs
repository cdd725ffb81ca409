//! Log of rsync: of the daemon (rsyncd.conf `log file`, or syslog) and of a client (`--log-file`).
//!
//! ```text
//! 2026/11/28 20:15:00 [17] connect from dtn2 (192.0.2.7)
//! 2026/11/28 20:15:00 [17] rsync on data/f from ada@dtn2 (192.0.2.7)
//! 2026/11/28 20:15:00 [17] building file list
//! 2026/11/28 20:15:02 [17] send dtn2 [192.0.2.7] data (ada) f 300000
//! 2026/11/28 20:15:02 [17] sent 300123 bytes  received 60 bytes  total size 300000
//! ```
//!
//! A session is one transfer over one TCP connection, whatever the number of files: rsync pipelines them, and its times have whole
//! seconds. It begins with the request, or with the file list of a client; a connection without a request is no transfer. The bytes are
//! those that rsync sent or received, after compression and without data that the receiver already had. The file is that of the session
//! if it was one, otherwise the requested path, otherwise the first file.
//!
//! Lines of files have the format `%o %h [%a] %m (%u) %f %l`, the default of the daemon with `transfer logging = yes`; a client needs
//! `--log-file-format`. Sessions without such lines are transfers too, but their file may be unknown, and a failed one has no bytes.
//! Lines of other formats are ignored. A session that had nothing to copy is a transfer of a few bytes.
//!
//! The log has no ports, no local address, no buffers and no congestion control. That of a client has no peer and no user.

use jiff::tz::TimeZone;
use thalweg_api::TransferDirection;

use super::scanner::Scanner;
use super::sessions::Sessions;
use super::syslog::SyslogLine;
use super::{LineError, LogParser, LoggedTransfer, Peer, time};

/// Parser of the log of rsync.
#[derive(Debug)]
pub struct Rsync {
    application: String,
    zone: TimeZone,
    now_us: i64,
    /// By process identifier.
    sessions: Sessions<u32, Session>,
}

/// A session that has not ended.
#[derive(Debug, Default)]
struct Session {
    start_us: i64,
    direction: Option<TransferDirection>,
    user: String,
    peer: Option<Peer>,
    /// Path that the client requested.
    requested: String,
    first_file: String,
    files: u64,
    file_bytes: u64,
    error: String,
}

impl Rsync {
    /// Creates a parser for transfers of this application.
    pub fn new(application: String, zone: TimeZone) -> Rsync {
        Rsync { application, zone, now_us: 0, sessions: Sessions::new() }
    }
}

impl LogParser for Rsync {
    fn line(&mut self, line: &str, offset: u64, found: &mut Vec<LoggedTransfer>) -> Result<(), LineError> {
        if line.is_empty() {
            return Ok(());
        }
        let (time_us, pid, message) = match line.as_bytes().get(4) {
            Some(b'/') => own_format(line, &self.zone)?,
            _ => {
                let entry = SyslogLine::parse(line, &self.zone, self.now_us)?;
                match entry.program {
                    "rsyncd" | "rsync" => (entry.time_us, entry.pid, entry.message),
                    _ => return Ok(()),
                }
            }
        };
        found.extend(self.message(time_us, pid, message, offset)?);
        Ok(())
    }

    fn needs_from(&self) -> Option<u64> {
        self.sessions.needs_from()
    }

    fn set_now(&mut self, now_us: i64) {
        self.now_us = now_us;
    }

    fn dropped_sessions(&self) -> u64 {
        self.sessions.dropped()
    }
}

/// Splits a line of the log file: `2026/11/28 20:15:00 [17] message`.
fn own_format<'a>(line: &'a str, zone: &TimeZone) -> Result<(i64, u32, &'a str), LineError> {
    const PID: &str = "a process identifier in brackets";
    let mut text = Scanner::new(line);
    let time_us = time::slashes(&mut text, zone)?;
    text.literal(" [", PID)?;
    let pid = text.until("] ", PID)?;
    Ok((time_us, pid.parse().map_err(|_| LineError::new(PID, pid))?, text.rest()))
}

impl Rsync {
    fn message(
        &mut self,
        time_us: i64,
        pid: u32,
        message: &str,
        offset: u64,
    ) -> Result<Option<LoggedTransfer>, LineError> {
        if message == "building file list" || message == "receiving file list" {
            let session = self.open(pid, offset, time_us);
            session.direction.get_or_insert(match message == "building file list" {
                true => TransferDirection::Send,
                false => TransferDirection::Receive,
            });
            return Ok(None);
        }
        if let Some((direction, rest)) = request(message) {
            let mut session = Session { start_us: time_us, ..Session::default() };
            session.request(direction, rest);
            self.sessions.open(pid, offset, time_us, session);
            return Ok(None);
        }
        if let Some((direction, rest)) = file_line(message) {
            // A receiving client logs files in a child process.
            let session = match self.sessions.active(&pid, time_us).is_some() {
                true => self.sessions.active(&pid, time_us),
                false => self.sessions.active_below(&pid, time_us).filter(|session| session.receives()),
            };
            return session.map_or(Ok(()), |session| session.file(direction, rest)).map(|()| None);
        }
        self.end(time_us, pid, message)
    }

    /// Handles the last lines of a session.
    fn end(&mut self, time_us: i64, pid: u32, message: &str) -> Result<Option<LoggedTransfer>, LineError> {
        if let Some(totals) = message.strip_prefix("sent ") {
            let Some((sent, received)) = totals_of(totals)? else { return Ok(None) };
            let ended = self.sessions.close(&pid);
            return Ok(
                ended.map(|session| session.transfer(&self.application, time_us, Some((sent, received))))
            );
        }
        if let Some(error) = message.strip_prefix("rsync error: ") {
            let Some(mut session) = self.sessions.close(&pid) else { return Ok(None) };
            // The line before says more than the summary, if there was one.
            if session.error.is_empty() {
                session.error = error.split(" at ").next().unwrap_or(error).to_owned();
            }
            return Ok(Some(session.transfer(&self.application, time_us, None)));
        }
        let error = message.strip_prefix("rsync: ").or_else(|| message.strip_prefix("@ERROR: "));
        if let (Some(error), Some(session)) = (error, self.sessions.active(&pid, time_us)) {
            session.error = error.to_owned();
        }
        Ok(None)
    }

    /// Returns the session of a process, which begins with this line if it is the first.
    fn open(&mut self, pid: u32, offset: u64, time_us: i64) -> &mut Session {
        let session = || Session { start_us: time_us, ..Session::default() };
        self.sessions.active_or_open(pid, offset, time_us, session)
    }
}

impl Session {
    /// Takes `data/f from ada@dtn2 (192.0.2.7)`.
    fn request(&mut self, direction: TransferDirection, text: &str) {
        self.direction = Some(direction);
        if let Some((path, client)) = text.rsplit_once(" from ") {
            self.requested = path.to_owned();
            self.peer = peer_in_parentheses(client);
            if let Some((user, _)) = client.split_once('@') {
                self.user = user.to_owned();
            }
        }
    }

    /// Takes `dtn2 [192.0.2.7] data (ada) f 300000`.
    fn file(&mut self, direction: TransferDirection, text: &str) -> Result<(), LineError> {
        const EXPECTED: &str = "`%h [%a] %m (%u) %f %l` after the operation";
        let mut text = Scanner::new(text);
        text.until("[", EXPECTED)?;
        let peer = text.until("] ", EXPECTED)?;
        text.until("(", EXPECTED)?;
        let user = text.until(") ", EXPECTED)?;
        let (file, bytes) =
            text.rest().rsplit_once(' ').ok_or_else(|| LineError::new(EXPECTED, text.rest()))?;
        let bytes: u64 = bytes.parse().map_err(|_| LineError::new("the length of the file", bytes))?;
        self.direction.get_or_insert(direction);
        if self.peer.is_none() && !peer.starts_with('%') {
            self.peer = Peer::parse(peer);
        }
        if self.user.is_empty() && !user.starts_with('%') {
            user.clone_into(&mut self.user);
        }
        if self.files == 0 {
            file.clone_into(&mut self.first_file);
        }
        self.files += 1;
        self.file_bytes = self.file_bytes.saturating_add(bytes);
        Ok(())
    }

    fn receives(&self) -> bool {
        self.direction == Some(TransferDirection::Receive)
    }

    /// Ends the session. `totals` are the bytes sent and received, if the log has them.
    fn transfer(self, application: &str, end_us: i64, totals: Option<(u64, u64)>) -> LoggedTransfer {
        let direction = self.direction.unwrap_or(match totals {
            Some((sent, received)) if received > sent => TransferDirection::Receive,
            _ => TransferDirection::Send,
        });
        let bytes = match (totals, direction) {
            (Some((sent, _)), TransferDirection::Send) => sent,
            (Some((_, received)), TransferDirection::Receive) => received,
            (None, _) => self.file_bytes,
        };
        LoggedTransfer {
            application: application.to_owned(),
            direction,
            user: self.user,
            file: match self.files == 1 || self.requested.is_empty() {
                true => self.first_file,
                false => self.requested,
            },
            remote: self.peer,
            start_us: self.start_us.min(end_us),
            end_us,
            bytes,
            streams: 1,
            error: self.error,
            ..LoggedTransfer::default()
        }
    }
}

/// Returns the address in `dtn2 (192.0.2.7)`, otherwise the name.
fn peer_in_parentheses(client: &str) -> Option<Peer> {
    let address = client.strip_suffix(')').and_then(|client| client.rsplit_once('('));
    match address {
        Some((name, address)) => Peer::parse(address).or_else(|| Peer::parse(name.trim())),
        None => Peer::parse(client),
    }
}

/// Returns the direction and the rest of `rsync on data/f from ...` and `rsync to data/f from ...`.
fn request(message: &str) -> Option<(TransferDirection, &str)> {
    match message.strip_prefix("rsync on ") {
        Some(rest) => Some((TransferDirection::Send, rest)),
        None => message.strip_prefix("rsync to ").map(|rest| (TransferDirection::Receive, rest)),
    }
}

/// Returns the direction and the rest of a line of a file.
fn file_line(message: &str) -> Option<(TransferDirection, &str)> {
    let (direction, rest) = match message.strip_prefix("send ") {
        Some(rest) => (TransferDirection::Send, rest),
        None => (TransferDirection::Receive, message.strip_prefix("recv ")?),
    };
    Some((direction, rest))
}

/// Returns the bytes of `300123 bytes  received 60 bytes  total size 300000`; `None` for another line that begins with `sent`.
fn totals_of(text: &str) -> Result<Option<(u64, u64)>, LineError> {
    const NUMBER: &str = "a number of bytes";
    let Some((sent, rest)) = text.split_once(" bytes  received ") else { return Ok(None) };
    let (received, _) = rest.split_once(" bytes").ok_or_else(|| LineError::new(NUMBER, rest))?;
    // `--human-readable` groups the digits.
    let number = |text: &str| text.replace([',', '.'], "").parse().map_err(|_| LineError::new(NUMBER, text));
    Ok(Some((number(sent)?, number(received)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PULL: &str = "\
2026/11/28 20:15:00 [17] connect from dtn2 (192.0.2.7)
2026/11/28 20:15:00 [17] rsync on data/f from ada@dtn2 (192.0.2.7)
2026/11/28 20:15:00 [17] building file list
2026/11/28 20:15:02 [17] send dtn2 [192.0.2.7] data (ada) f 300000
2026/11/28 20:15:02 [17] sent 300123 bytes  received 60 bytes  total size 300000
";

    fn parse_with(parser: &mut Rsync, log: &str) -> Result<Vec<LoggedTransfer>, LineError> {
        let (mut found, mut offset) = (Vec::new(), 0);
        for line in log.lines() {
            parser.line(line, offset, &mut found)?;
            offset += line.len() as u64 + 1;
        }
        Ok(found)
    }

    fn parser() -> Rsync {
        let mut parser = Rsync::new("rsync".to_owned(), TimeZone::UTC);
        parser.set_now(1_795_900_000_000_000);
        parser
    }

    fn parse(log: &str) -> Result<Vec<LoggedTransfer>, LineError> {
        parse_with(&mut parser(), log)
    }

    #[test]
    fn a_session_is_a_transfer() {
        let expected = LoggedTransfer {
            application: "rsync".to_owned(),
            direction: TransferDirection::Send,
            user: "ada".to_owned(),
            file: "f".to_owned(),
            remote: Peer::parse("192.0.2.7"),
            start_us: 1_795_896_900_000_000,
            end_us: 1_795_896_902_000_000,
            bytes: 300_123,
            streams: 1,
            ..LoggedTransfer::default()
        };
        assert_eq!(parse(PULL), Ok(vec![expected]));
    }

    #[test]
    fn a_session_of_syslog_is_a_transfer() {
        let mut log = String::new();
        for line in PULL.lines() {
            log.push_str(&line.replacen("2026/11/28", "Nov 28", 1).replacen("[17]", "dtn1 rsyncd[17]:", 1));
            log.push('\n');
        }
        assert_eq!(parse(&log), parse(PULL));
    }

    #[test]
    fn an_open_session_is_read_again_after_a_restart() {
        let mut parser = parser();
        let (connect, rest) = PULL.split_once('\n').unwrap();
        parser.line(connect, 900, &mut Vec::new()).unwrap();
        assert_eq!(parser.needs_from(), None);
        let (request, rest) = rest.split_once('\n').unwrap();
        parser.line(request, 1_000, &mut Vec::new()).unwrap();
        assert_eq!(parser.needs_from(), Some(1_000));
        assert_eq!(parse_with(&mut parser, rest).unwrap().len(), 1);
        assert_eq!(parser.needs_from(), None);
    }

    #[test]
    fn sessions_of_two_processes_are_told_apart() {
        let mut log = String::new();
        for line in PULL.lines() {
            log.push_str(&format!("{line}\n{}\n", line.replace("[17]", "[18]").replace("300123", "300124")));
        }
        let bytes: Vec<u64> = parse(&log).unwrap().iter().map(|transfer| transfer.bytes).collect();
        assert_eq!(bytes, [300_123, 300_124]);
    }

    #[test]
    fn several_files_are_one_transfer_of_the_requested_path() {
        let line = "2026/11/28 20:15:02 [17] send dtn2 [192.0.2.7] data (ada) f 300000\n";
        let found = parse(&PULL.replace(line, &line.repeat(3))).unwrap();
        assert_eq!((found.len(), found[0].file.as_str()), (1, "data/f"));
    }

    #[test]
    fn a_failed_session_has_an_error_and_the_bytes_of_its_files() {
        let log = PULL.replace(
            "sent 300123 bytes  received 60 bytes  total size 300000",
            "rsync error: received SIGINT, SIGTERM, or SIGHUP (code 20) at io.c(1) [sender=3.2.7]",
        );
        let found = parse(&log).unwrap();
        assert_eq!(found[0].error, "received SIGINT, SIGTERM, or SIGHUP (code 20)");
        assert_eq!(found[0].bytes, 300_000);
    }

    #[test]
    fn files_that_a_child_process_receives_belong_to_the_session() {
        let log = "\
2026/11/28 20:15:00 [17] receiving file list
2026/11/28 20:15:02 [19] recv %h [%a]  (%u) a b 300000
2026/11/28 20:15:02 [17] sent 48 bytes  received 300123 bytes  total size 300000
2026/11/28 20:15:03 [23] recv %h [%a]  (%u) c 300000
";
        let mut parser = parser();
        let found = parse_with(&mut parser, log).unwrap();
        assert_eq!((found.len(), found[0].file.as_str(), found[0].bytes), (1, "a b", 300_123));
        assert_eq!((found[0].user.as_str(), found[0].remote.clone()), ("", None));
        assert_eq!(parser.needs_from(), None);
    }

    #[test]
    fn a_session_without_a_beginning_is_no_transfer() {
        let last = PULL.lines().last().unwrap();
        assert_eq!(parse(last), Ok(Vec::new()));
    }
}
