//! The state of an emulated lab.

use std::net::SocketAddr;
use std::path::PathBuf;

use thalweg_network::{EndpointId, MacAddress, Topology};
use thalweg_wire::BitRate;

use super::{EmulatedLab, HostAddresses};
use crate::emulation::log::{self, EndpointNews};
use crate::emulation::record::{ProcessRecord, Role};
use crate::error::LabError;
use crate::plan::Prefix;

/// The state of an emulated lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmulatedStatus {
    /// Prefix of its names.
    pub prefix: Prefix,
    /// The experiment file.
    pub experiment: PathBuf,
    /// The emulated network.
    pub topology: Topology,
    /// MTU of the hosts, in bytes.
    pub mtu: u16,
    /// The kernel's name of the hosts' congestion control.
    pub congestion_control: String,
    /// Whether the hosts ask for ECN.
    pub ecn: bool,
    /// Name of the namespace of the bridge, the arbiter and the endpoints.
    pub fabric: String,
    /// The folder of the logs and reports.
    pub folder: PathBuf,
    /// Hosts, by endpoint.
    pub hosts: Vec<EmulatedHost>,
    /// The arbiter, and the secondary one if there is one.
    pub arbiters: Vec<ArbiterStatus>,
}

/// The state of a host and its endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmulatedHost {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// Its name in the topology.
    pub name: String,
    /// Name of its namespace.
    pub namespace: String,
    /// Its MAC address.
    pub mac: MacAddress,
    /// Its IP addresses.
    pub addresses: HostAddresses,
    /// Rate of its emulated link.
    pub rate: BitRate,
    /// IDs of the processes in its namespace.
    pub processes: Vec<u32>,
    /// The process of its endpoint.
    pub process: ProcessStatus,
    /// What its endpoint has written about itself.
    pub news: EndpointNews,
}

/// The state of an arbiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArbiterStatus {
    /// Whether it is the secondary one.
    pub is_standby: bool,
    /// Its address, in the fabric.
    pub address: SocketAddr,
    /// Its process.
    pub process: ProcessStatus,
    /// Its report, which it writes at its end.
    pub report: PathBuf,
}

/// The state of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessStatus {
    /// Its number.
    pub pid: u32,
    /// Whether it has not ended.
    pub is_running: bool,
    /// Whether it was stopped by a signal, and waits to be continued.
    pub is_stopped: bool,
    /// Its log.
    pub log: PathBuf,
    /// The last message in its log.
    pub message: Option<String>,
}

impl EmulatedLab {
    /// Returns the state of the lab.
    ///
    /// # Errors
    /// If the lab no longer exists.
    pub fn status(&self) -> Result<EmulatedStatus, LabError> {
        let mut status = EmulatedStatus {
            prefix: self.record.prefix.clone(),
            experiment: self.record.experiment.clone(),
            topology: self.topology.clone(),
            mtu: self.record.mtu,
            congestion_control: self.record.congestion_control.clone(),
            ecn: self.record.ecn,
            fabric: self.fabric().name().to_owned(),
            folder: self.record.folder.clone(),
            hosts: Vec::new(),
            arbiters: Vec::new(),
        };
        for process in &self.record.processes {
            match process.role {
                Role::Endpoint(number) => {
                    status.hosts.push(self.host_status(EndpointId(number), process)?);
                }
                role => status.arbiters.push(self.arbiter_status(role, process)),
            }
        }
        Ok(status)
    }

    fn host_status(&self, endpoint: EndpointId, process: &ProcessRecord) -> Result<EmulatedHost, LabError> {
        let host = &self.topology.endpoints()[endpoint.index()];
        let namespace = self.host(endpoint);
        let process = self.process_status(process, &host.name);
        Ok(EmulatedHost {
            endpoint,
            name: host.name.clone(),
            processes: namespace.processes()?,
            namespace: namespace.name().to_owned(),
            mac: host.mac,
            addresses: HostAddresses::of(&self.topology, endpoint, self.record.mtu),
            rate: self.topology.links()[self.topology.endpoint_link(endpoint).index()].rate,
            news: log::endpoint_news(&process.log, 0),
            process,
        })
    }

    fn arbiter_status(&self, role: Role, process: &ProcessRecord) -> ArbiterStatus {
        ArbiterStatus {
            is_standby: role == Role::Standby,
            address: role.address(),
            process: self.process_status(process, ""),
            report: self.record.report(role),
        }
    }

    fn process_status(&self, process: &ProcessRecord, host: &str) -> ProcessStatus {
        let log = self.record.log(process.role, host);
        ProcessStatus {
            pid: process.pid,
            is_running: process.identity().is_running(),
            is_stopped: process.identity().is_stopped(),
            message: log::last_message(&log),
            log,
        }
    }
}
