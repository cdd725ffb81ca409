//! Spanning trees per address: several paths to every endpoint, installed in advance.
//!
//! **PAST** (Stephens et al., "PAST: Scalable Ethernet for Data Centers", CoNEXT 2012) has one tree for each
//! destination address, which all packets to that address follow. Here every endpoint has several addresses, each with
//! its own tree: its base address and shadow addresses (Rasley et al., "Planck", SIGCOMM 2014, section 6.2). A flow is
//! rerouted by changing its destination address.
//!
//! **A tree** comes from a breadth-first search from the destination, so every path is a shortest path. If several
//! ports lead one hop closer, the port closest to the tree's *root* is chosen, and of those the lowest. Roots are the
//! routers farthest from any endpoint: the core of a fat tree, the spines of a leaf-spine network. There each root
//! defines one tree, and trees of different roots share no link between routers, except the uplink of an edge switch.
//! The addresses of an endpoint use roots with numbers as far apart as possible. A hash of the endpoint and a seed
//! selects the first root, where PAST chooses at random.
//!
//! **The number of distinct paths** depends on the topology: with one shortest path, all trees are equal. [`Diversity`]
//! measures it.
//!
//! # Cost
//! One search per router that has endpoints and per root, and one pass over the ports per address of an endpoint: a few
//! milliseconds for 128 endpoints and 4 addresses. Runs when the topology changes, not when flows do.

use std::collections::{BTreeSet, VecDeque};

use super::ecmp;
use super::forwarding::ForwardingTable;
use super::path;
use crate::identity::{EndpointId, LinkId, PortIndex, RouterId};
use crate::link_state::LinkState;
use crate::topology::{Node, Topology};

/// The distance of an unreachable router.
const UNREACHED: u32 = u32::MAX;

/// Options of [`spanning_trees`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeOptions {
    /// The number of addresses per endpoint, the base address included. Default 4, as in the paper.
    pub addresses: u8,
    /// Selects the root of each endpoint's base address.
    pub seed: u64,
}

impl Default for TreeOptions {
    fn default() -> Self {
        TreeOptions { addresses: 4, seed: 1 }
    }
}

/// Returns forwarding tables by router, with a tree for every address of every endpoint over links that are up. An
/// unreachable address has no entry. 0 addresses mean 1.
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
        // By root, the port of each router, shared by the endpoints of a rack.
        let ports: Vec<Vec<Option<PortIndex>>> =
            to_root.iter().map(|to_root| ports(topology, links, &to_rack, to_root)).collect();
        for endpoint in topology.rack(rack) {
            let first = ecmp::hash(options.seed, u64::from(endpoint.0)) as usize;
            for address in 0..addresses {
                let root = (first + usize::from(address) * step) % roots.len();
                for (table, port) in tables.iter_mut().zip(&ports[root]) {
                    if let Some(port) = *port {
                        table.set(endpoint, address, port).expect("the table has room for every address");
                    }
                }
                let port = topology.port_of(endpoint);
                tables[rack.index()]
                    .set(endpoint, address, port)
                    .expect("the table has room for every address");
            }
        }
    }
    tables
}

/// Returns the routers farthest from any endpoint.
fn roots(topology: &Topology) -> Vec<RouterId> {
    let edges = topology.router_ids().filter(|&router| topology.rack_size(router) > 0);
    let heights = distances(topology, &LinkState::new(topology), edges);
    let highest = heights.iter().copied().filter(|&height| height != UNREACHED).max();
    topology.router_ids().filter(|router| Some(heights[router.index()]) == highest).collect()
}

/// Returns the hops from each router to the nearest router in `from`, over links that are up.
fn distances(topology: &Topology, links: &LinkState, from: impl IntoIterator<Item = RouterId>) -> Vec<u32> {
    let mut distances = vec![UNREACHED; topology.routers().len()];
    let mut queue: VecDeque<RouterId> = from.into_iter().collect();
    queue.iter().for_each(|router| distances[router.index()] = 0);
    while let Some(router) = queue.pop_front() {
        for (_, next) in neighbours(topology, links, router) {
            if distances[next.index()] == UNREACHED {
                distances[next.index()] = distances[router.index()] + 1;
                queue.push_back(next);
            }
        }
    }
    distances
}

/// Returns, by router, the port that leads closer to the destination; of several, the one closest to the root.
fn ports(topology: &Topology, links: &LinkState, to_rack: &[u32], to_root: &[u32]) -> Vec<Option<PortIndex>> {
    let best = |router: RouterId| {
        let closer = neighbours(topology, links, router)
            .filter(|(_, next)| to_rack[next.index()] < to_rack[router.index()]);
        closer.min_by_key(|&(port, next)| (to_root[next.index()], port)).map(|(port, _)| port)
    };
    topology.router_ids().map(best).collect()
}

/// Returns the adjacent routers over links that are up, each with its port.
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

/// Path diversity, over all pairs of endpoints at different routers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Diversity {
    /// The number of pairs of a source and a destination.
    pub pairs: u64,
    /// Pairs without a path for some address.
    pub incomplete: u64,
    /// Pairs whose addresses all have different paths.
    pub distinct: u64,
    /// Pairs with the maximum number of link-disjoint paths between routers: the uplinks of the edge switches at both
    /// ends, but no more than the addresses.
    pub disjoint: u64,
    /// The minimum number of different paths of a pair.
    pub min_paths: u64,
}

impl Diversity {
    /// Measures the path diversity of forwarding tables, for endpoints with `addresses` addresses.
    pub fn of(topology: &Topology, tables: &[ForwardingTable], addresses: u8) -> Diversity {
        let mut diversity = Diversity { min_paths: u64::MAX, ..Diversity::default() };
        let endpoints = || topology.endpoint_ids();
        for (source, destination) in endpoints().flat_map(|source| endpoints().map(move |to| (source, to))) {
            if topology.router_of(source) != topology.router_of(destination) {
                diversity.add(topology, tables, addresses, source, destination);
            }
        }
        if diversity.pairs == 0 {
            diversity.min_paths = 0;
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
        // Greedy selection, which suffices for trees.
        let mut used = BTreeSet::new();
        let mut disjoint = 0;
        for path in &paths {
            if path.iter().all(|link| !used.contains(link)) {
                used.extend(path.iter().copied());
                disjoint += 1;
            }
        }
        let uplinks = |endpoint| {
            let router = topology.router_of(endpoint);
            topology.ports(router) - topology.rack_size(router)
        };
        let max_disjoint = uplinks(source).min(uplinks(destination)).min(usize::from(addresses));
        self.pairs += 1;
        self.incomplete += u64::from(found < usize::from(addresses));
        self.distinct += u64::from(paths.len() == usize::from(addresses));
        self.disjoint += u64::from(disjoint >= max_disjoint);
        self.min_paths = self.min_paths.min(paths.len() as u64);
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
    fn every_core_switch_of_a_fat_tree_has_its_own_tree() {
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
        assert_eq!(diversity.distinct, 16 * 12, "pairs in one pod have only two paths");
        assert_eq!(diversity.min_paths, 2);
    }

    #[test]
    fn larger_fat_trees_use_all_uplinks() {
        let topology = fat_tree(8, Tiers::default()).unwrap();
        let tables = trees(&topology, &LinkState::new(&topology), 4, 3);
        let diversity = Diversity::of(&topology, &tables, 4);
        assert_eq!(diversity.disjoint, diversity.pairs);
        assert_eq!(diversity.distinct, diversity.pairs, "pairs in one pod have four paths too");
    }

    #[test]
    fn all_addresses_share_the_only_path() {
        let topology = dumbbell(3, Tiers::default()).unwrap();
        let tables = trees(&topology, &LinkState::new(&topology), 4, 1);
        let diversity = Diversity::of(&topology, &tables, 4);
        assert_eq!((diversity.pairs, diversity.distinct, diversity.min_paths), (18, 0, 1));
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

        /// With any links down, every address of a reachable endpoint has a shortest path over links that are up, and
        /// an unreachable endpoint has none.
        #[test]
        fn trees_are_shortest_paths_over_links_that_are_up(
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
