//! Builds topologies from what switches report: LLDP neighbours, and the ports and flows of Open vSwitch.
//!
//! | module | contents |
//! |---|---|
//! | [`lldp`] | `lldpcli -f json show neighbors` of a switch |
//! | [`open_vswitch`] | `ovs-vsctl --format=json list Interface`, `ovs-ofctl show` and `ovs-ofctl dump-flows` |
//!
//! The caller names the switches. Every other neighbour is a host. A host with several links becomes an endpoint for each of
//! them, `HOST:PORT`, because an endpoint has one link.
//!
//! Routers are in the order of their names, ports in that of their names, where numbers count as such: `Ethernet2` before
//! `Ethernet10`. What cannot be expressed in a topology is left out, and noted.

pub mod lldp;
pub mod open_vswitch;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};

use thiserror::Error;

use crate::address::MacAddress;
use crate::identity::{EndpointId, RouterId};
use crate::link_state::LinkState;
use crate::state::{Entry, EntryError, Forwarding, NetworkState, StateError};
use crate::topology::{LinkSpec, Topology, TopologyBuilder, TopologyError};

/// Why a report cannot be imported.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The text is not in the expected format.
    #[error("{file}: {reason}: expected the output of {command}")]
    Format {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
        /// The command whose output it should be.
        command: &'static str,
    },
    /// A port has two neighbours.
    #[error(
        "port {port} of {system} has two neighbours, {first} and {second}: a topology has links between two ports only"
    )]
    TwoNeighbours {
        /// The system.
        system: String,
        /// Its port.
        port: String,
        /// The first neighbour.
        first: String,
        /// The second neighbour.
        second: String,
    },
    /// The reports contradict the rules of topologies.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// An entry does not fit the topology.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// The tables do not fit the topology.
    #[error(transparent)]
    State(#[from] StateError),
}

/// A port of a system, by their names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// Name of the switch or host.
    pub system: String,
    /// Name of its port.
    pub port: String,
}

/// What is known of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// MAC address of the port.
    pub mac: Option<MacAddress>,
    /// IPv4 address.
    pub ip: Option<Ipv4Addr>,
    /// IPv6 address.
    pub ipv6: Option<Ipv6Addr>,
}

/// What switches have reported.
#[derive(Clone, Debug, Default)]
pub struct Discovery {
    switches: BTreeSet<String>,
    /// Both ends of each link.
    peers: BTreeMap<End, End>,
    hosts: BTreeMap<End, HostFacts>,
    specs: BTreeMap<End, LinkSpec>,
    down: BTreeSet<End>,
    entries: Vec<FoundEntry>,
    has_tables: bool,
    notes: Vec<String>,
}

/// An entry of a forwarding table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FoundEntry {
    mac: MacAddress,
    output: End,
}

/// An imported network.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The topology file.
    pub toml: String,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

impl Discovery {
    /// Creates an empty discovery of a network with these switches.
    pub fn new(switches: impl IntoIterator<Item = String>) -> Discovery {
        Discovery { switches: switches.into_iter().collect(), ..Discovery::default() }
    }

    /// Adds a link. Each of its ends may report it.
    fn add_link(&mut self, one: End, other: End) -> Result<(), ImportError> {
        for (end, peer) in [(&one, &other), (&other, &one)] {
            match self.peers.insert(end.clone(), peer.clone()) {
                Some(known) if known != *peer => {
                    return Err(ImportError::TwoNeighbours {
                        system: end.system.clone(),
                        port: end.port.clone(),
                        first: format!("{}:{}", known.system, known.port),
                        second: format!("{}:{}", peer.system, peer.port),
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Builds the topology file. `default` applies to links without a reported rate.
    ///
    /// # Errors
    /// If the reports contradict the rules of topologies: for example, two hosts have the same MAC address.
    pub fn build(mut self, default: LinkSpec) -> Result<Imported, ImportError> {
        let mut builder = TopologyBuilder::new();
        let mut routers = BTreeMap::new();
        for switch in &self.switches {
            routers.insert(switch.clone(), builder.add_router(switch.clone())?);
        }
        let endpoints = self.add_endpoints(&mut builder, &routers, default)?;
        self.add_links(&mut builder, &routers, default)?;
        let topology = builder.build()?;
        let toml = self.print(topology, &routers, &endpoints)?;
        Ok(Imported { toml, notes: self.notes })
    }

    fn add_endpoints(
        &mut self,
        builder: &mut TopologyBuilder,
        routers: &BTreeMap<String, RouterId>,
        default: LinkSpec,
    ) -> Result<BTreeMap<MacAddress, EndpointId>, ImportError> {
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        let mut found = BTreeMap::new();
        let hosts: Vec<(End, End)> =
            self.links().filter(|(_, peer)| !routers.contains_key(&peer.system)).collect();
        for (_, host) in &hosts {
            *seen.entry(host.system.clone()).or_default() += 1;
        }
        for (end, host) in &hosts {
            let name = match seen[&host.system] {
                1 => host.system.clone(),
                _ => format!("{}:{}", host.system, host.port),
            };
            let facts = self.hosts.get(host).cloned().unwrap_or_default();
            let endpoint =
                builder.add_endpoint(name.clone(), routers[&end.system], self.spec_of(end, default))?;
            builder.set_port_name(endpoint, &end.port)?;
            match facts.mac {
                Some(mac) => {
                    builder.set_mac(endpoint, mac)?;
                    found.insert(mac, endpoint);
                }
                None => self.note(format!(
                    "{name} has no known MAC address: set mac, which its packets are recognised by"
                )),
            }
            // Of a host with several links, the first has its addresses.
            if hosts
                .iter()
                .find(|(_, other)| other.system == host.system)
                .is_some_and(|(first, _)| first == end)
            {
                facts.ip.map_or(Ok(()), |ip| builder.set_ip(endpoint, ip))?;
                facts.ipv6.map_or(Ok(()), |ip| builder.set_ipv6(endpoint, ip))?;
            }
        }
        Ok(found)
    }

    fn add_links(
        &self,
        builder: &mut TopologyBuilder,
        routers: &BTreeMap<String, RouterId>,
        default: LinkSpec,
    ) -> Result<(), ImportError> {
        for (end, peer) in self.links() {
            let Some(&other) = routers.get(&peer.system) else { continue };
            // Each link is known from both ends.
            if end < peer {
                builder.connect(routers[&end.system], other, self.spec_of(&end, default))?;
                builder.set_last_link_port_names([&end.port, &peer.port])?;
            }
        }
        Ok(())
    }

    /// Returns the ports of switches with their peers, in order.
    fn links(&self) -> impl Iterator<Item = (End, End)> + use<> {
        let is_switch = |(end, _): &(&End, &End)| self.switches.contains(&end.system);
        let mut links: Vec<(End, End)> =
            self.peers.iter().filter(is_switch).map(|(end, peer)| (end.clone(), peer.clone())).collect();
        links.sort_by_cached_key(|(end, _)| (end.system.clone(), natural(&end.port)));
        links.into_iter()
    }

    fn spec_of(&self, end: &End, default: LinkSpec) -> LinkSpec {
        let peer = self.peers.get(end);
        let known = self.specs.get(end).or_else(|| self.specs.get(peer?));
        known.copied().unwrap_or(default)
    }

    fn print(
        &mut self,
        topology: Topology,
        routers: &BTreeMap<String, RouterId>,
        endpoints: &BTreeMap<MacAddress, EndpointId>,
    ) -> Result<String, ImportError> {
        if !self.has_tables {
            self.note("the forwarding is not known: thalweg serve needs the section [forwarding]");
            return Ok(topology.to_toml());
        }
        let mut links = LinkState::new(&topology);
        let mut entries = Vec::new();
        let port_of = |end: &End| {
            let router = *routers.get(&end.system)?;
            Some((router, topology.port_named(router, &end.port)?))
        };
        for (router, port) in self.down.iter().filter_map(&port_of) {
            // The link belongs to the topology.
            let _ = links.fail(topology.link_at(router, port));
        }
        let mut left_out = 0;
        for entry in &self.entries {
            let is_known =
                endpoints.contains_key(&entry.mac) || topology.endpoint_with_mac(entry.mac).is_some();
            match port_of(&entry.output) {
                Some((router, port)) if is_known => {
                    entries.push(Entry { router, mac: entry.mac, port });
                }
                _ => left_out += 1,
            }
        }
        if left_out > 0 {
            self.note(format!(
                "{left_out} flows were left out: their destination or output port has no known host or link"
            ));
        }
        let tables =
            Forwarding::table_list(&topology, &entries).map_err(|(_, error)| ImportError::Entry(error))?;
        Ok(NetworkState::new(topology, links, Forwarding::tables(tables))?.to_toml())
    }
}

/// Returns a key that sorts numbers within names as numbers.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, after) = rest.split_at(letters);
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let (number, after) = after.split_at(digits);
        parts.push((text.to_owned(), number.parse().unwrap_or(0)));
        rest = after;
    }
    parts
}
