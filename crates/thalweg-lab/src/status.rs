//! The state and the counters of a lab.

use std::net::Ipv4Addr;

use thalweg_linux::tc::QueueCounters;
use thalweg_network::{EndpointId, LinkId, MacAddress, PortIndex, RouterId, Topology};
use thalweg_wire::BitRate;

use crate::ebpf::SwitchCounters;
use crate::plan::{Plane, Prefix};

/// A snapshot of a lab. Each counter is exact, but they are not read at the same instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Prefix of its names.
    pub prefix: Prefix,
    /// Type of its switches.
    pub plane: Plane,
    /// Name of the namespace of the switches.
    pub fabric: String,
    /// Hosts, by endpoint.
    pub hosts: Vec<HostStatus>,
    /// Switches, by router.
    pub switches: Vec<SwitchStatus>,
    /// [Names](link_name) of links that are down.
    pub links_down: Vec<String>,
}

/// Returns a link's name, made of its ends: `leaf0-spine1`.
///
/// # Panics
/// If the topology has no such link.
pub fn link_name(topology: &Topology, link: LinkId) -> String {
    let [one, other] = topology.links()[link.index()].ends.map(|end| topology.name(end.node));
    format!("{one}-{other}")
}

/// The status of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostStatus {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// Its name in the topology.
    pub name: String,
    /// Name of its namespace.
    pub namespace: String,
    /// Its base MAC address.
    pub mac: MacAddress,
    /// Its IPv4 address.
    pub ip: Ipv4Addr,
    /// Sending rate.
    pub rate: BitRate,
    /// IDs of the processes in its namespace.
    pub processes: Vec<u32>,
}

/// The status of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchStatus {
    /// The router.
    pub router: RouterId,
    /// Its name in the topology.
    pub name: String,
    /// Number of table entries.
    pub entries: usize,
    /// Whether it mirrors.
    pub is_mirrored: bool,
    /// Interface at which mirrored frames arrive, in the namespace of the switches.
    pub monitor: String,
    /// Rate of its monitor port.
    pub monitor_rate: BitRate,
    /// Counters of the monitor port's queue.
    pub monitor_queue: QueueCounters,
    /// Ports, in order.
    pub ports: Vec<PortStatus>,
}

/// The status of a switch's port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortStatus {
    /// Its number.
    pub port: PortIndex,
    /// Its interface, in the namespace of the switches.
    pub interface: String,
    /// Rate of its link.
    pub rate: BitRate,
    /// The switch's counters of this port.
    pub switch: SwitchCounters,
    /// Counters of its queue.
    pub queue: QueueCounters,
}
