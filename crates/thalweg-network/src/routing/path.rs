//! The path of a packet from its source to its destination.

use thiserror::Error;

use super::ecmp;
use super::forwarding::ForwardingTable;
use super::next_hops::NextHops;
use crate::identity::{EndpointId, LinkId, PortIndex, RouterId};
use crate::topology::{Node, Topology};

/// A router on a path, and the port by which the packet leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The router.
    pub router: RouterId,
    /// Its output port.
    pub port: PortIndex,
}

/// A path that arrives. Links that are down are no concern of it: a forwarding table leads over them all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    source: EndpointId,
    destination: EndpointId,
    hops: Vec<Hop>,
}

/// Why a packet does not arrive.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathError {
    /// There is no such endpoint.
    #[error("there is no endpoint {endpoint}")]
    UnknownEndpoint {
        /// The number given.
        endpoint: EndpointId,
    },
    /// A router does not know where to send it.
    #[error("{router} has no way to {destination}")]
    NoRoute {
        /// The router.
        router: RouterId,
        /// Where the packet was to go.
        destination: EndpointId,
    },
    /// A router would send it by a port that it does not have.
    #[error("{router} has no port {port}")]
    NoSuchPort {
        /// The router.
        router: RouterId,
        /// The port chosen.
        port: PortIndex,
    },
    /// A router would send it to an endpoint that is not its destination.
    #[error("{router} sends what is for {destination} to {endpoint}")]
    Misdelivered {
        /// The router.
        router: RouterId,
        /// Where the packet was to go.
        destination: EndpointId,
        /// Where it would go.
        endpoint: EndpointId,
    },
    /// It goes round for ever.
    #[error("what is for {destination} goes round in a loop through {router}")]
    Loop {
        /// A router on the loop.
        router: RouterId,
        /// Where the packet was to go.
        destination: EndpointId,
    },
}

impl Path {
    /// Where it begins.
    pub fn source(&self) -> EndpointId {
        self.source
    }

    /// Where it ends.
    pub fn destination(&self) -> EndpointId {
        self.destination
    }

    /// The routers on it, in order; at least one.
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }

    /// The links on it, in order: the source's first, the destination's last.
    ///
    /// # Panics
    /// If the path is one of another topology.
    pub fn links<'a>(&'a self, topology: &'a Topology) -> impl Iterator<Item = LinkId> + 'a {
        let hops = self.hops.iter().map(|hop| topology.link_at(hop.router, hop.port));
        std::iter::once(topology.endpoint_link(self.source)).chain(hops)
    }
}

/// The path of a packet if every router picks its port by `choose`, which answers the same each time.
///
/// # Errors
/// If an endpoint does not exist, or the packet does not arrive.
pub fn follow(
    topology: &Topology,
    source: EndpointId,
    destination: EndpointId,
    mut choose: impl FnMut(RouterId) -> Option<PortIndex>,
) -> Result<Path, PathError> {
    for endpoint in [source, destination] {
        if endpoint.index() >= topology.endpoints().len() {
            return Err(PathError::UnknownEndpoint { endpoint });
        }
    }
    let mut hops = Vec::new();
    let mut router = topology.router_of(source);
    loop {
        // Who has gone through as many routers as there are has been everywhere, or goes round; if a next router is
        // needed then, it is on the loop.
        if hops.len() == topology.routers().len() {
            return Err(PathError::Loop { router, destination });
        }
        let port = choose(router).ok_or(PathError::NoRoute { router, destination })?;
        let peer = topology.peers(router).get(port.index()).ok_or(PathError::NoSuchPort { router, port })?;
        hops.push(Hop { router, port });
        match peer.node {
            Node::Router(next) => router = next,
            Node::Endpoint(endpoint) if endpoint == destination => {
                return Ok(Path { source, destination, hops });
            }
            Node::Endpoint(endpoint) => {
                return Err(PathError::Misdelivered { router, destination, endpoint });
            }
        }
    }
}

/// The path of a flow's packets under [`ecmp`] with this seed.
///
/// # Errors
/// If an endpoint does not exist, or no path leads to the destination.
pub fn by_ecmp(
    topology: &Topology,
    next_hops: &NextHops,
    seed: u64,
    source: EndpointId,
    destination: EndpointId,
    flow: u32,
) -> Result<Path, PathError> {
    let word = ecmp::word(source, destination, flow);
    follow(topology, source, destination, |router| {
        ecmp::choose(next_hops.ports(router, destination), ecmp::hash(ecmp::salt(seed, router), word))
    })
}

/// The path of packets to one of the destination's addresses under forwarding tables, one a router. A router
/// without a table knows no way.
///
/// # Errors
/// If an endpoint does not exist, or the packet does not arrive.
pub fn by_tables(
    topology: &Topology,
    tables: &[ForwardingTable],
    source: EndpointId,
    destination: EndpointId,
    address: u8,
) -> Result<Path, PathError> {
    follow(topology, source, destination, |router| tables.get(router.index())?.port(destination, address))
}
