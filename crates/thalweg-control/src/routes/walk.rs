//! Whether rules that are installed lead everybody everywhere: each pair's packets, by each address, switch by switch.

use std::fmt;

use thalweg_network::routing::path::{PathError, follow};
use thalweg_network::{LinkId, LinkState, Topology};
use thiserror::Error;

use super::Rules;
use crate::pair::Pair;

/// A pair whose packets to one of the destination's addresses do not arrive, and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Astray {
    /// Whose packets.
    pub pair: Pair,
    /// To which of the destination's addresses.
    pub address: u8,
    /// Why they do not arrive.
    pub why: Why,
}

/// Why packets do not arrive.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// They end somewhere, or never.
    #[error(transparent)]
    NoPath(#[from] PathError),
    /// A link on the way is down.
    #[error("{0} on the way is down")]
    LinkDown(LinkId),
    /// The host is given packets to an address that is not its own.
    #[error("no switch writes the base address back")]
    NotWrittenBack,
}

impl Astray {
    /// As people read it: `h0 > h8 by address 1: why`.
    pub fn describe<'a>(&'a self, topology: &'a Topology) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| {
            write!(f, "{} by address {}: {}", self.pair.name(topology), self.address, self.why)
        })
    }
}

/// All who go astray: none if forwarding is complete and free of loops over links that are up, for each of the
/// `addresses` that endpoints have.
pub fn astray(topology: &Topology, links: &LinkState, rules: &Rules, addresses: u8) -> Vec<Astray> {
    let pairs = topology.endpoint_ids().flat_map(|source| {
        let others = topology.endpoint_ids().filter(move |&destination| destination != source);
        others.map(move |destination| Pair { source, destination })
    });
    pairs
        .flat_map(|pair| (0..addresses).map(move |address| (pair, address)))
        .filter_map(|(pair, address)| {
            let why = walk(topology, links, rules, pair, address).err()?;
            Some(Astray { pair, address, why })
        })
        .collect()
}

/// Follows the packets of a pair to an address.
fn walk(topology: &Topology, links: &LinkState, rules: &Rules, pair: Pair, address: u8) -> Result<(), Why> {
    let Pair { source, destination } = pair;
    let mut written = topology.mac(destination, address);
    let path = follow(topology, source, destination, |router| {
        let rule = rules.get(router, written)?;
        written = rule.write_back.unwrap_or(written);
        Some(rule.port)
    })?;
    if let Some(link) = path.links(topology).find(|&link| !links.is_up(link)) {
        return Err(Why::LinkDown(link));
    }
    if written != topology.mac(destination, 0) {
        return Err(Why::NotWrittenBack);
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

        fn astray(&self) -> Vec<Astray> {
            astray(&self.topology, &self.links, &self.rules, ADDRESSES)
        }

        /// Makes the last switch of host 0 do something else with what is for its address 1.
        fn spoil(&mut self, rule: impl FnOnce(Rule) -> Option<Rule>) {
            let router = self.topology.router_of(EndpointId(0));
            let address = self.topology.mac(EndpointId(0), 1);
            let rule = rule(self.rules.get(router, address).unwrap());
            self.rules.apply(&Change { router, address, rule });
        }
    }

    #[test]
    fn trees_lead_everybody_everywhere() {
        assert_eq!(Tree::new().astray(), []);
    }

    #[test]
    fn a_rule_that_is_missing_is_missed_by_all_who_need_it() {
        let mut tree = Tree::new();
        tree.spoil(|_| None);
        let astray = tree.astray();
        assert_eq!(astray.len(), 15, "everybody else sends to host 0");
        assert!(astray.iter().all(|astray| astray.address == 1 && astray.pair.destination == EndpointId(0)));
        assert!(matches!(astray[0].why, Why::NoPath(PathError::NoRoute { router: RouterId(_), .. })));
    }

    #[test]
    fn loops_wrong_hosts_and_shadow_addresses_are_told_apart() {
        let told_of = |spoil: &dyn Fn(&Topology, Rule) -> Rule| {
            let mut tree = Tree::new();
            let topology = tree.topology.clone();
            tree.spoil(|rule| Some(spoil(&topology, rule)));
            tree.astray().into_iter().map(|astray| astray.why).collect::<Vec<Why>>()
        };
        let uplink = |topology: &Topology| {
            let peers = topology.peers(topology.router_of(EndpointId(0)));
            PortIndex(peers.iter().position(|peer| matches!(peer.node, Node::Router(_))).unwrap() as u16)
        };
        let back_up = told_of(&|topology, _| Rule { port: uplink(topology), write_back: None });
        assert!(!back_up.is_empty());
        assert!(back_up.iter().all(|why| matches!(why, Why::NoPath(PathError::Loop { .. }))), "{back_up:?}");
        let next_door = told_of(&|topology, rule| Rule { port: topology.port_of(EndpointId(1)), ..rule });
        assert!(!next_door.is_empty());
        assert!(next_door.iter().all(|why| matches!(why, Why::NoPath(PathError::Misdelivered { .. }))));
        let as_it_came = told_of(&|_, rule| Rule { write_back: None, ..rule });
        assert_eq!(as_it_came, vec![Why::NotWrittenBack; 15]);
    }

    #[test]
    fn links_that_are_down_break_what_goes_over_them() {
        let mut tree = Tree::new();
        let link = tree.topology.link_at(RouterId(0), PortIndex(2));
        tree.links.fail(link).unwrap();
        let astray = tree.astray();
        assert!(!astray.is_empty() && astray.iter().all(|astray| astray.why == Why::LinkDown(link)));
        let around = spanning_trees(&tree.topology, &tree.links, TreeOptions::default());
        tree.rules = Rules::of_tables(&tree.topology, &around);
        assert_eq!(tree.astray(), [], "new trees lead around it");
    }
}
