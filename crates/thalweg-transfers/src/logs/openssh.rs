//! Logs of OpenSSH: of sftp-server, and of `scp -v` and `ssh -v`.
//!
//! ## sftp-server
//! `Subsystem sftp /usr/lib/openssh/sftp-server -f AUTH -l INFO` (or `internal-sftp -f AUTH -l INFO`) logs through syslog:
//!
//! ```text
//! Nov 28 20:15:00 dtn1 sftp-server[17]: session opened for local user ada from [192.0.2.7]
//! Nov 28 20:15:00 dtn1 sftp-server[17]: open "/data/f" flags READ mode 0666
//! Nov 28 20:15:02 dtn1 sftp-server[17]: close "/data/f" bytes read 300000 written 0
//! Nov 28 20:15:02 dtn1 sftp-server[17]: session closed for local user ada from [192.0.2.7]
//! ```
//!
//! In a `ChrootDirectory` without `/dev/log`, sshd logs these lines as its own, and with ` [postauth]` at their end.
//!
//! Each file is a transfer, by `sftp`, and by `scp` from OpenSSH 9.0 on. Traditional times of syslog have whole seconds and no year;
//! times of ISO 8601 are better. The log has no ports and no local address.
//!
//! ## scp and ssh
//! `scp -v` and `ssh -v` write no times. Put them before the lines with `ts` of moreutils, or let `ssh -y -v` log through syslog:
//!
//! ```text
//! scp -v f dtn2: 2>&1 | ts '%Y-%m-%dT%H:%M:%.S%z' >> scp.log
//! ```
//!
//! ```text
//! 2026-11-28T20:15:00.000000+0000 Authenticated to dtn2 ([192.0.2.7]:22) using "publickey".
//! 2026-11-28T20:15:02.000000+0000 Transferred: sent 303204, received 3588 bytes, in 2.1 seconds
//! 2026-11-28T20:15:02.000000+0000 debug1: Exit status 0
//! ```
//!
//! A connection is a transfer. Its bytes are those of the SSH protocol in the direction that has more of them, so encryption and file
//! requests are included. The duration has tenths of seconds, without the login. The log has no user and no file. The transfers of one
//! file of `ts` must not overlap, because its lines name no process.
//!
//! Neither log has buffers and congestion control. Lines of other programs in the same syslog are ignored.

use jiff::tz::TimeZone;
use thalweg_api::TransferDirection;

use super::scanner::Scanner;
use super::sessions::Sessions;
use super::syslog::SyslogLine;
use super::{LineError, LogParser, LoggedTransfer, Peer, time};

/// Maximum number of files that a session keeps open for the parser. Further ones are ignored.
pub const MAX_OPEN_FILES: usize = 256;

/// Parser of logs of OpenSSH.
#[derive(Debug)]
pub struct Openssh {
    /// Name of the program in transfers; empty: `sftp` or `scp`.
    application: String,
    zone: TimeZone,
    now_us: i64,
    /// Sessions of sftp-server by process.
    servers: Sessions<u32, Server>,
    /// Connections of a client by process; 0 if the lines name none.
    clients: Sessions<u32, Client>,
}

/// A session of sftp-server.
#[derive(Debug, Default)]
struct Server {
    user: String,
    peer: Option<Peer>,
    files: Vec<OpenFile>,
    /// Whether the previous line opened a file, so that an error status belongs to it.
    just_opened: bool,
}

/// A file that sftp-server has open.
#[derive(Debug)]
struct OpenFile {
    name: String,
    start_us: i64,
    direction: TransferDirection,
    error: String,
}

/// A connection of `ssh`.
#[derive(Debug, Default)]
struct Client {
    peer: Option<Peer>,
    port: u16,
    /// Whether the log has lines of `-v`, and therefore the exit status.
    verbose: bool,
    ended: Option<Ended>,
}

/// The totals of a connection.
#[derive(Clone, Copy, Debug)]
struct Ended {
    sent: u64,
    received: u64,
    duration_us: i64,
    end_us: i64,
}

impl Openssh {
    /// Creates a parser. An empty application means `sftp` for sftp-server and `scp` for clients.
    pub fn new(application: String, zone: TimeZone) -> Openssh {
        Openssh { application, zone, now_us: 0, servers: Sessions::new(), clients: Sessions::new() }
    }

    fn application(&self, default: &str) -> String {
        match self.application.is_empty() {
            true => default.to_owned(),
            false => self.application.clone(),
        }
    }
}

impl LogParser for Openssh {
    fn line(&mut self, line: &str, offset: u64, found: &mut Vec<LoggedTransfer>) -> Result<(), LineError> {
        if line.is_empty() {
            return Ok(());
        }
        // A line that `ts` dated has no program: what comes after the time is the message.
        if let Some((time_us, message)) = dated(line, &self.zone)? {
            let time = Time { time_us, offset };
            return self.client_line(0, message, time, found);
        }
        let entry = match SyslogLine::parse(line, &self.zone, self.now_us) {
            Ok(entry) => entry,
            // Lines without a time matter only if they are what makes a transfer.
            Err(_) if is_undated_client_line(line) => return Ok(()),
            Err(error) => return Err(error),
        };
        let time = Time { time_us: entry.time_us, offset };
        match entry.program {
            "sftp-server" | "internal-sftp" => self.server_line(entry.pid, entry.message, time, found),
            "sshd" | "sshd-session" => match entry.message.strip_suffix(" [postauth]") {
                Some(message) if is_server_message(message) => {
                    self.server_line(entry.pid, message, time, found)
                }
                _ => Ok(()),
            },
            "ssh" | "scp" | "sftp" => self.client_line(entry.pid, entry.message, time, found),
            _ => Ok(()),
        }
    }

    fn needs_from(&self) -> Option<u64> {
        let both = [self.servers.needs_from(), self.clients.needs_from()];
        both.into_iter().flatten().min()
    }

    fn set_now(&mut self, now_us: i64) {
        self.now_us = now_us;
    }

    fn dropped_sessions(&self) -> u64 {
        self.servers.dropped() + self.clients.dropped()
    }
}

/// When and where a line is.
#[derive(Clone, Copy, Debug)]
struct Time {
    time_us: i64,
    offset: u64,
}

/// Whether a line of sshd is one of sftp-server.
fn is_server_message(message: &str) -> bool {
    const FIRST: [&str; 6] = [
        "session opened for local user ",
        "session closed for local user ",
        "open \"",
        "close \"",
        "forced close \"",
        "sent status ",
    ];
    FIRST.iter().any(|first| message.starts_with(first))
}

impl Openssh {
    fn server_line(
        &mut self,
        pid: u32,
        message: &str,
        time: Time,
        found: &mut Vec<LoggedTransfer>,
    ) -> Result<(), LineError> {
        if let Some(who) = message.strip_prefix("session opened for local user ") {
            let (user, peer) = who.rsplit_once(" from [").unwrap_or((who, ""));
            let peer = Peer::parse(peer.trim_end_matches(']'));
            let server = Server { user: user.to_owned(), peer, ..Server::default() };
            self.servers.open(pid, time.offset, time.time_us, server);
            return Ok(());
        }
        let application = self.application("sftp");
        if message.starts_with("session closed for local user ") {
            let files =
                self.servers.close(&pid).map(|mut server| (std::mem::take(&mut server.files), server));
            for (file, server) in
                files.iter().flat_map(|(files, server)| files.iter().map(move |file| (file, server)))
            {
                let file = file.ended("the session was closed");
                found.push(server.transfer(&application, &file, time.time_us, 0));
            }
            return Ok(());
        }
        // A session whose first line was lost still has transfers.
        let server = self.servers.active_or_open(pid, time.offset, time.time_us, Server::default);
        let just_opened = std::mem::replace(&mut server.just_opened, false);
        if let Some(rest) = message.strip_prefix("open \"") {
            server.open(rest, time.time_us)?;
        } else if let Some(status) = message.strip_prefix("sent status ") {
            found.extend(server.status(status, just_opened, &application, time.time_us));
        } else if let Some((forced, rest)) = close_line(message) {
            found.extend(server.close(rest, forced, &application, time.time_us)?);
        }
        Ok(())
    }

    fn client_line(
        &mut self,
        pid: u32,
        message: &str,
        time: Time,
        found: &mut Vec<LoggedTransfer>,
    ) -> Result<(), LineError> {
        if let Some(who) = message.strip_prefix("Authenticated to ") {
            let client = self.clients.active_or_open(pid, time.offset, time.time_us, Client::default);
            (client.peer, client.port) = authenticated(who);
            return Ok(());
        }
        if let Some(totals) = message.strip_prefix("Transferred: sent ") {
            let ended = Ended::parse(totals, time.time_us)?;
            let client = self.clients.active_or_open(pid, time.offset, time.time_us, Client::default);
            client.ended = Some(ended);
            return Ok(());
        }
        if message.starts_with("debug1: Connecting to ") {
            self.clients.open(pid, time.offset, time.time_us, Client { verbose: true, ..Client::default() });
            return Ok(());
        }
        let Some(client) = self.clients.active(&pid, time.time_us) else { return Ok(()) };
        let status = message.strip_prefix("debug1: Exit status ");
        let last = message.starts_with("Bytes per second: ") && !client.verbose;
        if client.ended.is_some() && (status.is_some() || last) {
            let application = self.application("scp");
            let client = self.clients.close(&pid);
            found.extend(client.and_then(|client| client.transfer(&application, status.unwrap_or("0"))));
        }
        Ok(())
    }
}

impl Server {
    /// Takes `/data/f" flags READ mode 0666`.
    fn open(&mut self, text: &str, time_us: i64) -> Result<(), LineError> {
        const EXPECTED: &str = "a file in quotes, and `flags`";
        let (name, flags) = text.rsplit_once("\" flags ").ok_or_else(|| LineError::new(EXPECTED, text))?;
        let flags = flags.split(' ').next().unwrap_or("");
        let writes = flags.split(',').any(|flag| flag == "WRITE" || flag == "APPEND");
        self.just_opened = true;
        if self.files.len() < MAX_OPEN_FILES {
            self.files.push(OpenFile {
                name: name.to_owned(),
                start_us: time_us,
                direction: match writes {
                    true => TransferDirection::Receive,
                    false => TransferDirection::Send,
                },
                error: String::new(),
            });
        }
        Ok(())
    }

    /// Takes a status other than OK and end of file. Directly after an `open` line, the file was not opened; otherwise it is an error
    /// of the file, if only one is open.
    fn status(
        &mut self,
        status: &str,
        just_opened: bool,
        application: &str,
        time_us: i64,
    ) -> Option<LoggedTransfer> {
        if just_opened {
            let file = self.files.pop()?.ended(status);
            return Some(self.transfer(application, &file, time_us, 0));
        }
        if let [file] = &mut self.files[..] {
            status.clone_into(&mut file.error);
        }
        None
    }

    /// Takes `/data/f" bytes read 300000 written 0`.
    fn close(
        &mut self,
        text: &str,
        forced: bool,
        application: &str,
        time_us: i64,
    ) -> Result<Option<LoggedTransfer>, LineError> {
        const EXPECTED: &str = "a file in quotes, and `bytes read N written N`";
        let error = || LineError::new(EXPECTED, text);
        let (name, bytes) = text.rsplit_once("\" bytes read ").ok_or_else(error)?;
        let (read, written) = bytes.split_once(" written ").ok_or_else(error)?;
        let read: u64 = read.parse().map_err(|_| error())?;
        let written: u64 = written.parse().map_err(|_| error())?;
        let Some(index) = self.files.iter().position(|file| file.name == name) else { return Ok(None) };
        let mut file = self.files.remove(index);
        if forced && file.error.is_empty() {
            "the session ended before the file was closed".clone_into(&mut file.error);
        }
        if read != written {
            file.direction = match read > written {
                true => TransferDirection::Send,
                false => TransferDirection::Receive,
            };
        }
        Ok(Some(self.transfer(application, &file, time_us, read.max(written))))
    }

    fn transfer(&self, application: &str, file: &OpenFile, end_us: i64, bytes: u64) -> LoggedTransfer {
        LoggedTransfer {
            application: application.to_owned(),
            direction: file.direction,
            user: self.user.clone(),
            file: file.name.clone(),
            remote: self.peer.clone(),
            start_us: file.start_us.min(end_us),
            end_us,
            bytes,
            streams: 1,
            error: file.error.clone(),
            ..LoggedTransfer::default()
        }
    }
}

impl OpenFile {
    fn ended(&self, error: &str) -> OpenFile {
        OpenFile {
            name: self.name.clone(),
            start_us: self.start_us,
            direction: self.direction,
            error: error.to_owned(),
        }
    }
}

impl Client {
    fn transfer(self, application: &str, status: &str) -> Option<LoggedTransfer> {
        let ended = self.ended?;
        Some(LoggedTransfer {
            application: application.to_owned(),
            direction: match ended.sent >= ended.received {
                true => TransferDirection::Send,
                false => TransferDirection::Receive,
            },
            remote: self.peer,
            remote_port: self.port,
            start_us: ended.end_us.saturating_sub(ended.duration_us),
            end_us: ended.end_us,
            bytes: ended.sent.max(ended.received),
            streams: 1,
            error: match status {
                "0" => String::new(),
                status => format!("exit status {status}"),
            },
            ..LoggedTransfer::default()
        })
    }
}

impl Ended {
    /// Takes `303204, received 3588 bytes, in 2.1 seconds`.
    fn parse(text: &str, end_us: i64) -> Result<Ended, LineError> {
        const EXPECTED: &str = "`sent N, received N bytes, in N seconds`";
        let error = || LineError::new(EXPECTED, text);
        let mut rest = Scanner::new(text);
        let sent = rest.until(", received ", EXPECTED)?.parse().map_err(|_| error())?;
        let received = rest.until(" bytes, in ", EXPECTED)?.parse().map_err(|_| error())?;
        let duration_us = time::seconds_us(rest.until(" seconds", EXPECTED)?).ok_or_else(error)?;
        Ok(Ended { sent, received, duration_us, end_us })
    }
}

/// Returns the rest of `close "..."` and of `forced close "..."`, and whether it was forced.
fn close_line(message: &str) -> Option<(bool, &str)> {
    match message.strip_prefix("close \"") {
        Some(rest) => Some((false, rest)),
        None => message.strip_prefix("forced close \"").map(|rest| (true, rest)),
    }
}

/// Returns the peer and its port of `dtn2 ([192.0.2.7]:22) using "publickey".`.
fn authenticated(text: &str) -> (Option<Peer>, u16) {
    let address = text.split_once(" ([").and_then(|(_, rest)| rest.split_once("]:"));
    match address {
        Some((address, rest)) => {
            let port = rest.split(')').next().and_then(|port| port.parse().ok());
            (Peer::parse(address), port.unwrap_or(0))
        }
        None => (Peer::parse(text.split(' ').next().unwrap_or("")), 0),
    }
}

/// Returns the time and the message of a line that `ts` dated; `None` for a line of syslog.
fn dated<'a>(line: &'a str, zone: &TimeZone) -> Result<Option<(i64, &'a str)>, LineError> {
    if !line.starts_with(|first: char| first.is_ascii_digit()) {
        return Ok(None);
    }
    let mut text = Scanner::new(line);
    let time_us = time::iso8601(&mut text, zone)?;
    text.literal(" ", "a space after the time")?;
    let message = text.rest();
    // A line of syslog has a host and then a program with `:`.
    let program = message.split(' ').nth(1).unwrap_or("");
    let of_syslog = ["sftp-server", "internal-sftp"].iter().any(|name| program.starts_with(name))
        || program.strip_suffix("]:").is_some_and(|tag| tag.contains('['));
    Ok(if of_syslog { None } else { Some((time_us, message)) })
}

/// Returns whether an undated line of a client describes no transfer.
fn is_undated_client_line(line: &str) -> bool {
    [
        "debug",
        "OpenSSH_",
        "Executing: ",
        "Authenticated to ",
        "Bytes per second: ",
        "scp: ",
        "Sink: ",
        "Sending ",
    ]
    .iter()
    .any(|prefix| line.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SFTP: &str = "\
Nov 28 20:15:00 dtn1 sftp-server[17]: session opened for local user ada from [192.0.2.7]
Nov 28 20:15:00 dtn1 sftp-server[17]: opendir \"/data\"
Nov 28 20:15:00 dtn1 sftp-server[17]: open \"/data/a \\\"b\\\"\" flags READ mode 0666
Nov 28 20:15:02 dtn1 sftp-server[17]: close \"/data/a \\\"b\\\"\" bytes read 300000 written 0
Nov 28 20:15:02 dtn1 sftp-server[17]: session closed for local user ada from [192.0.2.7]
";

    const SCP: &str = "\
2026-11-28T20:15:00.000000+0000 debug1: Connecting to dtn2 [192.0.2.7] port 22.
2026-11-28T20:15:00.200000+0000 Authenticated to dtn2 ([192.0.2.7]:22) using \"publickey\".
2026-11-28T20:15:02.300000+0000 Transferred: sent 303204, received 3588 bytes, in 2.1 seconds
2026-11-28T20:15:02.300000+0000 Bytes per second: sent 144382.8, received 1708.5
2026-11-28T20:15:02.300000+0000 debug1: Exit status 0
";

    fn parse(log: &str) -> Result<Vec<LoggedTransfer>, LineError> {
        let mut parser = Openssh::new(String::new(), TimeZone::UTC);
        parser.set_now(1_795_900_000_000_000);
        let mut found = Vec::new();
        for (number, line) in log.lines().enumerate() {
            parser.line(line, number as u64 * 100, &mut found)?;
        }
        Ok(found)
    }

    #[test]
    fn a_file_of_sftp_server_is_a_transfer() {
        let expected = LoggedTransfer {
            application: "sftp".to_owned(),
            direction: TransferDirection::Send,
            user: "ada".to_owned(),
            file: "/data/a \\\"b\\\"".to_owned(),
            remote: Peer::parse("192.0.2.7"),
            start_us: 1_795_896_900_000_000,
            end_us: 1_795_896_902_000_000,
            bytes: 300_000,
            streams: 1,
            ..LoggedTransfer::default()
        };
        assert_eq!(parse(SFTP), Ok(vec![expected]));
        let iso = SFTP.replace("Nov 28 20:15:", "2026-11-28T20:15:").replace(" dtn1", ".000000+00:00 dtn1");
        assert_eq!(parse(&iso), parse(SFTP));
        assert_eq!(parse(&SFTP.replace("sftp-server", "internal-sftp")), parse(SFTP));
    }

    #[test]
    fn a_forced_close_is_an_error() {
        let log =
            SFTP.replace("]: close", "]: forced close").replace("read 300000 written 0", "read 0 written 9");
        let found = parse(&log).unwrap();
        assert_eq!(found[0].error, "the session ended before the file was closed");
        assert_eq!((found[0].direction, found[0].bytes), (TransferDirection::Receive, 9));
    }

    #[test]
    fn a_file_that_was_not_opened_is_a_failed_transfer() {
        let log = SFTP
            .replace("close \"/data/a \\\"b\\\"\" bytes read 300000 written 0", "sent status No such file");
        let found = parse(&log).unwrap();
        assert_eq!((found.len(), found[0].error.as_str(), found[0].bytes), (1, "No such file", 0));
    }

    #[test]
    fn sshd_may_log_what_its_internal_server_does() {
        for program in ["sshd", "sshd-session"] {
            let log: String = SFTP
                .replace("sftp-server[", &format!("{program}["))
                .lines()
                .map(|line| format!("{line} [postauth]\n"))
                .collect();
            assert_eq!(parse(&log), parse(SFTP));
            let other = "Nov 28 20:15:00 dtn1 sshd[16]: syslogin_perform_logout: logout() returned an error [postauth]\n";
            assert_eq!(parse(&log.replace("[postauth]", "[preauth]")), Ok(Vec::new()));
            assert_eq!(parse(other), Ok(Vec::new()));
        }
    }

    #[test]
    fn a_session_is_needed_until_it_is_closed() {
        let mut parser = Openssh::new(String::new(), TimeZone::UTC);
        parser.set_now(1_795_900_000_000_000);
        for (line, needed) in SFTP.lines().zip([Some(0), Some(0), Some(0), Some(0), None]) {
            parser.line(line, 0, &mut Vec::new()).unwrap();
            assert_eq!(parser.needs_from(), needed, "{line}");
        }
    }

    #[test]
    fn a_connection_of_scp_is_a_transfer() {
        let expected = LoggedTransfer {
            application: "scp".to_owned(),
            direction: TransferDirection::Send,
            remote: Peer::parse("192.0.2.7"),
            remote_port: 22,
            start_us: 1_795_896_900_200_000,
            end_us: 1_795_896_902_300_000,
            bytes: 303_204,
            streams: 1,
            ..LoggedTransfer::default()
        };
        assert_eq!(parse(SCP), Ok(vec![expected]));
    }

    #[test]
    fn the_exit_status_of_scp_is_an_error() {
        assert_eq!(parse(&SCP.replace("status 0", "status 1")).unwrap()[0].error, "exit status 1");
    }

    #[test]
    fn without_debug_lines_the_totals_end_a_connection() {
        let log: String =
            SCP.lines().filter(|line| !line.contains("debug1")).map(|line| format!("{line}\n")).collect();
        assert_eq!(parse(&log), parse(SCP));
    }

    #[test]
    fn an_undated_transfer_is_refused() {
        let undated: String = SCP.lines().map(|line| format!("{}\n", &line[32..])).collect();
        let error = parse(&undated).unwrap_err();
        assert_eq!(error.found, "Transferred:");
    }

    #[test]
    fn other_programs_are_ignored() {
        let log =
            "Nov 28 20:15:00 dtn1 sshd[16]: Accepted publickey for ada from 192.0.2.7 port 40000 ssh2\n";
        assert_eq!(parse(log), Ok(Vec::new()));
    }
}
