//! The state of a network at one time: topology, link state, and forwarding state.
//!
//! [`NetworkState`] is immutable. A change creates a new state, which shares the unchanged parts.
//! [`versions`](crate::versions) finds the state that was active when a packet was forwarded.
//!
//! # Files
//! A [topology file](crate::topology::file), TOML or JSON, has two more sections for it:
//!
//! ```toml
//! [link_state]             # optional: links that are down, each named by a port at either end
//! down = ["tor0:p3"]
//!
//! [forwarding]
//! kind = "ecmp"            # ECMP over shortest paths with the known hash; or "tables" for table entries alone
//! seed = 1                 # seed of the ECMP hash
//! write_back = true        # optional: whether the last switch restores base addresses
//! entries = [              # optional: table entries, which take precedence over ECMP
//!   { router = "tor0", mac = "02:54:57:01:00:05", port = 2 },
//! ]
//! ```
//!
//! # Memory and cost
//! States share the topology and the shortest paths. Tables take 2 bytes per router, endpoint and address.

mod file;
mod forwarding;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

pub use forwarding::{Entry, EntryError, Forwarding, MAX_TABLE_SLOTS};

use crate::identity::{EndpointId, LinkId, PortIndex, RouterId};
use crate::link_state::LinkState;
use crate::routing::{NextHops, NextHopsError, ecmp};
use crate::topology::{Node, Topology};

/// A topology with its link state and forwarding state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkState {
    topology: Arc<Topology>,
    links: LinkState,
    forwarding: Forwarding,
    /// All shortest paths; `None` without ECMP.
    next_hops: Option<Arc<NextHops>>,
}

/// The reason why a state is invalid.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateError {
    /// The network is too large for ECMP, or the link state belongs to another network.
    #[error(transparent)]
    NextHops(#[from] NextHopsError),
    /// There are more tables than routers.
    #[error("{tables} forwarding tables for {routers} routers: expected at most one per router")]
    Tables {
        /// The number of tables.
        tables: usize,
        /// The number of routers.
        routers: usize,
    },
    /// A table belongs to another network.
    #[error(
        "the table of router {router:?} has {endpoints} endpoints and {ports} ports, more than the topology"
    )]
    Table {
        /// The name of the router.
        router: String,
        /// The number of endpoints in the table.
        endpoints: usize,
        /// The number of ports in the table.
        ports: usize,
    },
}

/// The fields of a packet that forwarding depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lookup {
    /// The destination.
    pub(crate) destination: EndpointId,
    /// The number of the destination's address.
    pub(crate) address: u8,
    /// The word that ECMP hashes; `None` if part of it is unknown.
    pub(crate) word: Option<u64>,
}

/// The forwarding choice of a switch for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The output port.
    Port(PortIndex),
    /// No route.
    NoRoute,
    /// One of several ports, by a hash of unknown fields.
    Unknown,
}

impl NetworkState {
    /// Creates a state. Shortest paths use the links that are up in `links`, which is the routing's view of link state.
    ///
    /// # Errors
    /// If the links or the tables belong to another topology, or the network is too large for ECMP.
    pub fn new(
        topology: impl Into<Arc<Topology>>,
        links: LinkState,
        forwarding: Forwarding,
    ) -> Result<NetworkState, StateError> {
        let topology = topology.into();
        let (expected, found) = (topology.links().len(), links.links());
        if expected != found {
            return Err(NextHopsError::OtherTopology { expected, found }.into());
        }
        check_tables(&topology, &forwarding)?;
        let next_hops = match forwarding.seed() {
            Some(_) => Some(Arc::new(NextHops::new(&topology, &links)?)),
            None => None,
        };
        Ok(NetworkState { topology, links, forwarding, next_hops })
    }

    /// Returns the same network with other forwarding state.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_forwarding(&self, forwarding: Forwarding) -> Result<NetworkState, StateError> {
        check_tables(&self.topology, &forwarding)?;
        if self.next_hops.is_none() && forwarding.seed().is_some() {
            return NetworkState::new(self.topology.clone(), self.links.clone(), forwarding);
        }
        let next_hops = self.next_hops.clone().filter(|_| forwarding.seed().is_some());
        Ok(NetworkState { forwarding, next_hops, ..self.clone() })
    }

    /// Returns the same network with other link state.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_links(&self, links: LinkState) -> Result<NetworkState, StateError> {
        NetworkState::new(self.topology.clone(), links, self.forwarding.clone())
    }

    /// Returns the same network without the names of ports.
    #[must_use]
    pub fn without_port_names(&self) -> NetworkState {
        NetworkState { topology: Arc::new(self.topology.without_port_names()), ..self.clone() }
    }

    /// The topology.
    #[inline]
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// The link state that shortest paths use.
    pub fn links(&self) -> &LinkState {
        &self.links
    }

    /// The forwarding state.
    #[inline]
    pub fn forwarding(&self) -> &Forwarding {
        &self.forwarding
    }

    /// Returns the name of a port: `tor0:p3`.
    ///
    /// # Panics
    /// If the router does not exist.
    pub fn port_name(&self, router: RouterId, port: PortIndex) -> impl fmt::Display + '_ {
        PortName { router: self.topology.name(Node::Router(router)), port }
    }

    /// Returns the name of a link: the port at its second end, which is a router. An endpoint is always the first end.
    pub(crate) fn link_name(&self, link: LinkId) -> String {
        let end = self.topology.links()[link.index()].ends[1];
        match end.node {
            Node::Router(router) => self.port_name(router, end.port).to_string(),
            Node::Endpoint(_) => unreachable!("an endpoint is the first end of its link"),
        }
    }

    /// Returns the forwarding choice of `router` for a packet.
    #[inline]
    pub(crate) fn choose(&self, router: RouterId, packet: &Lookup) -> Choice {
        let &Lookup { destination, address, word } = packet;
        if let Some(table) = self.forwarding.table(router)
            && let Some(port) = table.port(destination, address)
        {
            return Choice::Port(port);
        }
        let (Some(next_hops), Some(seed)) = (&self.next_hops, self.forwarding.seed()) else {
            return Choice::NoRoute;
        };
        match (next_hops.ports(router, destination), word) {
            ([], _) => Choice::NoRoute,
            (&[port], _) => Choice::Port(port),
            (_, None) => Choice::Unknown,
            (ports, Some(word)) => {
                let hash = ecmp::hash(ecmp::salt(seed, router), word);
                ecmp::choose(ports, hash).map_or(Choice::NoRoute, Choice::Port)
            }
        }
    }
}

fn check_tables(topology: &Topology, forwarding: &Forwarding) -> Result<(), StateError> {
    let (tables, routers) = (forwarding.all_tables(), topology.routers().len());
    if tables.len() > routers {
        return Err(StateError::Tables { tables: tables.len(), routers });
    }
    for (table, router) in tables.iter().zip(topology.router_ids()) {
        let (endpoints, ports) = (table.endpoints(), table.ports());
        if endpoints > topology.endpoints().len() || ports > topology.ports(router) {
            let router = topology.name(Node::Router(router)).to_owned();
            return Err(StateError::Table { router, endpoints, ports });
        }
    }
    Ok(())
}

struct PortName<'a> {
    router: &'a str,
    port: PortIndex,
}

impl fmt::Display for PortName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.router, self.port)
    }
}
