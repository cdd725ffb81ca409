//! What a network is and does at one time: its topology, which links are up, and what its switches forward where.
//!
//! [`NetworkState`] is a value. A change makes another, which shares what stayed as it was; which was in force when a
//! packet went by is the matter of [`versions`](crate::versions).
//!
//! # Files
//! A state is read from the file of a [topology](crate::topology::file), TOML or JSON, with two sections more, and is
//! printed as one:
//!
//! ```toml
//! [link_state]             # optional: links that shortest paths do not go over, each by a port at either end
//! down = ["tor0:p3"]
//!
//! [forwarding]
//! kind = "ecmp"            # ECMP over shortest paths with the known hash; or "tables", and no other way
//! seed = 1                 # of ECMP
//! write_back = true        # optional: whether the last switch writes base addresses back
//! entries = [              # optional: what goes before ECMP, or all there is with tables
//!   { router = "tor0", mac = "02:54:57:01:00:05", port = 2 },
//! ]
//! ```
//!
//! # Memory and cost
//! The topology and the shortest paths are shared between states; tables take 2 bytes for each router, endpoint and
//! address.

mod file;
mod forwarding;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

pub use forwarding::{Entry, EntryError, Forwarding, MAX_PLACES};

use crate::identity::{EndpointId, LinkId, PortIndex, RouterId};
use crate::link_state::LinkState;
use crate::routing::{NextHops, NextHopsError, ecmp};
use crate::topology::{Node, Topology};

/// A topology, the state of its links, and the rules of its switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkState {
    topology: Arc<Topology>,
    links: LinkState,
    forwarding: Forwarding,
    /// All shortest paths, if packets go by them.
    next_hops: Option<Arc<NextHops>>,
}

/// Why there is no such state.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateError {
    /// The network is too large for ECMP, or the link state is another network's.
    #[error(transparent)]
    NextHops(#[from] NextHopsError),
    /// There are more tables than routers.
    #[error("there are forwarding tables for {tables} routers, and {routers} routers")]
    Tables {
        /// Number of tables.
        tables: usize,
        /// Number of routers.
        routers: usize,
    },
    /// A table was made for another network.
    #[error(
        "the table of router {router:?} is for {endpoints} endpoints and {ports} ports, more than there are"
    )]
    Table {
        /// Name of the router.
        router: String,
        /// Endpoints of the table.
        endpoints: usize,
        /// Ports of the table.
        ports: usize,
    },
}

/// What switches look at in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lookup {
    /// Whom it is for.
    pub(crate) destination: EndpointId,
    /// Which of the destination's addresses it has.
    pub(crate) address: u8,
    /// What ECMP hashes, if all of it is known.
    pub(crate) word: Option<u64>,
}

/// What a switch does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Sends it by this port.
    Port(PortIndex),
    /// Has no way for it.
    Nowhere,
    /// Chooses among several by a hash of what is not known of the packet.
    Unknown,
}

impl NetworkState {
    /// A network of this topology. `links` are those that shortest paths go over, which is what routing knows of them.
    ///
    /// # Errors
    /// If the links or the tables are those of another topology, or the network is too large for ECMP.
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

    /// The same network with other rules.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn with_forwarding(&self, forwarding: Forwarding) -> Result<NetworkState, StateError> {
        check_tables(&self.topology, &forwarding)?;
        if self.next_hops.is_none() && forwarding.seed().is_some() {
            return NetworkState::new(self.topology.clone(), self.links.clone(), forwarding);
        }
        let next_hops = self.next_hops.clone().filter(|_| forwarding.seed().is_some());
        Ok(NetworkState { forwarding, next_hops, ..self.clone() })
    }

    /// The same network with other links up.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn with_links(&self, links: LinkState) -> Result<NetworkState, StateError> {
        NetworkState::new(self.topology.clone(), links, self.forwarding.clone())
    }

    /// Who is attached to whom.
    #[inline]
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// Which links shortest paths go over.
    pub fn links(&self) -> &LinkState {
        &self.links
    }

    /// The rules of the switches.
    #[inline]
    pub fn forwarding(&self) -> &Forwarding {
        &self.forwarding
    }

    /// A port as people read it: `tor0:p3`.
    ///
    /// # Panics
    /// If there is no such router.
    pub fn port_name(&self, router: RouterId, port: PortIndex) -> impl fmt::Display + '_ {
        PortName { router: self.topology.name(Node::Router(router)), port }
    }

    /// A link as people read it, by the port at the router that it was connected to last: that of the endpoint, if it
    /// has one.
    pub(crate) fn link_name(&self, link: LinkId) -> String {
        let end = self.topology.links()[link.index()].ends[1];
        match end.node {
            Node::Router(router) => self.port_name(router, end.port).to_string(),
            Node::Endpoint(_) => unreachable!("of an endpoint's link, the endpoint comes first"),
        }
    }

    /// What `router` does with a packet.
    #[inline]
    pub(crate) fn choose(&self, router: RouterId, packet: &Lookup) -> Choice {
        let &Lookup { destination, address, word } = packet;
        if let Some(table) = self.forwarding.table(router)
            && let Some(port) = table.port(destination, address)
        {
            return Choice::Port(port);
        }
        let (Some(next_hops), Some(seed)) = (&self.next_hops, self.forwarding.seed()) else {
            return Choice::Nowhere;
        };
        match (next_hops.ports(router, destination), word) {
            ([], _) => Choice::Nowhere,
            (&[port], _) => Choice::Port(port),
            (_, None) => Choice::Unknown,
            (ports, Some(word)) => {
                let hash = ecmp::hash(ecmp::salt(seed, router), word);
                ecmp::choose(ports, hash).map_or(Choice::Nowhere, Choice::Port)
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
