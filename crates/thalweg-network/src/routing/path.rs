//! The path of a packet from its source to its destination.

use thiserror::Error;

use super::ecmp;
use super::forwarding::ForwardingTable;
use super::next_hops::NextHops;
use crate::identity::{EndpointId, LinkId, PortIndex, RouterId};
use crate::topology::{Node, Topology};

/// A router on a path, and its output port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The router.
    pub router: RouterId,
    /// Its output port.
    pub port: PortIndex,
}

/// A path that reaches its destination. It may use links that are down, because forwarding tables ignore link state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    source: EndpointId,
    destination: EndpointId,
    hops: Vec<Hop>,
}

/// The reason why a packet does not arrive.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathError {
    /// The endpoint does not exist.
    #[error("unknown endpoint {endpoint}")]
    UnknownEndpoint {
        /// The unknown endpoint.
        endpoint: EndpointId,
    },
    /// A router has no route to the destination.
    #[error("{router} has no route to {destination}")]
    NoRoute {
        /// The router.
        router: RouterId,
        /// The destination of the packet.
        destination: EndpointId,
    },
    /// A router chose a port that it does not have.
    #[error("{router} has no port {port}")]
    NoSuchPort {
        /// The router.
        router: RouterId,
        /// The chosen port.
        port: PortIndex,
    },
    /// A router forwards the packet to the wrong endpoint.
    #[error("{router} forwards packets for {destination} to {endpoint}")]
    Misdelivered {
        /// The router.
        router: RouterId,
        /// The destination of the packet.
        destination: EndpointId,
        /// The endpoint that receives it.
        endpoint: EndpointId,
    },
    /// The packet loops.
    #[error("packets for {destination} loop through {router}")]
    Loop {
        /// A router on the loop.
        router: RouterId,
        /// The destination of the packet.
        destination: EndpointId,
    },
}

impl Path {
    /// The source.
    pub fn source(&self) -> EndpointId {
        self.source
    }

    /// The destination.
    pub fn destination(&self) -> EndpointId {
        self.destination
    }

    /// The routers in path order; at least one.
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }

    /// Returns the links in path order: the source's first, the destination's last.
    ///
    /// # Panics
    /// If the path belongs to another topology.
    pub fn links<'a>(&'a self, topology: &'a Topology) -> impl Iterator<Item = LinkId> + 'a {
        let hops = self.hops.iter().map(|hop| topology.link_at(hop.router, hop.port));
        std::iter::once(topology.endpoint_link(self.source)).chain(hops)
    }
}

/// Follows a packet whose output port at each router is `choose(router)`, which must be deterministic.
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
        // A packet that has passed as many routers as exist and needs one more is in a loop.
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

/// Returns the path of a flow under [`ecmp`] with this seed.
///
/// # Errors
/// If an endpoint does not exist, or the destination is unreachable.
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

/// Returns the path to one address of the destination under forwarding tables, one per router. A router without a table
/// has no routes.
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
