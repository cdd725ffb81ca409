//! The configuration file of the agent.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use thalweg_api::client::{Client, ClientOptions};
use thalweg_api::is_token_name;
use thalweg_config::kind::{Amount, Boolean, Rate, Text, Whole, one_of};
use thalweg_config::{Document, DocumentError, Problem, Schema, choices, section};
use thalweg_wire::{BitRate, Bytes};
use thiserror::Error;

use crate::agent::{AgentOptions, OpenLog};
use crate::follow::{LogFollower, Start};
use crate::host::{ConnectionOptions, Disk, ParameterOptions, default_interface};
use crate::logs::mapping::Mapping;
use crate::logs::{Format, ParserOptions, parser};
use crate::privacy::Privacy;

const INTRODUCTION: &str = "\
# Configuration of the transfer agent

<!-- Generated: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test it reference -->

`thalweg transfers agent -c FILE` reads its configuration from a [TOML](https://toml.io) file. `thalweg config transfers-agent` prints
an example with explanations. `thalweg check FILE` checks a file and prints what the agent would do.

File names are relative to the directory of this file. See also the [guide](../guides/transfers.md).
";

/// The schema of the file.
pub static SCHEMA: Schema = Schema::new("agent configuration", &[&AGENT, &LOG]);

section! {
    /// The agent and its daemon.
    pub struct Agent in AGENT = "agent" {
        /// Name of this host: that of its token.
        host: String [Text("a name of letters, digits and -_.@")] or "the name of the machine",
        /// The daemon: http://HOST:PORT or https://HOST:PORT.
        api: String [Text("http://HOST:PORT or https://HOST:PORT")] default "http://127.0.0.1:9477",
        /// File with the token. Only its owner may read it.
        token_file: String [FILE] or "no token",
        /// CA certificates (PEM) that verify the daemon.
        ca_file: String [FILE] or "those of well-known authorities",
        /// Client certificate chain (PEM), leaf first. Needs client_key.
        client_certificate: String [FILE] or "none",
        /// Private key of the client certificate (PEM).
        client_key: String [FILE] or "none",
        /// Directory of reports that the daemon does not have yet, and of status.json.
        queue: String [Text("a directory name, relative to the directory of this file")] default "/var/lib/thalweg-transfers",
        /// Maximum size of the queue. When it is full, the oldest reports are dropped, samples first, and counted.
        queue_size: Bytes [Amount] default "256MiB",
        /// How to report names of users and files.
        names: NamesReported [one_of::<NamesReported>()] default "hashed",
        /// With hashed names: file with the salt, created if it does not exist. Hosts with the same salt give a user the same hash.
        salt_file: String [FILE] default "/var/lib/thalweg-transfers/salt",
        /// Interface of transfers.
        interface: String [Text("the name of an interface")] or "that of the default route",
        /// Directory of the data. Its disk is sampled.
        data_directory: String [Text("a directory")] or "the busiest disk is sampled",
        /// Read rate of the disk, if you know it.
        disk_read_rate: BitRate [Rate] or "unknown",
        /// Write rate of the disk, if you know it.
        disk_write_rate: BitRate [Rate] or "unknown",
        /// Rate from which a TCP connection is reported as part of a transfer.
        min_rate: BitRate [Rate] default "1mbps",
        /// Maximum number of TCP connections to report in a second. The fastest are reported, the others counted.
        max_connections: usize [Whole(1, 10_000)] default "1000",
    }
}

section! {
    /// A log of a transfer program.
    pub struct Log in LOG = ["log"] {
        /// The log.
        path: String [FILE] needed,
        /// The program that writes it.
        format: FormatName [one_of::<FormatName>()] needed,
        /// Time zone of times without one, such as "Europe/Berlin".
        time_zone: String [Text("the name of a time zone, such as \"Europe/Berlin\" or \"UTC\"")] or "that of the machine",
        /// Whether a log that was never read is read from its beginning. Otherwise only what is written from now on counts.
        from_start: bool [Boolean] default "false",
        /// Name of the program in reports.
        application: String [Text("a name")] or "that of the format",
        /// With nginx: its log_format.
        log_format: String [Text("a log_format of nginx")] or "the one in the guide",
        /// With mapping: file that says where the fields of a transfer are (TOML); the guide has an example.
        mapping: String [FILE] or "needed with mapping",
    }
}

const FILE: Text = Text("a file name, relative to the directory of this file");

choices! {
    /// How names of users and files are reported.
    pub enum NamesReported {
        /// as salted hashes
        Hashed = "hashed",
        /// as they are
        Clear = "clear",
    }
}

choices! {
    /// Formats of logs.
    pub enum FormatName {
        /// transfer log of globus-gridftp-server (`-log-transfer`)
        Gridftp = "gridftp",
        /// log of XRootD
        Xrootd = "xrootd",
        /// log of rsync (`--log-file`, or `log file` of rsyncd.conf)
        Rsync = "rsync",
        /// xferlog, of vsftpd or ProFTPD
        Xferlog = "xferlog",
        /// log of vsftpd in its own format
        Vsftpd = "vsftpd",
        /// access log of nginx
        Nginx = "nginx",
        /// JSON log of rclone (`--use-json-log`)
        Rclone = "rclone",
        /// log of OpenSSH: sftp-server with `-l INFO`, or `scp -v`
        Openssh = "openssh",
        /// JSON of iperf3 (`--json --logfile`)
        Iperf3 = "iperf3",
        /// CSV or JSON lines, as `mapping` describes them
        Mapping = "mapping",
    }
}

/// Why the file cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file is invalid.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A file that it names cannot be used.
    #[error("{file}: {problem}")]
    Unusable {
        /// The configuration file.
        file: String,
        /// What is wrong.
        problem: String,
    },
}

/// A configuration, checked.
pub struct Settings {
    /// What the agent needs.
    pub agent: AgentOptions,
    /// The logs, by path.
    pub logs: Vec<(String, OpenLog)>,
}

/// A configuration whose values are valid.
struct Checked<'d> {
    document: &'d Document,
    agent: Agent,
    host: String,
    interface: String,
    data_directory: Option<PathBuf>,
    disk: Option<String>,
    client: Client,
    logs: Vec<(String, OpenLog)>,
}

impl Settings {
    /// Reads a file. Creates the salt if it does not exist, and opens nothing else.
    ///
    /// # Errors
    /// Returns all problems of the file, or the first of a file that it names.
    pub fn load(path: &Path) -> Result<Settings, SettingsError> {
        let document = Document::load(&SCHEMA, path)?;
        let Checked { agent, host, interface, data_directory, disk, client, logs, .. } =
            check(&document, path)?;
        let file = |name: &String| document.folder.join(name);
        let privacy = match agent.names {
            NamesReported::Clear => Privacy::clear(),
            NamesReported::Hashed => {
                let salt = file(&agent.salt_file);
                if let Some(folder) = salt.parent() {
                    // If this fails, so does the creation of the salt, which says why.
                    let _ = std::fs::create_dir_all(folder);
                }
                Privacy::hashed(&salt).map_err(|error| unusable(path, &error))?
            }
        };
        let options = AgentOptions {
            host,
            client,
            queue: file(&agent.queue),
            queue_bytes: agent.queue_size.0,
            privacy,
            parameters: ParameterOptions {
                interface,
                data_directory,
                disk_read: agent.disk_read_rate,
                disk_write: agent.disk_write_rate,
            },
            disk: disk.filter(|name| !name.is_empty()),
            connections: ConnectionOptions {
                // Samples are of a second.
                min_bytes: (agent.min_rate.0 / 8).max(1),
                max_connections: agent.max_connections,
            },
        };
        Ok(Settings { agent: options, logs })
    }
}

/// Checks a file, and describes what the agent would do. Changes nothing.
///
/// # Errors
/// As [`Settings::load`].
pub fn describe(path: &Path) -> Result<String, SettingsError> {
    let document = Document::load(&SCHEMA, path)?;
    let Checked { document, agent, host, interface, disk, client, logs, .. } = check(&document, path)?;
    let names = match agent.names {
        NamesReported::Hashed => "as salted hashes",
        NamesReported::Clear => "as they are",
    };
    let disk = disk.filter(|name| !name.is_empty()).unwrap_or_else(|| "the busiest".to_owned());
    let mut text = format!(
        "host {host} reports to {}; names of users and files {names}\n\
         interface {interface}, disk {disk}, TCP connections from {} on\n\
         queue {}, at most {}\n",
        client.base(),
        agent.min_rate,
        document.folder.join(&agent.queue).display(),
        agent.queue_size
    );
    for (path, _) in &logs {
        let exists = if Path::new(path).exists() { "" } else { " (does not exist yet)" };
        let _ = writeln!(text, "log {path}{exists}");
    }
    Ok(text)
}

/// Returns an example file, with explanations.
pub fn default_file() -> String {
    let samples = [("log", "path", "path = \"/var/log/xferlog\""), ("log", "format", "format = \"xferlog\"")];
    let introduction = "# Configuration of `thalweg transfers agent -c FILE`. Keys that are commented out show their defaults.\n";
    thalweg_config::example(&SCHEMA, introduction, &samples)
}

/// Returns the reference of the file.
pub fn reference() -> String {
    thalweg_config::reference(&SCHEMA, INTRODUCTION)
}

fn unusable(path: &Path, problem: &impl ToString) -> SettingsError {
    SettingsError::Unusable { file: path.display().to_string(), problem: problem.to_string() }
}

/// Interprets a file.
fn check<'d>(document: &'d Document, path: &Path) -> Result<Checked<'d>, SettingsError> {
    let mut problems = Vec::new();
    let logs = logs(document, &mut problems);
    let agent = document.one::<Agent>();
    if agent.client_certificate.is_some() != agent.client_key.is_some() {
        let key = if agent.client_key.is_some() { Agent::client_key } else { Agent::client_certificate };
        problems.push(agent.refuse(key, "client_certificate and client_key must be set together"));
    }
    let host = agent.host.clone().unwrap_or_else(machine_name);
    if !is_token_name(&host) {
        let reason = format!("{host:?}: expected 1 to 64 letters, digits and -_.@");
        problems.push(agent.refuse(Agent::host, reason));
    }
    let interface = agent.interface.clone().or_else(default_interface);
    if interface.is_none() {
        problems.push(agent.refuse(Agent::interface, "needed: this host has no interface with a route"));
    }
    let data_directory = agent.data_directory.as_ref().map(PathBuf::from);
    let disk = data_directory.as_ref().and_then(|directory| match Disk::of(directory) {
        Ok(disk) => Some(disk.name),
        Err(error) => {
            problems.push(agent.refuse(Agent::data_directory, error.to_string()));
            None
        }
    });
    if !problems.is_empty() {
        return Err(document.error(problems).into());
    }
    let file = |name: &String| document.folder.join(name);
    let client = Client::new(&ClientOptions {
        api: agent.api.clone(),
        token_file: agent.token_file.as_ref().map(file),
        ca: agent.ca_file.as_ref().map(file),
        client_certificate: match (&agent.client_certificate, &agent.client_key) {
            (Some(certificate), Some(key)) => Some((file(certificate), file(key))),
            _ => None,
        },
    })
    .map_err(|error| unusable(path, &error))?;
    let agent = agent.into_value();
    let interface = interface.unwrap_or_default();
    Ok(Checked { document, agent, host, interface, data_directory, disk, client, logs })
}

fn logs(document: &Document, problems: &mut Vec<Problem>) -> Vec<(String, OpenLog)> {
    let mut logs: Vec<(String, OpenLog)> = Vec::new();
    let mut files = HashSet::new();
    for entry in document.all::<self::Log>() {
        let path = document.folder.join(&entry.path);
        let shown = path.display().to_string();
        // Names of one file may differ.
        let same = path.canonicalize().unwrap_or_else(|_| path.components().collect());
        if !files.insert(same) {
            problems.push(entry.refuse(self::Log::path, "the log is named twice"));
            continue;
        }
        if std::fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file()) {
            problems.push(entry.refuse(self::Log::path, "expected a regular file"));
            continue;
        }
        let mapping = entry.mapping.as_ref().map(|file| mapping(&document.folder.join(file))).transpose();
        let mapping = mapping.unwrap_or_else(|error| {
            problems.push(entry.refuse(self::Log::mapping, error));
            None
        });
        if mapping.is_none() && entry.mapping.is_some() {
            continue;
        }
        let options = ParserOptions {
            time_zone: entry.time_zone.clone().unwrap_or_default(),
            application: entry.application.clone().unwrap_or_default(),
            log_format: entry.log_format.clone().unwrap_or_default(),
            mapping,
        };
        match parser(format(entry.format), &options) {
            Ok(parser) => {
                let from_start = entry.from_start;
                let open: OpenLog = Box::new(move |position| {
                    let start = match position {
                        Some(position) => Start::At(position),
                        None if from_start => Start::Beginning,
                        None => Start::End,
                    };
                    LogFollower::new(path, parser, start)
                });
                logs.push((shown, open));
            }
            Err(error) => problems.push(entry.refuse(self::Log::format, error.to_string())),
        }
    }
    logs
}

/// Reads a mapping.
fn mapping(path: &Path) -> Result<Mapping, String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    toml::from_str(&text).map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        format!("{}:{line}: {}", path.display(), error.message())
    })
}

const fn format(name: FormatName) -> Format {
    match name {
        FormatName::Gridftp => Format::Gridftp,
        FormatName::Xrootd => Format::Xrootd,
        FormatName::Rsync => Format::Rsync,
        FormatName::Xferlog => Format::Xferlog,
        FormatName::Vsftpd => Format::Vsftpd,
        FormatName::Nginx => Format::Nginx,
        FormatName::Rclone => Format::Rclone,
        FormatName::Openssh => Format::Openssh,
        FormatName::Iperf3 => Format::Iperf3,
        FormatName::Mapping => Format::Mapping,
    }
}

fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_has_the_state_directory_of_the_defaults() {
        let unit = include_str!("../../../packaging/thalweg-transfers-agent.service");
        let directory = unit.lines().find_map(|line| line.strip_prefix("StateDirectory=")).unwrap();
        let defaults = default_file();
        for default in ["queue = \"/var/lib/{}\"", "salt_file = \"/var/lib/{}/salt\""] {
            let default = default.replace("{}", directory);
            assert!(defaults.contains(&default), "{default}");
        }
    }

    #[test]
    fn a_log_is_a_regular_file_and_named_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agent.toml");
        std::fs::write(folder.path().join("a.log"), "").unwrap();
        let log = |path: &str| format!("[[log]]\npath = \"{path}\"\nformat = \"rsync\"\n");
        let problem = |logs: &[&str]| {
            let logs: String = logs.iter().map(|path| log(path)).collect();
            std::fs::write(&file, format!("[agent]\nhost = \"dtn1\"\ninterface = \"lo\"\n{logs}")).unwrap();
            describe(&file).map_err(|error| error.to_string())
        };
        assert!(problem(&["a.log", "b.log"]).is_ok());
        for logs in [["a.log", "./a.log"], ["b.log", "./b.log"]] {
            assert!(problem(&logs).unwrap_err().contains("the log is named twice"), "{logs:?}");
        }
        assert!(problem(&["."]).unwrap_err().contains("expected a regular file"));
    }

    #[test]
    fn an_error_of_a_mapping_has_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mapping.toml");
        std::fs::write(&file, "input = \"csv\"\n[fields]\nbytes = 1\n").unwrap();
        let error = mapping(&file).unwrap_err();
        assert!(error.starts_with(&format!("{}:3: ", file.display())), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}
