//! What a lab is to be: said before anything is made, and checked whole.

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

/// Rate of links unless said otherwise: what two processors forward with more than half of their time left.
pub const DEFAULT_RATE: BitRate = BitRate(100_000_000);

/// Lowest rate of a link: a full frame takes 12 ms.
pub const MIN_RATE: BitRate = BitRate(1_000_000);

/// Highest rate of a link: beyond what veth pairs carry.
pub const MAX_RATE: BitRate = BitRate(20_000_000_000);

/// Most ports of all switches together, monitor ports not counted: each is an interface of the kernel.
pub const MAX_PORTS: usize = 2_048;

/// MTU of a host: 576 (RFC 791, section 3.1: what every host takes) to 9000.
pub const MTU_RANGE: std::ops::RangeInclusive<u32> = 576..=9_000;

/// Longest time that a queue may hold: beyond it is no network of data centres.
pub const MAX_BUFFER: Nanos = Nanos::from_secs(1);

/// Name of the namespace of the switches, after the prefix; no host may have it.
pub(crate) const FABRIC: &str = "fabric";

/// What makes the names of all that belongs to one lab: `tw-` makes `tw-h0`, `tw-fabric`.
///
/// A lower-case letter, up to 7 more letters or digits, and a hyphen. So no prefix begins with another, and what begins
/// with one belongs to its lab alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix(String);

impl Prefix {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of a namespace.
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

/// What the switches are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Plane {
    /// eBPF programs at the ports.
    #[default]
    Ebpf,
    /// Bridges of Open vSwitch in user space, which are told by OpenFlow what to forward: nothing at first.
    Ovs,
}

/// What a lab is to be.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Who is attached to whom, at what rates. Delays are those of the machine, whatever the links' are said to be.
    pub topology: Arc<Topology>,
    /// The tables that switches of [`Plane::Ebpf`] begin with. `None`: [`shortest_path_tables`](crate::shortest_path_tables) with
    /// [`DEFAULT_ADDRESSES`](crate::DEFAULT_ADDRESSES). What ECMP would do is not done: switches look at addresses only.
    pub forwarding: Option<Forwarding>,
    /// What all names begin with.
    pub prefix: Prefix,
    /// What the switches are.
    pub plane: Plane,
    /// Rate of all links, in place of the topology's.
    pub rate: Option<BitRate>,
    /// The part of its link's rate at which a host sends, above 0 and up to 1. Just below 1 a single flow never waits
    /// at a switch, whose shapers then need no timers: that costs less than anything else here.
    pub host_share: f64,
    /// Longest IP packet of the hosts, in bytes.
    pub mtu: u32,
    /// The queue of a switch's port holds what its link carries in this time, and drops the rest.
    pub port_buffer: Nanos,
    /// Rate of the monitor ports. `None`: that of the fastest link at the switch, as with a port given up for it.
    pub monitor_rate: Option<BitRate>,
    /// The queue of a monitor port holds what it sends in this time, and drops the rest: so late is a copy when more is
    /// mirrored than the port can send.
    pub monitor_buffer: Nanos,
    /// Congestion control of the hosts' TCP. `None`: the machine's default.
    pub congestion_control: Option<String>,
}

impl Plan {
    /// A lab of this topology, and the defaults for all else: hosts send at 0.96 of their links' rates, an MTU of 1500
    /// bytes, 5 ms of queue at a port and 1 ms at a monitor port, CUBIC.
    pub fn new(topology: impl Into<Arc<Topology>>) -> Plan {
        Plan {
            topology: topology.into(),
            forwarding: None,
            prefix: Prefix::default(),
            plane: Plane::default(),
            rate: None,
            host_share: 0.96,
            mtu: 1_500,
            port_buffer: Nanos::from_millis(5),
            monitor_rate: None,
            monitor_buffer: Nanos::from_millis(1),
            congestion_control: Some("cubic".to_owned()),
        }
    }

    /// Three racks of two hosts, two spines: 6 hosts, 5 switches, two paths between racks.
    ///
    /// # Errors
    /// If there is no such link rate.
    pub fn leaf_spine(rate: BitRate) -> Result<Plan, PlanError> {
        let topology = leaf_spine(3, 2, 2, tiers(rate)?).expect("a small topology of links that can be");
        Ok(Plan::new(topology))
    }

    /// A fat tree of 4-port switches: 16 hosts, 20 switches, four paths between pods (the testbed of Planck, section
    /// 7.1).
    ///
    /// # Errors
    /// If there is no such link rate.
    pub fn fat_tree_4(rate: BitRate) -> Result<Plan, PlanError> {
        let topology = fat_tree(4, tiers(rate)?).expect("a small topology of links that can be");
        Ok(Plan::new(topology))
    }

    /// Whether there can be such a lab.
    ///
    /// # Errors
    /// With the first thing that cannot be.
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

    /// The name of the namespace of the switches.
    pub fn fabric(&self) -> String {
        self.prefix.name(FABRIC)
    }

    /// Rate of a link.
    pub(crate) fn link_rate(&self, link: &thalweg_network::Link) -> BitRate {
        self.rate.unwrap_or(link.rate)
    }

    /// Rate of the monitor port of a switch.
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

/// Whether a host's name can be part of that of a namespace, which is a file.
fn check_host(name: &str) -> Result<(), PlanError> {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if is_plain && name != FABRIC { Ok(()) } else { Err(PlanError::Host { name: name.to_owned() }) }
}

/// Why there can be no such lab.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    /// Not a prefix.
    #[error(
        "{text:?} is no prefix: expected a lower-case letter, up to 7 letters or digits, a hyphen, as in tw-"
    )]
    Prefix {
        /// The text given.
        text: String,
    },
    /// The machine would have too many interfaces.
    #[error("the switches have {ports} ports, and a lab at most {MAX_PORTS}")]
    TooManyPorts {
        /// How many there would be.
        ports: usize,
    },
    /// A host's name cannot be that of a namespace.
    #[error("a host cannot be called {name:?}: expected letters, digits, and -_. , and not {FABRIC:?}")]
    Host {
        /// Its name.
        name: String,
    },
    /// A rate that the lab cannot have.
    #[error("a rate of {rate}: expected {MIN_RATE} to {MAX_RATE}")]
    Rate {
        /// The rate.
        rate: BitRate,
    },
    /// Not a part of a rate.
    #[error("hosts cannot send at {share} of their links' rates: expected above 0, up to 1")]
    HostShare {
        /// The number given.
        share: f64,
    },
    /// Too short or too long.
    #[error("an MTU of {mtu} bytes: expected {} to {}", MTU_RANGE.start(), MTU_RANGE.end())]
    Mtu {
        /// The number given.
        mtu: u32,
    },
    /// Too long.
    #[error("a queue of {buffer}: expected up to {MAX_BUFFER}")]
    Buffer {
        /// The time given.
        buffer: Nanos,
    },
    /// Not a name.
    #[error("no congestion control is called {name:?}")]
    CongestionControl {
        /// The text given.
        name: String,
    },
}
