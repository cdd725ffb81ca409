//! Log of an XRootD server with `xrootd.trace fs fsio login`.
//!
//! ```text
//! 261128 20:15:00 17 XrootdXeq: ada.4711:25@[::ffff:192.0.2.7] pub IPv4 login
//! 261128 20:15:00 17 ada.4711:25@[::ffff:192.0.2.7] Xrootd_Protocol: open rt /data/f
//! 261128 20:15:00 17 ada.4711:25@[::ffff:192.0.2.7] Xrootd_Protocol: 0 pgread 300000@0 fn=/data/f
//! 261128 20:15:02 17 ada.4711:25@[::ffff:192.0.2.7] Xrootd_Protocol:  fh=0 close rc=0
//! 261128 20:15:02 17 XrootdXeq: ada.4711:25@[::ffff:192.0.2.7] disc 0:00:02
//! ```
//!
//! Without `fsio` the log has no bytes: the transfers have 0. A file that was opened is a transfer, with the bytes of the reads or the
//! writes that the client requested; the checksums of `pgwrite`, four bytes for a page, are subtracted. A request counts in full, also if
//! the file is shorter or if the connection ended meanwhile: the bytes of a failed transfer are an upper bound.
//!
//! The server logs a file handle from the first read on, but not when it opens the file. It gives the lowest free handle of the
//! connection; so does the parser.
//!
//! Times have whole seconds. Streams are the paths of the connection that requests used, of those that `xrdcp -S` opened. The peer is the
//! name or the address that the server looked up. The user is what the client claims, unless the server authenticated it. The log has no
//! ports, no local address, no buffers and no congestion control.

use jiff::tz::TimeZone;
use thalweg_api::TransferDirection;

use super::scanner::Scanner;
use super::sessions::Sessions;
use super::{LineError, LogParser, LoggedTransfer, Peer, time};

/// Bytes of a page in `pgwrite`, and of its checksum.
const PAGE_BYTES: u64 = 4_096;
const CHECKSUM_BYTES: u64 = 4;

/// Maximum number of files that a connection keeps open for the parser. Further ones are ignored.
pub const MAX_OPEN_FILES: usize = 1_024;

/// Parser of the log of XRootD.
#[derive(Debug)]
pub struct Xrootd {
    application: String,
    zone: TimeZone,
    /// By the name of the connection, such as `ada.4711:25@dtn2`.
    connections: Sessions<String, Connection>,
}

/// A connection of a client.
#[derive(Debug, Default)]
struct Connection {
    /// User that the client logged in as; empty if the server did not authenticate.
    user: String,
    files: Vec<OpenFile>,
}

/// A file that a client has open.
#[derive(Debug)]
struct OpenFile {
    handle: u32,
    path: String,
    start_us: i64,
    writes: bool,
    read_bytes: u64,
    written_bytes: u64,
    /// Bit mask of the paths of the connection that were used.
    paths: u64,
}

impl Xrootd {
    /// Creates a parser for transfers of this application.
    pub fn new(application: String, zone: TimeZone) -> Xrootd {
        Xrootd { application, zone, connections: Sessions::new() }
    }
}

impl LogParser for Xrootd {
    fn line(&mut self, line: &str, offset: u64, found: &mut Vec<LoggedTransfer>) -> Result<(), LineError> {
        // Lines of the configuration at the start of the server have no time.
        if !line.starts_with(|first: char| first.is_ascii_digit()) {
            return Ok(());
        }
        const THREAD: &str = "a time and the number of a thread";
        let mut text = Scanner::new(line);
        let time_us = time::xrootd(&mut text, &self.zone)?;
        text.literal(" ", THREAD)?;
        text.digits(1, 9, THREAD)?;
        text.skip(" ");
        let Some((component, connection, message)) = split(text.rest()) else { return Ok(()) };
        match component {
            "XrootdXeq" => self.connection_line(connection, message, Time { time_us, offset }, found),
            "Xrootd_Protocol" => self.file_line(connection, message, Time { time_us, offset }, found)?,
            component => self.error_line(component, connection, message, time_us, found),
        }
        Ok(())
    }

    fn needs_from(&self) -> Option<u64> {
        self.connections.needs_from()
    }

    fn dropped_sessions(&self) -> u64 {
        self.connections.dropped()
    }
}

/// When and where a line is.
#[derive(Clone, Copy, Debug)]
struct Time {
    time_us: i64,
    offset: u64,
}

/// Splits `COMPONENT: CONNECTION MESSAGE` or `CONNECTION COMPONENT: MESSAGE`. `None` for lines that belong to no connection.
fn split(text: &str) -> Option<(&str, &str, &str)> {
    let (first, rest) = text.split_once(' ')?;
    let (second, message) = rest.split_once(' ').unwrap_or((rest, ""));
    match (first.strip_suffix(':'), second.strip_suffix(':')) {
        (Some(component), _) if second.contains('@') => Some((component, second, message)),
        (None, Some(component)) if first.contains('@') => Some((component, first, message)),
        _ => None,
    }
}

/// Skips the identifier of a request, four hexadecimal digits, which some versions write.
fn without_request(message: &str) -> &str {
    match message.split_once(' ') {
        Some((first, rest)) if first.len() == 4 && first.bytes().all(|byte| byte.is_ascii_hexdigit()) => rest,
        _ => message,
    }
}

impl Xrootd {
    /// Handles a login and a disconnect.
    fn connection_line(&mut self, name: &str, message: &str, time: Time, found: &mut Vec<LoggedTransfer>) {
        if message.contains(" login") {
            let user = message.split_once(" login as ").map_or("", |(_, user)| user);
            let connection = Connection { user: user.to_owned(), ..Connection::default() };
            self.connections.open(name.to_owned(), time.offset, time.time_us, connection);
        } else if message.starts_with("disc ") {
            let Some(mut connection) = self.connections.close(&name.to_owned()) else { return };
            for file in std::mem::take(&mut connection.files) {
                let error = "the connection ended before the file was closed";
                found.push(connection.transfer(&self.application, name, file, time.time_us, error));
            }
        }
    }

    /// Handles what a client does with a file.
    fn file_line(
        &mut self,
        name: &str,
        message: &str,
        time: Time,
        found: &mut Vec<LoggedTransfer>,
    ) -> Result<(), LineError> {
        let message = without_request(message.trim_start()).trim_start();
        if let Some(open) = message.strip_prefix("open ") {
            let (flags, path) =
                open.split_once(' ').ok_or_else(|| LineError::new("flags and a path after `open`", open))?;
            let connection = || Connection::default();
            let connection =
                self.connections.active_or_open(name.to_owned(), time.offset, time.time_us, connection);
            connection.open(flags, path, time.time_us);
            return Ok(());
        }
        let Some(connection) = self.connections.active(&name.to_owned(), time.time_us) else { return Ok(()) };
        if let Some((handle, code)) = message.split_once(" close rc=") {
            let handle =
                handle.strip_prefix("fh=").ok_or_else(|| LineError::new("`fh=N close rc=N`", message))?;
            if let Some(file) = connection.close(handle) {
                let error = match code {
                    "0" => String::new(),
                    code => format!("close failed with {code}"),
                };
                found.push(connection.transfer(&self.application, name, file, time.time_us, &error));
            }
            return Ok(());
        }
        connection.transferred(message);
        Ok(())
    }

    /// Handles a message of an error, such as that a file could not be opened.
    fn error_line(
        &mut self,
        component: &str,
        name: &str,
        message: &str,
        time_us: i64,
        found: &mut Vec<LoggedTransfer>,
    ) {
        if !message.starts_with("Unable to open ") || !component.ends_with("_open") {
            return;
        }
        let Some(connection) = self.connections.active(&name.to_owned(), time_us) else { return };
        let Some((path, reason)) = message["Unable to open ".len()..].split_once("; ") else { return };
        let last = connection.files.iter().rposition(|file| file.path == path.trim());
        if let Some(index) = last {
            let file = connection.files.remove(index);
            found.push(connection.transfer(&self.application, name, file, time_us, reason));
        }
    }
}

impl Connection {
    fn open(&mut self, flags: &str, path: &str, time_us: i64) {
        if self.files.len() >= MAX_OPEN_FILES {
            return;
        }
        let is_free = |handle: &u32| self.files.iter().all(|file| file.handle != *handle);
        let handle = (0..).find(is_free).unwrap_or(u32::MAX);
        self.files.push(OpenFile {
            handle,
            // The opaque information may hold a token.
            path: path.split('?').next().unwrap_or(path).to_owned(),
            start_us: time_us,
            writes: flags.contains(['w', 'u', 'c', 'd', 'n']),
            read_bytes: 0,
            written_bytes: 0,
            paths: 0,
        });
    }

    fn close(&mut self, handle: &str) -> Option<OpenFile> {
        let handle: u32 = handle.parse().ok()?;
        let index = self.files.iter().position(|file| file.handle == handle)?;
        Some(self.files.remove(index))
    }

    /// Counts `0 fh=0 read 8192@0`, `0 fh=0 write 8192@0` and `0 pgwrite 8200@0 fn=/data/f`; other messages are ignored.
    fn transferred(&mut self, message: &str) {
        let mut words = message.split(' ').peekable();
        let path_number = words.next_if(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
        let path_number: u32 = path_number.and_then(|number| number.parse().ok()).unwrap_or(0);
        let (mut handle, mut file_name, mut is_read, mut bytes) = (None, None, None, None);
        let mut has_checksums = false;
        for word in words {
            if let Some(number) = word.strip_prefix("fh=") {
                handle = number.parse::<u32>().ok();
            } else if let Some(name) = word.strip_prefix("fn=") {
                file_name = Some(name);
            } else if let Some((length, _)) = word.split_once('@') {
                bytes = length.parse::<u64>().ok();
            } else if matches!(word, "read" | "readV" | "pgread") {
                is_read = Some(true);
            } else if matches!(word, "write" | "writev" | "writeV" | "pgwrite") {
                is_read = Some(false);
                has_checksums = word == "pgwrite";
            }
        }
        let (Some(is_read), Some(bytes)) = (is_read, bytes) else { return };
        let bytes = match has_checksums {
            true => {
                bytes
                    - CHECKSUM_BYTES * bytes.div_ceil(PAGE_BYTES + CHECKSUM_BYTES).min(bytes / CHECKSUM_BYTES)
            }
            false => bytes,
        };
        let wanted = |file: &&mut OpenFile| match (handle, file_name) {
            (Some(handle), _) => file.handle == handle,
            (None, Some(name)) => file.path == name,
            (None, None) => false,
        };
        let Some(file) = self.files.iter_mut().find(wanted) else { return };
        file.paths |= 1_u64.checked_shl(path_number).unwrap_or(0);
        match is_read {
            true => file.read_bytes = file.read_bytes.saturating_add(bytes),
            false => file.written_bytes = file.written_bytes.saturating_add(bytes),
        }
    }

    fn transfer(
        &self,
        application: &str,
        name: &str,
        file: OpenFile,
        end_us: i64,
        error: &str,
    ) -> LoggedTransfer {
        let (client, host) = name.split_once('@').unwrap_or((name, ""));
        let user = match self.user.is_empty() {
            true => client.split('.').next().unwrap_or(""),
            false => &self.user,
        };
        let receives = match file.read_bytes == file.written_bytes {
            true => file.writes,
            false => file.written_bytes > file.read_bytes,
        };
        LoggedTransfer {
            application: application.to_owned(),
            direction: if receives { TransferDirection::Receive } else { TransferDirection::Send },
            user: user.to_owned(),
            file: file.path,
            remote: Peer::parse(host.trim_start_matches('[').trim_end_matches(']')),
            start_us: file.start_us.min(end_us),
            end_us,
            bytes: file.read_bytes.max(file.written_bytes),
            streams: u16::try_from(file.paths.count_ones().max(1)).unwrap_or(u16::MAX),
            error: error.to_owned(),
            ..LoggedTransfer::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
261128 20:15:00 17 XrootdXeq: ada.4711:25@[::ffff:192.0.2.7] pub IPv4 login
261128 20:15:00 17 ada.4711:25@[::ffff:192.0.2.7] Xrootd_Protocol: open rt /data/f?authz=x
261128 20:15:00 17 ada.4711:25@[::ffff:192.0.2.7] Xrootd_Protocol: 0 fh=0 read 200000@0
261128 20:15:01 17 ada.4711:25@[::ffff:192.0.2.7] Xrootd_Protocol: 1 pgread 100000@200000 fn=/data/f
261128 20:15:02 17 ada.4711:25@[::ffff:192.0.2.7] Xrootd_Protocol:  fh=0 close rc=0
261128 20:15:02 17 XrootdXeq: ada.4711:25@[::ffff:192.0.2.7] disc 0:00:02
";

    fn parse(log: &str) -> Result<Vec<LoggedTransfer>, LineError> {
        let mut parser = Xrootd::new("xrootd".to_owned(), TimeZone::UTC);
        let mut found = Vec::new();
        for (number, line) in log.lines().enumerate() {
            parser.line(line, number as u64, &mut found)?;
        }
        Ok(found)
    }

    #[test]
    fn an_opened_file_is_a_transfer() {
        let expected = LoggedTransfer {
            application: "xrootd".to_owned(),
            direction: TransferDirection::Send,
            user: "ada".to_owned(),
            file: "/data/f".to_owned(),
            remote: Peer::parse("192.0.2.7"),
            start_us: 1_795_896_900_000_000,
            end_us: 1_795_896_902_000_000,
            bytes: 300_000,
            streams: 2,
            ..LoggedTransfer::default()
        };
        assert_eq!(parse(LOG), Ok(vec![expected]));
    }

    #[test]
    fn the_user_is_the_one_that_was_authenticated() {
        assert_eq!(parse(&LOG.replace("IPv4 login", "IPv4 login as grace")).unwrap()[0].user, "grace");
    }

    #[test]
    fn an_interrupted_file_is_an_error() {
        let log: String =
            LOG.lines().filter(|line| !line.contains("close")).map(|line| format!("{line}\n")).collect();
        let found = parse(&log).unwrap();
        assert_eq!(found[0].error, "the connection ended before the file was closed");
        assert_eq!(found[0].bytes, 300_000);
    }

    #[test]
    fn the_lowest_free_handle_is_given_to_a_file() {
        let line =
            |message: &str| format!("261128 20:15:00 17 ada.4711:25@dtn2 Xrootd_Protocol: {message}\n");
        let log: String = [
            "open rt /a",
            "open rt /b",
            "0 fh=1 read 2@0",
            "0 fh=0 read 1@0",
            "fh=0 close rc=0",
            "open rt /c",
            "0 fh=0 read 3@0",
            "fh=0 close rc=0",
            "fh=1 close rc=0",
        ]
        .map(line)
        .concat();
        let found: Vec<(String, u64)> =
            parse(&log).unwrap().into_iter().map(|transfer| (transfer.file, transfer.bytes)).collect();
        assert_eq!(found, [("/a".to_owned(), 1), ("/c".to_owned(), 3), ("/b".to_owned(), 2)]);
    }

    #[test]
    fn checksums_are_no_payload() {
        let log = LOG
            .replace("open rt", "open udmt")
            .replace("0 fh=0 read 200000@0", "0 pgwrite 1000980@0 fn=/data/f");
        let found = parse(&log).unwrap();
        assert_eq!((found[0].direction, found[0].bytes), (TransferDirection::Receive, 1_000_000));
    }

    #[test]
    fn a_request_may_have_an_identifier() {
        assert_eq!(parse(&LOG.replace("Xrootd_Protocol: ", "Xrootd_Protocol: 0100 ")), parse(LOG));
    }

    #[test]
    fn a_file_that_was_not_opened_is_a_failed_transfer() {
        let open = LOG.lines().take(2).collect::<Vec<&str>>().join("\n");
        let log = format!(
            "{open}\n261128 20:15:00 17 ofs_open: ada.4711:25@[::ffff:192.0.2.7] Unable to open /data/f; no such file\n"
        );
        let found = parse(&log).unwrap();
        assert_eq!((found.len(), found[0].error.as_str(), found[0].bytes), (1, "no such file", 0));
    }

    #[test]
    fn lines_of_the_configuration_are_ignored() {
        assert_eq!(
            parse("++++++ xrootd anon@dtn1 initialization started.\n=====> all.export /data\n"),
            Ok(Vec::new())
        );
        assert_eq!(parse("261128 20:15:00 17 Starting on Linux 6.1.0\n"), Ok(Vec::new()));
    }
}
