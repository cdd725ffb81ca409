//! The rules of switches: a destination address, the port it leads to, and what is written over it on the way.
//!
//! **Installing is incremental and idempotent.** [`Rules::changes_to`] is all that differs between what is installed and
//! what is wanted; applied twice it changes nothing the second time. Rules are added and changed before others are
//! removed, so that no address in use is without one in between.

use std::collections::BTreeMap;

use thalweg_network::routing::ForwardingTable;
use thalweg_network::{MacAddress, PortIndex, RouterId, Topology};

/// What a switch does with packets to one address. All of them are mirrored to the monitor port besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Where they leave.
    pub port: PortIndex,
    /// At the last switch, the base address that takes the place of a shadow address, without which the host would
    /// not take them.
    pub write_back: Option<MacAddress>,
}

/// The rules of all switches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    by_address: BTreeMap<(RouterId, MacAddress), Rule>,
}

/// A rule that is to be installed in place of whatever there is, or to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// At which switch.
    pub router: RouterId,
    /// For which destination address.
    pub address: MacAddress,
    /// The rule; `None` removes it.
    pub rule: Option<Rule>,
}

impl Rules {
    /// No rules.
    pub fn new() -> Rules {
        Rules::default()
    }

    /// The rules that forwarding tables come to, with addresses written back at the last switch.
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

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_address.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_address.is_empty()
    }

    /// All rules, by switch and address.
    pub fn iter(&self) -> impl Iterator<Item = (RouterId, MacAddress, Rule)> + '_ {
        self.by_address.iter().map(|(&(router, address), &rule)| (router, address, rule))
    }

    /// Those of one switch.
    pub fn at(&self, router: RouterId) -> Rules {
        let all = (router, MacAddress([0; 6]))..=(router, MacAddress([0xff; 6]));
        Rules { by_address: self.by_address.range(all).map(|(&place, &rule)| (place, rule)).collect() }
    }

    /// The rule of a switch for an address.
    pub fn get(&self, router: RouterId, address: MacAddress) -> Option<Rule> {
        self.by_address.get(&(router, address)).copied()
    }

    /// Carries a change out.
    pub fn apply(&mut self, change: &Change) {
        let place = (change.router, change.address);
        match change.rule {
            Some(rule) => self.by_address.insert(place, rule),
            None => self.by_address.remove(&place),
        };
    }

    /// What has to change so that these become `wanted`: first what is to be installed, then what is to be removed.
    pub fn changes_to(&self, wanted: &Rules) -> Vec<Change> {
        let change = |&(router, address): &(RouterId, MacAddress), rule| Change { router, address, rule };
        let installed =
            wanted.by_address.iter().filter(|(place, rule)| self.by_address.get(place) != Some(rule));
        let removed = self.by_address.keys().filter(|place| !wanted.by_address.contains_key(place));
        installed
            .map(|(place, &rule)| change(place, Some(rule)))
            .chain(removed.map(|place| change(place, None)))
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
            let place = |(router, mac): (u16, u8)| (RouterId(router), MacAddress([2, 0, 0, 0, 0, mac]));
            Rules { by_address: entries.into_iter().map(|(at, what)| (place(at), rule(what))).collect() }
        })
    }

    proptest! {
        #[test]
        fn changes_lead_there_and_twice_is_as_once(installed in any_rules(), wanted in any_rules()) {
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
