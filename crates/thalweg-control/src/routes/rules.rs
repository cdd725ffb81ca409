//! Rules of switches: by destination address, the output port and the address to write.
//!
//! **Installation is incremental and idempotent.** [`Rules::changes_to`] returns the difference between installed and
//! wanted rules; applying it twice has no further effect. Additions and changes precede removals, so that no address
//! in use is ever without a rule.

use std::collections::BTreeMap;

use thalweg_network::routing::ForwardingTable;
use thalweg_network::{MacAddress, PortIndex, RouterId, Topology};

/// What a switch does with packets to one address. It also mirrors them to the monitor port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The output port.
    pub port: PortIndex,
    /// At the last switch: the base address that replaces a shadow address. The host would drop packets to a shadow
    /// address.
    pub write_back: Option<MacAddress>,
}

/// The rules of all switches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    by_address: BTreeMap<(RouterId, MacAddress), Rule>,
}

/// A rule to install, whether or not one exists, or to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The switch.
    pub router: RouterId,
    /// The destination address.
    pub address: MacAddress,
    /// The rule; `None` removes it.
    pub rule: Option<Rule>,
}

impl Rules {
    /// Creates an empty set.
    pub fn new() -> Rules {
        Rules::default()
    }

    /// Returns the rules for these forwarding tables. The last switch writes base addresses back.
    pub fn of_tables(topology: &Topology, tables: &[ForwardingTable]) -> Rules {
        let mut by_address = BTreeMap::new();
        for (router, table) in topology.router_ids().zip(tables) {
            for (endpoint, address, port) in table.entries() {
                let is_last = topology.router_of(endpoint) == router;
                let write_back = (is_last && address > 0).then(|| topology.mac(endpoint, 0));
                by_address.insert((router, topology.mac(endpoint, address)), Rule { port, write_back });
            }
        }
        Rules { by_address }
    }

    /// Returns the number of rules.
    pub fn len(&self) -> usize {
        self.by_address.len()
    }

    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.by_address.is_empty()
    }

    /// Returns all rules, by switch and address.
    pub fn iter(&self) -> impl Iterator<Item = (RouterId, MacAddress, Rule)> + '_ {
        self.by_address.iter().map(|(&(router, address), &rule)| (router, address, rule))
    }

    /// Returns the rules of one switch.
    pub fn at(&self, router: RouterId) -> Rules {
        let all = (router, MacAddress([0; 6]))..=(router, MacAddress([0xff; 6]));
        Rules { by_address: self.by_address.range(all).map(|(&key, &rule)| (key, rule)).collect() }
    }

    /// Returns the rule of a switch for an address.
    pub fn get(&self, router: RouterId, address: MacAddress) -> Option<Rule> {
        self.by_address.get(&(router, address)).copied()
    }

    /// Applies a change.
    pub fn apply(&mut self, change: &Change) {
        let key = (change.router, change.address);
        match change.rule {
            Some(rule) => self.by_address.insert(key, rule),
            None => self.by_address.remove(&key),
        };
    }

    /// Returns the changes from these rules to `wanted`: first installations, then removals.
    pub fn changes_to(&self, wanted: &Rules) -> Vec<Change> {
        let change = |&(router, address): &(RouterId, MacAddress), rule| Change { router, address, rule };
        let installed = wanted.by_address.iter().filter(|(key, rule)| self.by_address.get(key) != Some(rule));
        let removed = self.by_address.keys().filter(|key| !wanted.by_address.contains_key(key));
        installed
            .map(|(key, &rule)| change(key, Some(rule)))
            .chain(removed.map(|key| change(key, None)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use thalweg_network::routing::{TreeOptions, spanning_trees};
    use thalweg_network::topology::shapes::{Tiers, leaf_spine};
    use thalweg_network::{EndpointId, LinkState};

    use super::*;

    #[test]
    fn the_last_switch_writes_base_addresses_back() {
        let topology = leaf_spine(2, 2, 2, Tiers::default()).unwrap();
        let tables =
            spanning_trees(&topology, &LinkState::new(&topology), TreeOptions { addresses: 2, seed: 1 });
        let rules = Rules::of_tables(&topology, &tables);
        assert_eq!(rules.len(), 4 * 4 * 2, "four switches, four endpoints, two addresses");
        let (leaf, far) = (RouterId(0), RouterId(1));
        let (base, shadow) = (topology.mac(EndpointId(1), 0), topology.mac(EndpointId(1), 1));
        let last = rules.get(leaf, shadow).unwrap();
        assert_eq!(last, Rule { port: PortIndex(1), write_back: Some(base) });
        assert_eq!(rules.get(leaf, base).unwrap().write_back, None);
        assert_eq!(rules.get(far, shadow).unwrap().write_back, None);
    }

    fn any_rules() -> impl Strategy<Value = Rules> {
        let entry = ((0u16..3, 0u8..6), (0u16..3, any::<bool>()));
        prop::collection::vec(entry, 0..20).prop_map(|entries| {
            let rule = |(port, written): (u16, bool)| Rule {
                port: PortIndex(port),
                write_back: written.then_some(MacAddress([2, 0, 0, 0, 0, 9])),
            };
            let key = |(router, mac): (u16, u8)| (RouterId(router), MacAddress([2, 0, 0, 0, 0, mac]));
            Rules { by_address: entries.into_iter().map(|(at, entry)| (key(at), rule(entry))).collect() }
        })
    }

    proptest! {
        #[test]
        fn changes_reach_the_wanted_rules_and_are_idempotent(installed in any_rules(), wanted in any_rules()) {
            let changes = installed.changes_to(&wanted);
            let mut reached = installed.clone();
            changes.iter().for_each(|change| reached.apply(change));
            prop_assert_eq!(&reached, &wanted);
            prop_assert!(reached.changes_to(&wanted).is_empty());
            changes.iter().for_each(|change| reached.apply(change));
            prop_assert_eq!(&reached, &wanted);
            let removals = changes.iter().map(|change| change.rule.is_none());
            prop_assert!(removals.is_sorted(), "nothing is removed before all is installed");
        }
    }
}
