//! All shortest paths, by number of hops.
//!
//! A breadth-first search from every router that has endpoints, over links that are up, gives the distance of each
//! router. A port that leads one hop closer begins a shortest path. Ports are in ascending order, so the ECMP choice is
//! deterministic.
//!
//! # Memory and cost
//! 8 bytes per pair of a router and a rack. Equal port sets are stored once. In a fat tree an edge switch uses the same
//! uplinks for all destinations, so the sets stay in the L1 cache. Building takes time proportional to racks times
//! links: 2 s for the largest fat tree (k = 62, 59,582 endpoints). [`ports`](NextHops::ports) is two loads and a
//! comparison.

use std::collections::{BTreeMap, VecDeque};
use std::slice;

use thiserror::Error;

use crate::identity::{EndpointId, PortIndex, RouterId};
use crate::link_state::LinkState;
use crate::topology::{MAX_NODES, Node, Topology};

/// The maximum number of pairs of a router and a rack: 0.5 GiB.
pub const MAX_PAIRS: usize = 1 << 26;

/// The maximum number of ports in all distinct sets.
const MAX_POOL: usize = 1 << 26;

/// The distance of an unreachable router; longer than any path.
const UNREACHED: u16 = MAX_NODES as u16;

/// For each router and endpoint, the ports that begin a shortest path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextHops {
    /// By endpoint.
    locations: Box<[Location]>,
    /// By router, then by rack: the ports in the pool.
    sets: Box<[PortSet]>,
    racks: usize,
    pool: Box<[PortIndex]>,
}

/// The attachment of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Location {
    router: RouterId,
    port: PortIndex,
    /// The index of its router among those that have endpoints.
    rack: u16,
}

/// Ports `start..start + count` of the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PortSet {
    start: u32,
    count: u32,
}

/// The reason why next hops cannot be computed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextHopsError {
    /// The network is too large.
    #[error("network too large for ECMP: {routers} routers times {racks} racks exceed {MAX_PAIRS} pairs")]
    TooManyPairs {
        /// The number of routers.
        routers: usize,
        /// The number of routers that have endpoints.
        racks: usize,
    },
    /// The network is too irregular.
    #[error("network too irregular for ECMP: equal-cost port sets exceed {MAX_POOL} ports in total")]
    TooManyPorts,
    /// The link state belongs to another topology.
    #[error("the link state has {found} links, but the topology has {expected}")]
    OtherTopology {
        /// The number of links in the topology.
        expected: usize,
        /// The number of links in the link state.
        found: usize,
    },
}

impl NextHops {
    /// Computes all shortest paths over links that are up.
    ///
    /// # Errors
    /// If the network is too large, or `links` belongs to another network.
    pub fn new(topology: &Topology, links: &LinkState) -> Result<NextHops, NextHopsError> {
        let (expected, found) = (topology.links().len(), links.links());
        if expected != found {
            return Err(NextHopsError::OtherTopology { expected, found });
        }
        let with_endpoints = routers_with_endpoints(topology);
        let (routers, racks) = (topology.routers().len(), with_endpoints.len());
        check_pairs(routers, racks)?;

        let mut sets = vec![PortSet::default(); routers * racks];
        let mut pool = Pool::default();
        let mut search = Search::new(topology, links);
        let mut closer = Vec::new();
        for (rack, &home) in with_endpoints.iter().enumerate() {
            search.run(home);
            for router in topology.router_ids() {
                let entry = router.index() * racks + rack;
                search.ports_closer(router, &mut closer);
                // Usually a router reaches the next rack by the same ports as the previous one.
                let guess = sets[entry - rack.min(1)];
                sets[entry] = pool.set_of(&closer, guess)?;
            }
        }
        Ok(NextHops {
            locations: locations(topology, &with_endpoints),
            sets: sets.into(),
            racks,
            pool: pool.ports.into(),
        })
    }

    /// Checks that all shortest paths of a topology fit in memory. Cheap, unless the network is so large that the paths
    /// must be computed to find out.
    ///
    /// # Errors
    /// If the network is too large.
    pub fn check(topology: &Topology) -> Result<(), NextHopsError> {
        let racks = routers_with_endpoints(topology).len();
        check_pairs(topology.routers().len(), racks)?;
        let ports: usize = topology.router_ids().map(|router| topology.ports(router)).sum();
        match ports.saturating_mul(racks) <= MAX_POOL {
            true => Ok(()),
            false => NextHops::new(topology, &LinkState::new(topology)).map(|_| ()),
        }
    }

    /// Returns the ports of a router that begin a shortest path to an endpoint, in ascending order. At the endpoint's
    /// own router this is its port, even if its link is down. Empty if the endpoint is unreachable, or if the router or
    /// the endpoint does not exist.
    #[inline]
    pub fn ports(&self, router: RouterId, destination: EndpointId) -> &[PortIndex] {
        let Some(location) = self.locations.get(destination.index()) else { return &[] };
        if location.router == router {
            return slice::from_ref(&location.port);
        }
        match self.sets.get(router.index() * self.racks + usize::from(location.rack)) {
            Some(set) => &self.pool[set.start as usize..][..set.count as usize],
            None => &[],
        }
    }
}

fn routers_with_endpoints(topology: &Topology) -> Vec<RouterId> {
    topology.router_ids().filter(|&router| topology.rack_size(router) > 0).collect()
}

fn check_pairs(routers: usize, racks: usize) -> Result<(), NextHopsError> {
    match routers * racks <= MAX_PAIRS {
        true => Ok(()),
        false => Err(NextHopsError::TooManyPairs { routers, racks }),
    }
}

fn locations(topology: &Topology, with_endpoints: &[RouterId]) -> Box<[Location]> {
    let location = |endpoint| {
        let router = topology.router_of(endpoint);
        let rack = with_endpoints.binary_search(&router).expect("an endpoint's router has endpoints");
        Location { router, port: topology.port_of(endpoint), rack: rack as u16 }
    };
    topology.endpoint_ids().map(location).collect()
}

/// A breadth-first search from one router.
struct Search<'a> {
    topology: &'a Topology,
    links: &'a LinkState,
    distances: Vec<u16>,
    queue: VecDeque<RouterId>,
}

impl<'a> Search<'a> {
    fn new(topology: &'a Topology, links: &'a LinkState) -> Self {
        let distances = vec![UNREACHED; topology.routers().len()];
        Search { topology, links, distances, queue: VecDeque::new() }
    }

    fn run(&mut self, home: RouterId) {
        let Search { topology, links, distances, queue } = self;
        distances.fill(UNREACHED);
        distances[home.index()] = 0;
        queue.push_back(home);
        while let Some(router) = queue.pop_front() {
            let next = distances[router.index()] + 1;
            for (_, neighbour) in neighbours(topology, links, router) {
                let distance = &mut distances[neighbour.index()];
                if *distance == UNREACHED {
                    *distance = next;
                    queue.push_back(neighbour);
                }
            }
        }
    }

    /// Writes the ports of `router` that lead one hop closer into `closer`; none at the destination, or if it is
    /// unreachable.
    fn ports_closer(&self, router: RouterId, closer: &mut Vec<PortIndex>) {
        closer.clear();
        let here = self.distances[router.index()];
        if here == UNREACHED {
            return;
        }
        let ports = neighbours(self.topology, self.links, router);
        closer.extend(
            ports.filter(|(_, neighbour)| self.distances[neighbour.index()] < here).map(|(port, _)| port),
        );
    }
}

/// Returns the adjacent routers over links that are up, each with its port.
fn neighbours<'a>(
    topology: &'a Topology,
    links: &'a LinkState,
    router: RouterId,
) -> impl Iterator<Item = (PortIndex, RouterId)> + 'a {
    let any_down = !links.all_up();
    topology.peers(router).iter().zip((0..).map(PortIndex)).skip(topology.rack_size(router)).filter_map(
        move |(peer, port)| match peer.node {
            Node::Router(_) if any_down && !links.is_up(topology.link_at(router, port)) => None,
            Node::Router(neighbour) => Some((port, neighbour)),
            Node::Endpoint(_) => None,
        },
    )
}

/// Distinct port sets, each stored once.
#[derive(Default)]
struct Pool {
    ports: Vec<PortIndex>,
    known: BTreeMap<Box<[PortIndex]>, PortSet>,
}

impl Pool {
    /// Returns the set of the ports `wanted`, and tries `guess` first.
    fn set_of(&mut self, wanted: &[PortIndex], guess: PortSet) -> Result<PortSet, NextHopsError> {
        if self.ports[guess.start as usize..][..guess.count as usize] == *wanted {
            return Ok(guess);
        }
        if let Some(&set) = self.known.get(wanted) {
            return Ok(set);
        }
        if self.ports.len() + wanted.len() > MAX_POOL {
            return Err(NextHopsError::TooManyPorts);
        }
        let set = PortSet { start: self.ports.len() as u32, count: wanted.len() as u32 };
        self.ports.extend_from_slice(wanted);
        self.known.insert(wanted.into(), set);
        Ok(set)
    }
}
