//! What a lab is and has counted, at one time.

use std::net::Ipv4Addr;

use thalweg_linux::tc::QueueCounters;
use thalweg_network::{EndpointId, LinkId, MacAddress, PortIndex, RouterId, Topology};
use thalweg_wire::BitRate;

use crate::ebpf::SwitchCounters;
use crate::plan::{Plane, Prefix};

/// A lab at one time. Counters are not all read at the same instant; each is exact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// What its names begin with.
    pub prefix: Prefix,
    /// What its switches are.
    pub plane: Plane,
    /// Name of the namespace of the switches.
    pub fabric: String,
    /// By endpoint.
    pub hosts: Vec<HostStatus>,
    /// By router.
    pub switches: Vec<SwitchStatus>,
    /// Links that are cut, by [name](link_name).
    pub links_down: Vec<String>,
}

/// What a link is called, by its ends: `leaf0-spine1`.
///
/// # Panics
/// If there is no such link.
pub fn link_name(topology: &Topology, link: LinkId) -> String {
    let [one, other] = topology.links()[link.index()].ends.map(|end| topology.name(end.node));
    format!("{one}-{other}")
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostStatus {
    /// Which endpoint it is.
    pub endpoint: EndpointId,
    /// Its name in the topology.
    pub name: String,
    /// Name of its namespace.
    pub namespace: String,
    /// Its base MAC address.
    pub mac: MacAddress,
    /// Its IPv4 address.
    pub ip: Ipv4Addr,
    /// Rate at which it sends.
    pub rate: BitRate,
    /// Processes in it.
    pub processes: Vec<u32>,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchStatus {
    /// Which router it is.
    pub router: RouterId,
    /// Its name in the topology.
    pub name: String,
    /// Entries of its table.
    pub entries: usize,
    /// Whether it mirrors.
    pub is_mirrored: bool,
    /// Interface where copies of what it forwards arrive, in the namespace of the switches.
    pub monitor: String,
    /// Rate of its monitor port.
    pub monitor_rate: BitRate,
    /// What its monitor port has let through and dropped.
    pub monitor_queue: QueueCounters,
    /// By port.
    pub ports: Vec<PortStatus>,
}

/// A port of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortStatus {
    /// Its number.
    pub port: PortIndex,
    /// Its interface, in the namespace of the switches.
    pub interface: String,
    /// Rate of its link.
    pub rate: BitRate,
    /// What the switch has done with its frames.
    pub switch: SwitchCounters,
    /// What its queue has let through and dropped.
    pub queue: QueueCounters,
}
