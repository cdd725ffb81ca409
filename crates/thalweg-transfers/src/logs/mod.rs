//! Parsers of logs of transfer programs.
//!
//! A parser gets the lines of a log one by one, and returns transfers. Some programs log a transfer in several lines; the parser keeps
//! what it needs of the earlier ones, and says from which offset a later run must read again.
//!
//! | file | log |
//! |---|---|
//! | [`gridftp`] | transfer log of globus-gridftp-server (`-log-transfer`) |
//! | [`xrootd`] | log of XRootD (`xrootd.trace fs fsio`) |
//! | [`rsync`] | log of rsync (`--log-file`, rsyncd.conf `log file`) |
//! | [`xferlog`] | xferlog of wu-ftpd, as vsftpd and ProFTPD write it |
//! | [`vsftpd`] | vsftpd's own log |
//! | [`nginx`] | access log of nginx, of a configured `log_format` |
//! | [`rclone`] | JSON log of rclone (`--use-json-log`) |
//! | [`openssh`] | sftp-server (`-l INFO`), and `scp -v` |
//! | [`iperf3`] | JSON of iperf3 (`--json`, `--logfile`) |
//! | [`mapping`] | CSV or JSON lines with configured columns |
//! | [`time`] | times as logs write them |
//! | `scanner`, `sessions`, `syslog` | what parsers share |

pub mod gridftp;
pub mod iperf3;
pub mod mapping;
pub mod nginx;
pub mod openssh;
pub mod rclone;
pub mod rsync;
mod scanner;
mod sessions;
mod syslog;
pub mod time;
pub mod vsftpd;
pub mod xferlog;
pub mod xrootd;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod robustness;

use std::net::IpAddr;
use std::str::FromStr;

use serde::Deserialize;
use thalweg_api::TransferDirection;
use thiserror::Error;

pub use sessions::{MAX_SESSIONS, SESSION_TIMEOUT_US};

/// A transfer, as a log describes it. What the log does not say is empty, 0 or `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedTransfer {
    /// Program.
    pub application: String,
    /// What this host did.
    pub direction: TransferDirection,
    /// User.
    pub user: String,
    /// File.
    pub file: String,
    /// Address of this host.
    pub local: Option<IpAddr>,
    /// Address or name of the peer.
    pub remote: Option<Peer>,
    /// Port of this host.
    pub local_port: u16,
    /// Port of the peer.
    pub remote_port: u16,
    /// Start in microseconds since 1970. Equal to the end if the log has no duration.
    pub start_us: i64,
    /// End in microseconds since 1970.
    pub end_us: i64,
    /// Payload bytes.
    pub bytes: u64,
    /// Parallel TCP connections.
    pub streams: u16,
    /// TCP send buffer in bytes.
    pub send_buffer_bytes: u64,
    /// TCP receive buffer in bytes.
    pub receive_buffer_bytes: u64,
    /// Congestion control.
    pub congestion_control: String,
    /// Why the transfer failed; empty if it succeeded.
    pub error: String,
}

/// Largest size of a transfer that is no error of its log, in bytes: 9 PB.
const MAX_BYTES: u64 = 1 << 53;

/// Longest duration that is no error of a log, in microseconds: a year.
const MAX_DURATION_US: i64 = 366 * 24 * 3_600_000_000;

/// Times that are no errors of a log, in microseconds since 1970: up to the year 2100.
const TIMES_US: std::ops::Range<i64> = 0..4_102_444_800_000_000;

impl LoggedTransfer {
    /// Checks that a transfer can have happened.
    ///
    /// # Errors
    /// If its times, its duration or its size are impossible.
    pub fn check(&self) -> Result<(), LineError> {
        let wrong = |expected, found: String| Err(LineError::new(expected, &found));
        if !TIMES_US.contains(&self.start_us) || !TIMES_US.contains(&self.end_us) {
            return wrong("times from 1970 to 2100", format!("{} to {} us", self.start_us, self.end_us));
        }
        match self.end_us - self.start_us {
            ..0 => wrong("an end after the start", format!("{} to {} us", self.start_us, self.end_us)),
            duration if duration > MAX_DURATION_US => {
                wrong("a duration of at most a year", format!("{} s", duration / 1_000_000))
            }
            _ if self.bytes > MAX_BYTES => wrong("a size of at most 2^53 bytes", self.bytes.to_string()),
            _ => Ok(()),
        }
    }
}

/// The peer of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Its address.
    Address(IpAddr),
    /// Its name.
    Name(String),
}

impl Peer {
    /// Parses an address or a name. An unspecified address, an empty text and `-` are unknown peers; an IPv4 address in IPv6 notation
    /// is an IPv4 address.
    pub fn parse(text: &str) -> Option<Peer> {
        match address(text) {
            Some(address) => Some(Peer::Address(address)),
            None if text.parse::<IpAddr>().is_ok() || text.is_empty() || text == "-" => None,
            None => Some(Peer::Name(text.to_owned())),
        }
    }
}

/// Why a line is not understood. Lines that belong to the format but describe no transfer are no error.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("expected {expected}, found {found:?}")]
pub struct LineError {
    /// What the format has here.
    pub expected: &'static str,
    /// The text, shortened to at most 64 characters.
    pub found: String,
}

/// A parser of one log.
pub trait LogParser: Send {
    /// Parses a line without its line feed, which begins at this offset of the log. Appends transfers that have ended.
    ///
    /// # Errors
    /// If the line is not of the format.
    fn line(&mut self, line: &str, offset: u64, found: &mut Vec<LoggedTransfer>) -> Result<(), LineError>;

    /// Returns the offset of the earliest line that the parser still needs; `None` if it needs none.
    fn needs_from(&self) -> Option<u64> {
        None
    }

    /// Sets the present time, in microseconds since 1970. Logs that write no year need it before their first line.
    fn set_now(&mut self, _now_us: i64) {}

    /// Gets the first line of a file before all others, also when reading begins in the middle of the file. Returns whether it is a
    /// header and not a line of the log.
    fn header(&mut self, _line: &str) -> bool {
        false
    }

    /// Returns the number of sessions dropped because too many were open, or because their last line is missing.
    fn dropped_sessions(&self) -> u64 {
        0
    }
}

impl LineError {
    /// Creates an error with a shortened text.
    pub fn new(expected: &'static str, found: &str) -> LineError {
        LineError { expected, found: found.chars().take(64).collect() }
    }
}

/// Formats of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Transfer log of globus-gridftp-server.
    Gridftp,
    /// Log of XRootD.
    Xrootd,
    /// Log of rsync.
    Rsync,
    /// xferlog of wu-ftpd, vsftpd and ProFTPD.
    Xferlog,
    /// vsftpd's own log.
    Vsftpd,
    /// Access log of nginx.
    Nginx,
    /// JSON log of rclone.
    Rclone,
    /// sftp-server, `scp -v`.
    Openssh,
    /// JSON of iperf3.
    Iperf3,
    /// CSV or JSON lines with configured columns.
    Mapping,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 10] = [
        Format::Gridftp,
        Format::Xrootd,
        Format::Rsync,
        Format::Xferlog,
        Format::Vsftpd,
        Format::Nginx,
        Format::Rclone,
        Format::Openssh,
        Format::Iperf3,
        Format::Mapping,
    ];

    /// Returns the name of the format in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Format::Gridftp => "gridftp",
            Format::Xrootd => "xrootd",
            Format::Rsync => "rsync",
            Format::Xferlog => "xferlog",
            Format::Vsftpd => "vsftpd",
            Format::Nginx => "nginx",
            Format::Rclone => "rclone",
            Format::Openssh => "openssh",
            Format::Iperf3 => "iperf3",
            Format::Mapping => "mapping",
        }
    }
}

impl FromStr for Format {
    type Err = ParserError;

    fn from_str(name: &str) -> Result<Format, ParserError> {
        let format = Format::ALL.into_iter().find(|format| format.name() == name);
        format.ok_or_else(|| ParserError::UnknownFormat { name: name.to_owned() })
    }
}

/// Options of a parser.
#[derive(Clone, Debug, Default)]
pub struct ParserOptions {
    /// Time zone of times that the log writes without one: a name of the time zone database. Empty: the host's.
    pub time_zone: String,
    /// Name of the program in transfers. Empty: the one that belongs to the format.
    pub application: String,
    /// For nginx: the `log_format`. Empty: [`nginx::DEFAULT_LOG_FORMAT`].
    pub log_format: String,
    /// For the mapping.
    pub mapping: Option<mapping::Mapping>,
}

/// Why options of a parser are refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParserError {
    /// There is no such format.
    #[error("unknown format {name:?}: expected one of {}", Format::ALL.map(Format::name).join(", "))]
    UnknownFormat {
        /// The name.
        name: String,
    },
    /// The time zone is unknown.
    #[error(transparent)]
    TimeZone(#[from] time::TimeZoneError),
    /// The option belongs to another format.
    #[error("`{option}` belongs to format {belongs_to}, not to {}", format.name())]
    OtherFormat {
        /// The option.
        option: &'static str,
        /// The format that has it.
        belongs_to: &'static str,
        /// The configured format.
        format: Format,
    },
    /// The `log_format` of nginx is not usable.
    #[error("invalid log_format: {0}")]
    LogFormat(String),
    /// The mapping is missing, or not usable.
    #[error("invalid mapping: {0}")]
    Mapping(String),
}

/// Creates a parser.
///
/// # Errors
/// If an option is not usable, or belongs to another format.
pub fn parser(format: Format, options: &ParserOptions) -> Result<Box<dyn LogParser>, ParserError> {
    let other = |option, belongs_to| Err(ParserError::OtherFormat { option, belongs_to, format });
    if !options.log_format.is_empty() && format != Format::Nginx {
        return other("log_format", "nginx");
    }
    if options.mapping.is_some() && format != Format::Mapping {
        return other("mapping", "mapping");
    }
    let zone = time::time_zone(&options.time_zone)?;
    let application = |default: &str| match options.application.is_empty() {
        true => default.to_owned(),
        false => options.application.clone(),
    };
    Ok(match format {
        Format::Gridftp => Box::new(gridftp::GridFtp::new(application("gridftp"))),
        Format::Xrootd => Box::new(xrootd::Xrootd::new(application("xrootd"), zone)),
        Format::Rsync => Box::new(rsync::Rsync::new(application("rsync"), zone)),
        Format::Xferlog => Box::new(xferlog::Xferlog::new(options.application.clone(), zone)),
        Format::Vsftpd => Box::new(vsftpd::Vsftpd::new(application("vsftpd"), zone)),
        Format::Nginx => Box::new(nginx::Nginx::new(application("nginx"), zone, &options.log_format)?),
        Format::Rclone => Box::new(rclone::Rclone::new(application("rclone"), zone)),
        Format::Openssh => Box::new(openssh::Openssh::new(options.application.clone(), zone)),
        Format::Iperf3 => Box::new(iperf3::Iperf3::new(application("iperf3"))),
        Format::Mapping => {
            let missing = || ParserError::Mapping("expected `mapping`, a file".to_owned());
            let mapping = options.mapping.as_ref().ok_or_else(missing)?;
            Box::new(mapping::MappingParser::new(mapping, options.application.clone(), zone)?)
        }
    })
}

/// Parses an IP address. An IPv4 address in IPv6 notation is an IPv4 address; an unspecified address is none.
fn address(text: &str) -> Option<IpAddr> {
    let address = text.parse::<IpAddr>().ok()?.to_canonical();
    match address.is_unspecified() {
        true => None,
        false => Some(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_a_parser_and_a_name() {
        for format in Format::ALL {
            assert_eq!(format.name().parse::<Format>(), Ok(format));
            let mut options = ParserOptions { time_zone: "UTC".to_owned(), ..ParserOptions::default() };
            if format == Format::Mapping {
                options.mapping = Some(mapping::tests::bytes_and_times());
            }
            assert!(parser(format, &options).is_ok(), "{format:?}");
        }
    }

    #[test]
    fn an_unknown_format_is_refused_with_the_known_ones() {
        let error = "ftp".parse::<Format>().unwrap_err().to_string();
        assert!(
            error.starts_with("unknown format \"ftp\": expected one of gridftp, xrootd, rsync,"),
            "{error}"
        );
    }

    #[test]
    fn an_option_of_another_format_is_refused() {
        let options = ParserOptions { log_format: "$request".to_owned(), ..ParserOptions::default() };
        let error = parser(Format::Rsync, &options).err().unwrap();
        assert_eq!(error.to_string(), "`log_format` belongs to format nginx, not to rsync");
    }

    #[test]
    fn a_peer_is_an_address_or_a_name() {
        let address = |text: &str| Some(Peer::Address(text.parse().unwrap()));
        assert_eq!(Peer::parse("192.0.2.1"), address("192.0.2.1"));
        assert_eq!(Peer::parse("::ffff:192.0.2.1"), address("192.0.2.1"));
        assert_eq!(Peer::parse("2001:db8::1"), address("2001:db8::1"));
        assert_eq!(Peer::parse("dtn1.example.org"), Some(Peer::Name("dtn1.example.org".to_owned())));
        for unknown in ["", "-", "0.0.0.0", "::", "::ffff:0.0.0.0"] {
            assert_eq!(Peer::parse(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_transfer_that_cannot_have_happened_is_refused() {
        let second = 1_000_000;
        let end_us = 1_795_896_900 * second;
        let good =
            LoggedTransfer { start_us: end_us - second, end_us, bytes: 1, ..LoggedTransfer::default() };
        assert_eq!(good.check(), Ok(()));
        assert_eq!(LoggedTransfer { start_us: end_us, ..good.clone() }.check(), Ok(()));
        let wrong = |transfer: LoggedTransfer| transfer.check().unwrap_err().to_string();
        for (transfer, expected) in [
            (LoggedTransfer { start_us: i64::MIN, ..good.clone() }, "expected times from 1970 to 2100,"),
            (LoggedTransfer { end_us: i64::MAX, ..good.clone() }, "expected times from 1970 to 2100,"),
            (LoggedTransfer { start_us: end_us + 1, ..good.clone() }, "expected an end after the start,"),
            (LoggedTransfer { start_us: second, ..good.clone() }, "expected a duration of at most a year,"),
            (LoggedTransfer { bytes: u64::MAX, ..good.clone() }, "expected a size of at most 2^53 bytes,"),
        ] {
            assert!(wrong(transfer).starts_with(expected), "{expected}");
        }
    }

    #[test]
    fn an_error_shows_at_most_64_characters() {
        assert_eq!(LineError::new("a line", &"ä".repeat(100)).found.chars().count(), 64);
    }
}
