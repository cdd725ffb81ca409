//! The plan of a lab, checked completely before anything is created.

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thalweg_network::topology::shapes::{Tiers, fat_tree, leaf_spine};
use thalweg_network::{Forwarding, LinkSpec, RouterId, Topology};
use thalweg_wire::{BitRate, Nanos};
use thiserror::Error;

/// Default of [`Plan::host_share`].
pub const DEFAULT_HOST_SHARE: f64 = 0.96;

/// Default rate of links: two processors forward it and stay idle more than half of the time.
pub const DEFAULT_RATE: BitRate = BitRate(100_000_000);

/// Lowest rate of a link: a full frame takes 12 ms.
pub const MIN_RATE: BitRate = BitRate(1_000_000);

/// Highest rate of a link: beyond what veth pairs carry.
pub const MAX_RATE: BitRate = BitRate(20_000_000_000);

/// Maximum number of ports of all switches, without monitor ports. Each is an interface of the kernel.
pub const MAX_PORTS: usize = 2_048;

/// Maximum number of hosts of a lab over an emulated network. Each has an endpoint, which is a process that asks the arbiter 200
/// times a second even if nothing is sent, and which may hold packets of 150 MB.
pub const MAX_EMULATED_HOSTS: usize = 64;

/// Accepted MTUs of hosts in bytes: 576 (RFC 791, section 3.1, the minimum that every host accepts) to 9000.
pub const MTU_RANGE: std::ops::RangeInclusive<u32> = 576..=9_000;

/// Maximum length of a queue, far more than data centre switches have.
pub const MAX_BUFFER: Nanos = Nanos::from_secs(1);

/// Name of the switches' namespace, after the prefix; not allowed as a host's name.
pub(crate) const FABRIC: &str = "fabric";

/// The prefix of all names of a lab: `tw-` gives `tw-h0`, `tw-fabric`.
///
/// A lower-case letter, up to 7 more letters or digits, and a hyphen. So no prefix is a prefix of another one, and a
/// name belongs to one lab only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix(String);

impl Prefix {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the full name of a namespace.
    pub(crate) fn name(&self, of: &str) -> String {
        format!("{}{of}", self.0)
    }
}

/// `tw-`.
impl Default for Prefix {
    fn default() -> Self {
        Prefix("tw-".to_owned())
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Prefix {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let is_prefix = text.strip_suffix('-').is_some_and(|word| {
            (1..=8).contains(&word.len())
                && word.starts_with(|c: char| c.is_ascii_lowercase())
                && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        });
        if is_prefix { Ok(Prefix(text.to_owned())) } else { Err(PlanError::Prefix { text: text.to_owned() }) }
    }
}

impl TryFrom<String> for Prefix {
    type Error = PlanError;

    fn try_from(text: String) -> Result<Self, PlanError> {
        text.parse()
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> String {
        prefix.0
    }
}

/// The type of a lab's switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Plane {
    /// eBPF programs at the ports.
    #[default]
    Ebpf,
    /// Open vSwitch bridges in user space, controlled by OpenFlow and initially without routes.
    Ovs,
}

/// The plan of a lab.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Hosts, switches and links with their rates. The links' delays, loss and jitter are ignored.
    pub topology: Arc<Topology>,
    /// Initial tables of [`Plane::Ebpf`] switches. `None`: [`shortest_path_tables`](crate::shortest_path_tables) with
    /// [`DEFAULT_ADDRESSES`](crate::DEFAULT_ADDRESSES). Switches look up addresses only; ECMP is not supported.
    pub forwarding: Option<Forwarding>,
    /// Prefix of all names.
    pub prefix: Prefix,
    /// Type of the switches.
    pub plane: Plane,
    /// Rate of all links, overriding the topology's.
    pub rate: Option<BitRate>,
    /// Sending rate of a host as a share of its link's rate, above 0 and up to 1. Just below 1 a single flow never
    /// waits at a switch, whose shapers then need no timers, which saves most of the CPU time.
    pub host_share: f64,
    /// MTU of the hosts, in bytes.
    pub mtu: u32,
    /// Length of a switch port's queue, as time at the link's rate.
    pub port_buffer: Nanos,
    /// Rate of the monitor ports. `None`: the rate of the fastest link at the switch.
    pub monitor_rate: Option<BitRate>,
    /// Length of a monitor port's queue, as time at its rate: the delay of a copy when the port is oversubscribed.
    pub monitor_buffer: Nanos,
    /// Congestion control of the hosts' TCP. `None`: the machine's default.
    pub congestion_control: Option<String>,
}

impl Plan {
    /// Creates a plan with defaults: hosts send at 0.96 of their links' rates, an MTU of 1500 bytes, queues of 5 ms at
    /// ports and 1 ms at monitor ports, CUBIC.
    pub fn new(topology: impl Into<Arc<Topology>>) -> Plan {
        Plan {
            topology: topology.into(),
            forwarding: None,
            prefix: Prefix::default(),
            plane: Plane::default(),
            rate: None,
            host_share: DEFAULT_HOST_SHARE,
            mtu: 1_500,
            port_buffer: Nanos::from_millis(5),
            monitor_rate: None,
            monitor_buffer: Nanos::from_millis(1),
            congestion_control: Some("cubic".to_owned()),
        }
    }

    /// Creates the plan of a leaf-spine with three leaves, two hosts each, and two spines: 6 hosts, 5 switches, two
    /// paths between leaves.
    ///
    /// # Errors
    /// If the rate is out of range.
    pub fn leaf_spine(rate: BitRate) -> Result<Plan, PlanError> {
        let topology = leaf_spine(3, 2, 2, tiers(rate)?).expect("a small topology with valid links");
        Ok(Plan::new(topology))
    }

    /// Creates the plan of a fat tree of 4-port switches: 16 hosts, 20 switches, four paths between pods (the testbed
    /// of Planck, section 7.1).
    ///
    /// # Errors
    /// If the rate is out of range.
    pub fn fat_tree_4(rate: BitRate) -> Result<Plan, PlanError> {
        let topology = fat_tree(4, tiers(rate)?).expect("a small topology with valid links");
        Ok(Plan::new(topology))
    }

    /// Checks the plan.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn check(&self) -> Result<(), PlanError> {
        let ports = self.topology.router_ids().map(|router| self.topology.ports(router)).sum();
        if ports > MAX_PORTS {
            return Err(PlanError::TooManyPorts { ports });
        }
        for host in self.topology.endpoints() {
            check_host(&host.name)?;
        }
        self.topology.links().iter().try_for_each(|link| check_rate(self.rate.unwrap_or(link.rate)))?;
        self.monitor_rate.map_or(Ok(()), check_rate)?;
        if !(self.host_share > 0.0 && self.host_share <= 1.0) {
            return Err(PlanError::HostShare { share: self.host_share });
        }
        if !MTU_RANGE.contains(&self.mtu) {
            return Err(PlanError::Mtu { mtu: self.mtu });
        }
        for buffer in [self.port_buffer, self.monitor_buffer] {
            if buffer > MAX_BUFFER {
                return Err(PlanError::Buffer { buffer });
            }
        }
        let is_name = |name: &String| {
            (1..16).contains(&name.len())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        };
        match &self.congestion_control {
            Some(name) if !is_name(name) => Err(PlanError::CongestionControl { name: name.clone() }),
            _ => Ok(()),
        }
    }

    /// Returns the name of the switches' namespace.
    pub fn fabric(&self) -> String {
        self.prefix.name(FABRIC)
    }

    /// Returns the rate of a link.
    pub(crate) fn link_rate(&self, link: &thalweg_network::Link) -> BitRate {
        self.rate.unwrap_or(link.rate)
    }

    /// Returns the rate of a switch's monitor port.
    pub(crate) fn monitor_rate(&self, router: RouterId) -> BitRate {
        let ports = (0..self.topology.ports(router) as u16).map(thalweg_network::PortIndex);
        let links = ports.map(|port| &self.topology.links()[self.topology.link_at(router, port).index()]);
        let fastest = links.map(|link| self.link_rate(link)).max();
        self.monitor_rate.or(fastest).unwrap_or(DEFAULT_RATE)
    }
}

fn tiers(rate: BitRate) -> Result<Tiers, PlanError> {
    check_rate(rate)?;
    let link = LinkSpec { rate, ..LinkSpec::default() };
    Ok(Tiers { access: link, uplink: link })
}

fn check_rate(rate: BitRate) -> Result<(), PlanError> {
    if (MIN_RATE..=MAX_RATE).contains(&rate) { Ok(()) } else { Err(PlanError::Rate { rate }) }
}

/// Checks that a host's name can be part of a namespace's name, which is a file name.
pub(crate) fn check_host(name: &str) -> Result<(), PlanError> {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if is_plain && name != FABRIC { Ok(()) } else { Err(PlanError::Host { name: name.to_owned() }) }
}

/// An invalid value in a plan.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    /// An invalid prefix.
    #[error(
        "invalid prefix {text:?}: expected a lower-case letter, up to 7 letters or digits and a hyphen, such as tw-"
    )]
    Prefix {
        /// The text given.
        text: String,
    },
    /// Too many ports.
    #[error("the switches have {ports} ports: expected at most {MAX_PORTS}")]
    TooManyPorts {
        /// Ports of all switches.
        ports: usize,
    },
    /// Too many hosts of an emulated lab.
    #[error(
        "the emulated network has {hosts} endpoints: expected at most {MAX_EMULATED_HOSTS}, because each is a process of this machine, \
         and one arbiter decides on the packets of all"
    )]
    TooManyHosts {
        /// Its endpoints.
        hosts: usize,
    },
    /// A host's name that cannot be part of a namespace's name.
    #[error("invalid host name {name:?}: expected letters, digits, -, _ and ., and not {FABRIC:?}")]
    Host {
        /// Its name.
        name: String,
    },
    /// A rate out of range.
    #[error("invalid rate {rate}: expected {MIN_RATE} to {MAX_RATE}")]
    Rate {
        /// The rate.
        rate: BitRate,
    },
    /// A share of the hosts out of range.
    #[error("invalid host share {share}: expected above 0, up to 1")]
    HostShare {
        /// The share given.
        share: f64,
    },
    /// An MTU out of range.
    #[error("invalid MTU of {mtu} bytes: expected {} to {}", MTU_RANGE.start(), MTU_RANGE.end())]
    Mtu {
        /// The MTU given.
        mtu: u32,
    },
    /// A queue that is too long.
    #[error("invalid queue length {buffer}: expected at most {MAX_BUFFER}")]
    Buffer {
        /// The time given.
        buffer: Nanos,
    },
    /// A congestion control that the kernel does not have.
    #[error("unknown congestion control {name:?}: see net.ipv4.tcp_available_congestion_control")]
    CongestionControl {
        /// The name given.
        name: String,
    },
}
