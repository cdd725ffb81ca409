//! The record of an emulated lab, `/run/thalweg/PREFIXemulation.json`.

use std::ffi::{OsStr, OsString};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use serde::{Deserialize, Serialize};
use thalweg_linux::process::ProcessIdentity;
use thalweg_network::Topology;

use crate::error::LabError;
use crate::plan::Prefix;
use crate::record::{folder, other_version, read_file, remove_file, write_file};
use crate::sysctl::SysctlChange;
use crate::tcp::ProvidedTcp;

/// Version of the format.
const VERSION: u32 = 4;

/// The end of the names of records.
const FILE: &str = "emulation.json";

/// The name of an arbiter's report in its folder.
const REPORT: &str = "real-time.json";

/// The ports of the arbiter and the secondary one. They can be the same in all labs, each of which has a loopback interface of its own.
const PORTS: [u16; 2] = [6_589, 6_590];

/// The record of an emulated lab.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EmulationRecord {
    version: u32,
    pub(crate) prefix: Prefix,
    /// The start of the machine of which the process identities are.
    pub(crate) boot_id: String,
    /// The experiment file.
    pub(crate) experiment: PathBuf,
    /// Contents of a topology file: the emulated network.
    topology: String,
    /// MTU of the hosts, in bytes.
    pub(crate) mtu: u16,
    /// The kernel's name of the hosts' congestion control.
    pub(crate) congestion_control: String,
    /// Whether the hosts ask for ECN.
    pub(crate) ecn: bool,
    /// Machine parameters that were changed for the lab.
    pub(crate) changed: Vec<SysctlChange>,
    /// The arbiter's processor, which hosts and endpoints leave to it.
    pub(crate) processor: Option<usize>,
    /// The folder of the logs and reports.
    pub(crate) folder: PathBuf,
    /// Arbiters and endpoints, in the order of their start.
    pub(crate) processes: Vec<ProcessRecord>,
}

/// A process of an emulated network.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProcessRecord {
    pub(crate) role: Role,
    pub(crate) pid: u32,
    /// In clock ticks since the start of the machine.
    start_time: u64,
    /// The program and its arguments.
    pub(crate) command: Vec<OsString>,
}

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// The arbiter.
    Arbiter,
    /// The secondary arbiter.
    Standby,
    /// The endpoint of a host, by its number.
    Endpoint(u16),
}

impl Role {
    /// Returns the address of an arbiter, on the loopback interface of the lab. For an endpoint it is that of its arbiter.
    pub(crate) fn address(self) -> SocketAddr {
        let [arbiter, standby] = PORTS;
        let port = if self == Role::Standby { standby } else { arbiter };
        (Ipv4Addr::LOCALHOST, port).into()
    }
}

impl ProcessRecord {
    /// The record of a process that was started by a command.
    pub(crate) fn new(role: Role, identity: ProcessIdentity, command: &Command) -> ProcessRecord {
        let ProcessIdentity { pid, start_time } = identity;
        let words = [command.get_program()].into_iter().chain(command.get_args());
        ProcessRecord { role, pid, start_time, command: words.map(OsStr::to_owned).collect() }
    }

    /// The command that starts the process again, an arbiter as the secondary one of another if given.
    pub(crate) fn command(&self, standby_of: Option<SocketAddr>) -> Command {
        let (program, arguments) = self.command.split_first().expect("a command has a program");
        let (subcommand, arguments) = arguments.split_at(1.min(arguments.len()));
        let mut command = Command::new(program);
        command.args(subcommand);
        if let Some(address) = standby_of {
            command.arg("--standby-of").arg(address.to_string());
        }
        command.args(arguments);
        command
    }

    pub(crate) fn identity(&self) -> ProcessIdentity {
        ProcessIdentity { pid: self.pid, start_time: self.start_time }
    }
}

impl EmulationRecord {
    pub(crate) fn new(
        prefix: Prefix,
        boot_id: String,
        experiment: PathBuf,
        topology: &Topology,
        mtu: u16,
        folder: PathBuf,
    ) -> EmulationRecord {
        EmulationRecord {
            version: VERSION,
            prefix,
            boot_id,
            experiment,
            topology: topology.to_toml(),
            mtu,
            congestion_control: String::new(),
            ecn: false,
            changed: Vec::new(),
            processor: None,
            folder,
            processes: Vec::new(),
        }
    }

    /// Sets how the hosts use TCP.
    pub(crate) fn set_tcp(&mut self, tcp: &ProvidedTcp) {
        self.congestion_control = tcp.name.clone();
        self.ecn = tcp.ecn;
        self.changed.extend(tcp.changed.clone());
    }

    /// Gives the arbiter a processor.
    pub(crate) fn set_processor(&mut self, processor: usize, change: Option<SysctlChange>) {
        self.processor = Some(processor);
        self.changed.extend(change);
    }

    /// Returns the topology.
    ///
    /// # Errors
    /// If the record is damaged.
    pub(crate) fn topology(&self) -> Result<Topology, LabError> {
        let path = path(&self.prefix);
        Topology::from_toml(&self.topology, &path.to_string_lossy()).map_err(|error| LabError::Record {
            path,
            source: io::Error::new(io::ErrorKind::InvalidData, error),
        })
    }

    /// Returns the log of a process; of an endpoint, `host` is the name of its host.
    pub(crate) fn log(&self, role: Role, host: &str) -> PathBuf {
        self.folder.join(match role {
            Role::Arbiter => "arbiter.log".to_owned(),
            Role::Standby => "standby.log".to_owned(),
            Role::Endpoint(_) => format!("endpoint-{host}.log"),
        })
    }

    /// Returns the folder of an arbiter's report.
    pub(crate) fn report_folder(&self, role: Role) -> PathBuf {
        match role {
            Role::Standby => self.folder.join("standby"),
            _ => self.folder.clone(),
        }
    }

    /// Returns the report that an arbiter writes at its end.
    pub(crate) fn report(&self, role: Role) -> PathBuf {
        self.report_folder(role).join(REPORT)
    }

    /// Adds a process, or replaces the one of its role.
    pub(crate) fn set_process(&mut self, process: ProcessRecord) {
        match self.processes.iter_mut().find(|known| known.role == process.role) {
            Some(known) => *known = process,
            None => self.processes.push(process),
        }
    }

    /// Sets the command that starts a process again.
    pub(crate) fn set_command(&mut self, role: Role, command: Vec<OsString>) {
        if let Some(known) = self.processes.iter_mut().find(|known| known.role == role) {
            known.command = command;
        }
    }

    /// Whether all endpoints of the network have been started.
    pub(crate) fn has_endpoints_of(&self, topology: &Topology) -> bool {
        self.identities(|role| matches!(role, Role::Endpoint(_))).len() == topology.endpoints().len()
    }

    /// Returns the names of the hosts' namespaces; none if the record is damaged.
    pub(crate) fn host_namespaces(&self) -> Vec<String> {
        let Ok(topology) = self.topology() else { return Vec::new() };
        topology.endpoints().iter().map(|host| self.prefix.name(&host.name)).collect()
    }

    /// Returns the processes of some roles.
    pub(crate) fn identities(&self, is_wanted: impl Fn(&Role) -> bool) -> Vec<ProcessIdentity> {
        let wanted = self.processes.iter().filter(|process| is_wanted(&process.role));
        wanted.map(ProcessRecord::identity).collect()
    }

    /// Writes the record atomically.
    pub(crate) fn write(&self) -> Result<(), LabError> {
        write_file(&path(&self.prefix), self)
    }

    /// Reads the record of a prefix; `None` if it does not exist.
    pub(crate) fn read(prefix: &Prefix) -> Result<Option<EmulationRecord>, LabError> {
        let path = path(prefix);
        let Some(record) = read_file::<EmulationRecord>(&path)? else { return Ok(None) };
        match record.version == VERSION && record.prefix == *prefix {
            true => Ok(Some(record)),
            false => Err(other_version(path)),
        }
    }

    /// Reads the records of labs of other prefixes that were created since this start of the machine, except damaged ones.
    pub(crate) fn others(prefix: &Prefix, boot_id: &str) -> Result<Vec<EmulationRecord>, LabError> {
        let failed = |source| LabError::Record { path: folder().to_owned(), source };
        let mut records = Vec::new();
        for entry in fs::read_dir(folder()).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let is_record = path.to_string_lossy().ends_with(FILE);
            let read = || read_file::<EmulationRecord>(&path).ok().flatten();
            let is_usable = |it: &EmulationRecord| {
                (it.version, it.boot_id.as_str()) == (VERSION, boot_id) && it.prefix != *prefix
            };
            records.extend(is_record.then(read).flatten().filter(is_usable));
        }
        Ok(records)
    }

    /// Removes the record, if it exists.
    pub(crate) fn remove(prefix: &Prefix) -> Result<(), LabError> {
        remove_file(&path(prefix))
    }
}

/// Returns the path of the record.
pub(crate) fn path(prefix: &Prefix) -> PathBuf {
    Path::new(folder()).join(format!("{prefix}{FILE}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{DEFAULT_RATE, Plan};

    #[test]
    fn a_record_preserves_network_and_processes() {
        let plan = Plan::leaf_spine(DEFAULT_RATE).unwrap();
        let prefix: Prefix = "rec-".parse().unwrap();
        let (experiment, folder) = (PathBuf::from("/a/wan.toml"), PathBuf::from("/b"));
        let mut record =
            EmulationRecord::new(prefix, "boot".to_owned(), experiment, &plan.topology, 9_000, folder);
        let identity = |pid| ProcessIdentity { pid, start_time: 7 };
        let mut command = Command::new("/bin/thalweg");
        command.args(["endpoint", "--number", "7"]);
        let roles = [Role::Arbiter, Role::Standby, Role::Endpoint(0), Role::Endpoint(1)];
        record.processes =
            (1..).zip(roles).map(|(pid, role)| ProcessRecord::new(role, identity(pid), &command)).collect();
        let text = serde_json::to_string(&record).unwrap();
        let read: EmulationRecord = serde_json::from_str(&text).unwrap();
        assert_eq!(format!("{read:?}"), format!("{record:?}"));
        assert_eq!(read.topology().unwrap(), *plan.topology);
        assert_eq!(read.identities(|role| matches!(role, Role::Endpoint(_))), [3, 4].map(identity));
        assert_eq!(read.host_namespaces()[5], "rec-h5");
        assert!(!read.has_endpoints_of(&plan.topology), "two of six");
        let again = read.processes[3].command(None);
        assert_eq!(format!("{again:?}"), format!("{command:?}"));
        let waiting = read.processes[0].command(Some(Role::Standby.address()));
        let words: Vec<_> = waiting.get_args().collect();
        assert_eq!(words, ["endpoint", "--standby-of", "127.0.0.1:6590", "--number", "7"]);
        record.set_process(ProcessRecord::new(Role::Standby, identity(9), &again));
        assert_eq!(record.identities(|_| true), [1, 9, 3, 4].map(identity));
    }
}
