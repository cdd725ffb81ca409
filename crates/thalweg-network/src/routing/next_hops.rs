//! All shortest paths, by number of hops.
//!
//! A breadth-first search from every router that has endpoints, over links that are up, gives each router its distance
//! to it; a port that leads one closer is on a shortest path. Ports are in ascending order, so that a choice among them
//! depends on nothing else.
//!
//! # Memory and cost
//! 8 bytes for each pair of a router and a rack. Sets of ports that are equal are kept once: in a fat tree, whose edge
//! switches go up by the same ports whatever is beyond, they stay in the first-level cache. Building takes time in
//! proportion to racks times links: 2 s for the largest fat tree (k = 62, 59,582 endpoints). [`ports`](NextHops::ports)
//! is two loads and a comparison.

use std::collections::{BTreeMap, VecDeque};
use std::slice;

use thiserror::Error;

use crate::identity::{EndpointId, PortIndex, RouterId};
use crate::link_state::LinkState;
use crate::topology::{MAX_NODES, Node, Topology};

/// Most pairs of a router and a rack: half a GiB of them.
pub const MAX_PAIRS: usize = 1 << 26;

/// Most ports in all sets that differ.
const MAX_POOL: usize = 1 << 26;

/// Distance of a router that is not reached; no path is so long.
const UNREACHED: u16 = MAX_NODES as u16;

/// From each router to each endpoint, the ports that begin a shortest path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextHops {
    /// By endpoint.
    homes: Box<[Home]>,
    /// By router, and within it by rack: where its ports are in the pool.
    sets: Box<[PortSet]>,
    racks: usize,
    pool: Box<[PortIndex]>,
}

/// Where an endpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Home {
    router: RouterId,
    port: PortIndex,
    /// Its router's number among those that have endpoints.
    rack: u16,
}

/// Ports `start..start + count` of the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PortSet {
    start: u32,
    count: u32,
}

/// Why next hops could not be found.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextHopsError {
    /// The network is too large.
    #[error("{routers} routers to {racks} racks are too many pairs to hold: at most {MAX_PAIRS}")]
    TooManyPairs {
        /// Number of routers.
        routers: usize,
        /// Number of routers that have endpoints.
        racks: usize,
    },
    /// The network is too irregular.
    #[error("the sets of equal-cost ports have more than {MAX_POOL} ports together")]
    TooManyPorts,
    /// The state is that of another topology.
    #[error("the link state has {found} links, and the topology {expected}")]
    OtherTopology {
        /// Links of the topology.
        expected: usize,
        /// Links of the state.
        found: usize,
    },
}

impl NextHops {
    /// Finds all shortest paths over links that are up.
    ///
    /// # Errors
    /// If the network is too large, or `links` belongs to another.
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
                // Most often a router goes to the next rack by the same ports as to this one.
                let guess = sets[entry - rack.min(1)];
                sets[entry] = pool.set_of(&closer, guess)?;
            }
        }
        Ok(NextHops {
            homes: homes(topology, &with_endpoints),
            sets: sets.into(),
            racks,
            pool: pool.ports.into(),
        })
    }

    /// Whether all shortest paths of a topology can be held. Costs next to nothing unless the network is so large that it has to
    /// be tried.
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

    /// The ports of a router by which a shortest path to an endpoint begins, in ascending order. At its own router this
    /// is the endpoint's port, whether its link is up or not; elsewhere, if no path leads there, there is none.
    /// Neither is there for a router or an endpoint that does not exist.
    #[inline]
    pub fn ports(&self, router: RouterId, destination: EndpointId) -> &[PortIndex] {
        let Some(home) = self.homes.get(destination.index()) else { return &[] };
        if home.router == router {
            return slice::from_ref(&home.port);
        }
        match self.sets.get(router.index() * self.racks + usize::from(home.rack)) {
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

fn homes(topology: &Topology, with_endpoints: &[RouterId]) -> Box<[Home]> {
    let home = |endpoint| {
        let router = topology.router_of(endpoint);
        let rack = with_endpoints.binary_search(&router).expect("an endpoint's router has endpoints");
        Home { router, port: topology.port_of(endpoint), rack: rack as u16 }
    };
    topology.endpoint_ids().map(home).collect()
}

/// Distances of all routers to one of them.
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

    /// Writes the ports of `router` that lead one hop closer into `closer`; none at the home itself, or if it
    /// cannot be reached.
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

/// The routers next to a router over links that are up, and by which ports.
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

/// Sets of ports, each kept once.
#[derive(Default)]
struct Pool {
    ports: Vec<PortIndex>,
    known: BTreeMap<Box<[PortIndex]>, PortSet>,
}

impl Pool {
    /// Where `wanted` is; it is looked for at `guess` first.
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
