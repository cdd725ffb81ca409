//! Spanning trees by address: several ways to every endpoint, installed before they are needed.
//!
//! **PAST** (Stephens et al., "PAST: Scalable Ethernet for Data Centers", CoNEXT 2012) has one tree for each destination
//! address, along which packets come to it from everywhere. Here every endpoint has as many addresses, and trees, as asked
//! for: its base address and shadow addresses (Rasley et al., "Planck", SIGCOMM 2014, section 6.2). A flow changes
//! its path by changing its destination address.
//!
//! **A tree** is that of a breadth-first search from the destination, so that every path is a shortest one. Where several
//! ports lead one hop closer, the one is taken that comes closest to the tree's *root*, and of those the lowest. Roots are
//! the routers that are farthest from any endpoint: the core of a fat tree, the spines of a leaf-spine network. There
//! each root defines one tree, and the trees of different roots have no link between routers in common above the one that
//! an edge switch takes to reach them. The addresses of an endpoint take roots that are as far from each other, by
//! number, as possible; which is the first, a hash of the endpoint and a seed decides, as PAST chooses at random.
//!
//! **What is to be had** depends on the topology: where shortest paths do not differ, neither do trees. [`Diversity`]
//! counts it.
//!
//! # Cost
//! A search for each router that has endpoints and each root, and a look at every port for each address of an endpoint:
//! for 128 endpoints and 4 addresses a few milliseconds. Done when the topology changes, not when flows do.

use std::collections::{BTreeSet, VecDeque};

use super::ecmp;
use super::forwarding::ForwardingTable;
use super::path;
use crate::identity::{EndpointId, LinkId, PortIndex, RouterId};
use crate::link_state::LinkState;
use crate::topology::{Node, Topology};

/// Distance of what cannot be reached.
const UNREACHED: u32 = u32::MAX;

/// How many trees, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeOptions {
    /// Addresses an endpoint, the base address included. Default 4, as in the paper.
    pub addresses: u8,
    /// Decides which root an endpoint's base address has.
    pub seed: u64,
}

impl Default for TreeOptions {
    fn default() -> Self {
        TreeOptions { addresses: 4, seed: 1 }
    }
}

/// Forwarding tables by router: trees to every address of every endpoint, over links that are up. Where no path leads,
/// there is no entry. 0 addresses are taken for 1.
///
/// # Panics
/// If `links` belongs to another topology.
pub fn spanning_trees(topology: &Topology, links: &LinkState, options: TreeOptions) -> Vec<ForwardingTable> {
    let addresses = options.addresses.max(1);
    let endpoints = topology.endpoints().len() as u16;
    let table = |router| ForwardingTable::new(endpoints, addresses - 1, topology.ports(router) as u16);
    let mut tables: Vec<ForwardingTable> = topology.router_ids().map(table).collect();
    let roots = roots(topology);
    let step = (roots.len() / usize::from(addresses)).max(1);
    let to_root: Vec<Vec<u32>> = roots.iter().map(|&root| distances(topology, links, [root])).collect();
    for rack in topology.router_ids().filter(|&router| topology.rack_size(router) > 0) {
        let to_rack = distances(topology, links, [rack]);
        // By root, the port of each router; most endpoints of a rack share them.
        let ports: Vec<Vec<Option<PortIndex>>> =
            to_root.iter().map(|to_root| ports(topology, links, &to_rack, to_root)).collect();
        for endpoint in topology.rack(rack) {
            let first = ecmp::hash(options.seed, u64::from(endpoint.0)) as usize;
            for address in 0..addresses {
                let root = (first + usize::from(address) * step) % roots.len();
                for (table, port) in tables.iter_mut().zip(&ports[root]) {
                    if let Some(port) = *port {
                        table.set(endpoint, address, port).expect("the table was made for it");
                    }
                }
                let port = topology.port_of(endpoint);
                tables[rack.index()].set(endpoint, address, port).expect("the table was made for it");
            }
        }
    }
    tables
}

/// The routers that are farthest from any endpoint.
fn roots(topology: &Topology) -> Vec<RouterId> {
    let edges = topology.router_ids().filter(|&router| topology.rack_size(router) > 0);
    let heights = distances(topology, &LinkState::new(topology), edges);
    let highest = heights.iter().copied().filter(|&height| height != UNREACHED).max();
    topology.router_ids().filter(|router| Some(heights[router.index()]) == highest).collect()
}

/// Hops from each router to the nearest of some, over links that are up.
fn distances(topology: &Topology, links: &LinkState, from: impl IntoIterator<Item = RouterId>) -> Vec<u32> {
    let mut distances = vec![UNREACHED; topology.routers().len()];
    let mut coming: VecDeque<RouterId> = from.into_iter().collect();
    coming.iter().for_each(|router| distances[router.index()] = 0);
    while let Some(router) = coming.pop_front() {
        for (_, next) in neighbours(topology, links, router) {
            if distances[next.index()] == UNREACHED {
                distances[next.index()] = distances[router.index()] + 1;
                coming.push_back(next);
            }
        }
    }
    distances
}

/// By router, the port that leads closer to the destination, and of several the one that comes closest to the root.
fn ports(topology: &Topology, links: &LinkState, to_rack: &[u32], to_root: &[u32]) -> Vec<Option<PortIndex>> {
    let best = |router: RouterId| {
        let closer = neighbours(topology, links, router)
            .filter(|(_, next)| to_rack[next.index()] < to_rack[router.index()]);
        closer.min_by_key(|&(port, next)| (to_root[next.index()], port)).map(|(port, _)| port)
    };
    topology.router_ids().map(best).collect()
}

/// The routers next to one, over links that are up, and the ports that lead there.
fn neighbours<'a>(
    topology: &'a Topology,
    links: &'a LinkState,
    router: RouterId,
) -> impl Iterator<Item = (PortIndex, RouterId)> + 'a {
    let peers = (0..).map(PortIndex).zip(topology.peers(router));
    peers.filter_map(move |(port, peer)| match peer.node {
        Node::Router(next) if links.is_up(topology.link_at(router, port)) => Some((port, next)),
        _ => None,
    })
}

/// How much the ways to an endpoint differ, over all pairs of endpoints that are not at the same router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Diversity {
    /// Pairs of a source and a destination.
    pub pairs: u64,
    /// Pairs that some address does not lead to.
    pub incomplete: u64,
    /// Pairs whose addresses all have paths of their own.
    pub distinct: u64,
    /// Pairs whose addresses have as many paths without a common link between routers as the edge switches at both ends
    /// have links to routers, or as there are addresses.
    pub disjoint: u64,
    /// Fewest different paths of a pair.
    pub fewest: u64,
}

impl Diversity {
    /// Of these tables, each for endpoints with so many addresses.
    pub fn of(topology: &Topology, tables: &[ForwardingTable], addresses: u8) -> Diversity {
        let mut diversity = Diversity { fewest: u64::MAX, ..Diversity::default() };
        let endpoints = || topology.endpoint_ids();
        for (source, destination) in endpoints().flat_map(|source| endpoints().map(move |to| (source, to))) {
            if topology.router_of(source) != topology.router_of(destination) {
                diversity.add(topology, tables, addresses, source, destination);
            }
        }
        if diversity.pairs == 0 {
            diversity.fewest = 0;
        }
        diversity
    }

    fn add(
        &mut self,
        topology: &Topology,
        tables: &[ForwardingTable],
        addresses: u8,
        source: EndpointId,
        destination: EndpointId,
    ) {
        let along = |address| {
            let path = path::by_tables(topology, tables, source, destination, address).ok()?;
            let mut links: Vec<LinkId> = path.links(topology).skip(1).collect();
            links.pop();
            Some(links)
        };
        let paths: BTreeSet<Vec<LinkId>> = (0..addresses).filter_map(along).collect();
        let found = (0..addresses).filter(|&address| along(address).is_some()).count();
        // Greedily, the first paths first: enough to tell trees apart.
        let mut taken = BTreeSet::new();
        let mut apart = 0;
        for path in &paths {
            if path.iter().all(|link| !taken.contains(link)) {
                taken.extend(path.iter().copied());
                apart += 1;
            }
        }
        let uplinks = |endpoint| {
            let router = topology.router_of(endpoint);
            topology.ports(router) - topology.rack_size(router)
        };
        let most = uplinks(source).min(uplinks(destination)).min(usize::from(addresses));
        self.pairs += 1;
        self.incomplete += u64::from(found < usize::from(addresses));
        self.distinct += u64::from(paths.len() == usize::from(addresses));
        self.disjoint += u64::from(apart >= most);
        self.fewest = self.fewest.min(paths.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::routing::NextHops;
    use crate::topology::LinkSpec;
    use crate::topology::shapes::{Tiers, dumbbell, fat_tree, leaf_spine};

    fn trees(topology: &Topology, links: &LinkState, addresses: u8, seed: u64) -> Vec<ForwardingTable> {
        spanning_trees(topology, links, TreeOptions { addresses, seed })
    }

    #[test]
    fn every_core_switch_of_a_fat_tree_has_a_tree_of_its_own() {
        let topology = fat_tree(4, Tiers::default()).unwrap();
        let tables = trees(&topology, &LinkState::new(&topology), 4, 1);
        let (from, to) = (EndpointId(0), EndpointId(15));
        let tops: BTreeSet<RouterId> = (0..4)
            .map(|address| path::by_tables(&topology, &tables, from, to, address).unwrap().hops()[2].router)
            .collect();
        assert_eq!(tops.len(), 4, "four addresses, four core switches");
        let diversity = Diversity::of(&topology, &tables, 4);
        assert_eq!((diversity.pairs, diversity.incomplete), (16 * 14, 0));
        assert_eq!(
            diversity.disjoint, diversity.pairs,
            "as many disjoint paths as an edge switch has uplinks"
        );
        assert_eq!(diversity.distinct, 16 * 12, "pairs in one pod have two ways only");
        assert_eq!(diversity.fewest, 2);
    }

    #[test]
    fn larger_fat_trees_use_all_uplinks() {
        let topology = fat_tree(8, Tiers::default()).unwrap();
        let tables = trees(&topology, &LinkState::new(&topology), 4, 3);
        let diversity = Diversity::of(&topology, &tables, 4);
        assert_eq!(diversity.disjoint, diversity.pairs);
        assert_eq!(diversity.distinct, diversity.pairs, "in a pod there are four ways, too");
    }

    #[test]
    fn where_there_is_one_way_all_addresses_take_it() {
        let topology = dumbbell(3, Tiers::default()).unwrap();
        let tables = trees(&topology, &LinkState::new(&topology), 4, 1);
        let diversity = Diversity::of(&topology, &tables, 4);
        assert_eq!((diversity.pairs, diversity.distinct, diversity.fewest), (18, 0, 1));
        assert_eq!(diversity.disjoint, diversity.pairs, "one uplink, one path");
    }

    #[test]
    fn base_addresses_are_spread_over_roots() {
        let topology = leaf_spine(4, 4, 16, Tiers::default()).unwrap();
        let tables = trees(&topology, &LinkState::new(&topology), 4, 1);
        let mut uses = [0; 4];
        for destination in topology.endpoint_ids().skip(16) {
            let port = tables[0].port(destination, 0).unwrap();
            uses[port.index() - 16] += 1;
        }
        assert_eq!(uses.iter().sum::<i32>(), 48);
        assert!(uses.iter().all(|&uses| uses >= 6), "{uses:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        /// With any links down: whoever can be reached is reached by every address, over a shortest path and links that
        /// are up; and nobody else is.
        #[test]
        fn trees_are_shortest_paths_over_what_is_up(
            down in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
            addresses in 1u8..7,
            seed: u64,
            spines in 1u32..5,
        ) {
            let tiers = Tiers { access: LinkSpec::default(), uplink: LinkSpec::default() };
            for topology in [fat_tree(4, tiers).unwrap(), leaf_spine(3, spines, 2, tiers).unwrap()] {
                let mut links = LinkState::new(&topology);
                let between: Vec<LinkId> = (0..topology.links().len() as u32).map(LinkId).filter(|link| {
                    topology.links()[link.index()].ends.iter().all(|end| matches!(end.node, Node::Router(_)))
                }).collect();
                for index in &down {
                    links.fail(*index.get(&between)).unwrap();
                }
                let tables = trees(&topology, &links, addresses, seed);
                let shortest = NextHops::new(&topology, &links).unwrap();
                for (from, to) in topology.endpoint_ids().flat_map(|from| topology.endpoint_ids().map(move |to| (from, to))) {
                    for address in 0..addresses {
                        let expected = path::by_ecmp(&topology, &shortest, 1, from, to, 0);
                        let found = path::by_tables(&topology, &tables, from, to, address);
                        prop_assert_eq!(found.is_ok(), expected.is_ok());
                        if let (Ok(found), Ok(expected)) = (found, expected) {
                            prop_assert_eq!(found.hops().len(), expected.hops().len());
                            prop_assert!(found.links(&topology).all(|link| links.is_up(link)));
                        }
                    }
                }
            }
        }
    }
}
