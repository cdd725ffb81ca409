//! Verifies that installed rules deliver the packets of every pair, for each address, switch by switch.

use std::fmt;

use thalweg_network::routing::path::{PathError, follow};
use thalweg_network::{LinkId, LinkState, Topology};
use thiserror::Error;

use super::Rules;
use crate::pair::Pair;

/// A pair whose packets to one destination address do not arrive, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenPath {
    /// The pair.
    pub pair: Pair,
    /// Index of the destination address.
    pub address: u8,
    /// Why packets do not arrive.
    pub fault: PathFault,
}

/// Why packets do not arrive.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathFault {
    /// The path ends elsewhere, or loops.
    #[error(transparent)]
    NoPath(#[from] PathError),
    /// A link of the path is down.
    #[error("{0} is down")]
    LinkDown(LinkId),
    /// The host receives packets to a shadow address and drops them.
    #[error("no switch on the path writes the base address back")]
    NotWrittenBack,
}

impl BrokenPath {
    /// Returns a description: `h0 > h8 by address 1: fault`.
    pub fn describe<'a>(&'a self, topology: &'a Topology) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| {
            write!(f, "{} by address {}: {}", self.pair.name(topology), self.address, self.fault)
        })
    }
}

/// Returns all broken paths. The result is empty if forwarding is complete, free of loops and uses only links that
/// are up, for each of the `addresses` of endpoints.
pub fn broken_paths(topology: &Topology, links: &LinkState, rules: &Rules, addresses: u8) -> Vec<BrokenPath> {
    let pairs = topology.endpoint_ids().flat_map(|source| {
        let others = topology.endpoint_ids().filter(move |&destination| destination != source);
        others.map(move |destination| Pair { source, destination })
    });
    pairs
        .flat_map(|pair| (0..addresses).map(move |address| (pair, address)))
        .filter_map(|(pair, address)| {
            let fault = walk(topology, links, rules, pair, address).err()?;
            Some(BrokenPath { pair, address, fault })
        })
        .collect()
}

/// Follows the packets of a pair to an address.
fn walk(
    topology: &Topology,
    links: &LinkState,
    rules: &Rules,
    pair: Pair,
    address: u8,
) -> Result<(), PathFault> {
    let Pair { source, destination } = pair;
    let mut written = topology.mac(destination, address);
    let path = follow(topology, source, destination, |router| {
        let rule = rules.get(router, written)?;
        written = rule.write_back.unwrap_or(written);
        Some(rule.port)
    })?;
    if let Some(link) = path.links(topology).find(|&link| !links.is_up(link)) {
        return Err(PathFault::LinkDown(link));
    }
    if written != topology.mac(destination, 0) {
        return Err(PathFault::NotWrittenBack);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use thalweg_network::routing::{TreeOptions, spanning_trees};
    use thalweg_network::topology::shapes::{Tiers, fat_tree};
    use thalweg_network::{EndpointId, Node, PortIndex, RouterId};

    use super::*;
    use crate::routes::{Change, Rule};

    const ADDRESSES: u8 = 4;

    struct Tree {
        topology: Topology,
        links: LinkState,
        rules: Rules,
    }

    impl Tree {
        fn new() -> Tree {
            let topology = fat_tree(4, Tiers::default()).unwrap();
            let links = LinkState::new(&topology);
            let tables = spanning_trees(&topology, &links, TreeOptions::default());
            let rules = Rules::of_tables(&topology, &tables);
            Tree { topology, links, rules }
        }

        fn broken_paths(&self) -> Vec<BrokenPath> {
            broken_paths(&self.topology, &self.links, &self.rules, ADDRESSES)
        }

        /// Replaces the rule for address 1 at the last switch of host 0.
        fn corrupt(&mut self, rule: impl FnOnce(Rule) -> Option<Rule>) {
            let router = self.topology.router_of(EndpointId(0));
            let address = self.topology.mac(EndpointId(0), 1);
            let rule = rule(self.rules.get(router, address).unwrap());
            self.rules.apply(&Change { router, address, rule });
        }
    }

    #[test]
    fn trees_connect_all_pairs() {
        assert_eq!(Tree::new().broken_paths(), []);
    }

    #[test]
    fn a_missing_rule_breaks_all_paths_that_use_it() {
        let mut tree = Tree::new();
        tree.corrupt(|_| None);
        let broken = tree.broken_paths();
        assert_eq!(broken.len(), 15, "all other hosts send to host 0");
        assert!(broken.iter().all(|path| path.address == 1 && path.pair.destination == EndpointId(0)));
        assert!(matches!(broken[0].fault, PathFault::NoPath(PathError::NoRoute { router: RouterId(_), .. })));
    }

    #[test]
    fn faults_are_distinguished() {
        let faults = |corrupt: &dyn Fn(&Topology, Rule) -> Rule| {
            let mut tree = Tree::new();
            let topology = tree.topology.clone();
            tree.corrupt(|rule| Some(corrupt(&topology, rule)));
            tree.broken_paths().into_iter().map(|path| path.fault).collect::<Vec<PathFault>>()
        };
        let uplink = |topology: &Topology| {
            let peers = topology.peers(topology.router_of(EndpointId(0)));
            PortIndex(peers.iter().position(|peer| matches!(peer.node, Node::Router(_))).unwrap() as u16)
        };
        let back_up = faults(&|topology, _| Rule { port: uplink(topology), write_back: None });
        assert!(!back_up.is_empty());
        assert!(
            back_up.iter().all(|fault| matches!(fault, PathFault::NoPath(PathError::Loop { .. }))),
            "{back_up:?}"
        );
        let next_door = faults(&|topology, rule| Rule { port: topology.port_of(EndpointId(1)), ..rule });
        assert!(!next_door.is_empty());
        assert!(
            next_door.iter().all(|fault| matches!(fault, PathFault::NoPath(PathError::Misdelivered { .. })))
        );
        let as_it_came = faults(&|_, rule| Rule { write_back: None, ..rule });
        assert_eq!(as_it_came, vec![PathFault::NotWrittenBack; 15]);
    }

    #[test]
    fn a_failed_link_breaks_the_paths_over_it() {
        let mut tree = Tree::new();
        let link = tree.topology.link_at(RouterId(0), PortIndex(2));
        tree.links.fail(link).unwrap();
        let broken = tree.broken_paths();
        assert!(!broken.is_empty() && broken.iter().all(|path| path.fault == PathFault::LinkDown(link)));
        let around = spanning_trees(&tree.topology, &tree.links, TreeOptions::default());
        tree.rules = Rules::of_tables(&tree.topology, &around);
        assert_eq!(tree.broken_paths(), [], "new trees avoid the link");
    }
}
