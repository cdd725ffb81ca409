//! The initial tables of switches, before a controller installs others.

use thalweg_network::routing::{ForwardingTable, NextHops, NextHopsError};
use thalweg_network::{EndpointId, Forwarding, LinkState, RouterId, Topology};

/// Default number of addresses per host: the base address and three shadow addresses (Planck, section 6.2).
pub const DEFAULT_ADDRESSES: u8 = 4;

/// Returns shortest paths to `addresses` addresses of every endpoint, over different switches where possible.
/// Address `a` of endpoint `e` has the number `n = e + a`. A switch with a rack and `u` uplinks uses uplink `n mod u`.
/// Other switches choose by `n / u`, where `u` is the largest number of uplinks of a rack. So successive addresses use
/// successive spines of a leaf-spine, and successive cores of a fat tree. One tree leads to each address (PAST:
/// Stephens et al., "PAST: Scalable Ethernet for Data Centers", CoNEXT 2012), because the choice does not depend on the
/// packet's source.
///
/// # Errors
/// If the network is too large.
pub fn shortest_path_tables(topology: &Topology, addresses: u8) -> Result<Forwarding, NextHopsError> {
    let next_hops = NextHops::new(topology, &LinkState::new(topology))?;
    let uplinks = |router| topology.ports(router) - topology.rack_size(router);
    let racks = topology.router_ids().filter(|&router| topology.rack_size(router) > 0);
    let stride = racks.map(uplinks).max().unwrap_or(1).max(1);
    let table = |router: RouterId| {
        let mut table = ForwardingTable::new(
            topology.endpoints().len() as u16,
            addresses.saturating_sub(1),
            topology.ports(router) as u16,
        );
        let divisor = if topology.rack_size(router) > 0 { 1 } else { stride };
        for endpoint in topology.endpoint_ids() {
            let ports = next_hops.ports(router, endpoint);
            for address in 0..addresses {
                if !ports.is_empty() {
                    let choice = number(endpoint, address) / divisor % ports.len();
                    table.set(endpoint, address, ports[choice]).expect("the table was made for this switch");
                }
            }
        }
        table
    };
    Ok(Forwarding::tables(topology.router_ids().map(table).collect()))
}

fn number(endpoint: EndpointId, address: u8) -> usize {
    endpoint.index() + usize::from(address)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use thalweg_network::routing::path::by_tables;

    use super::*;
    use crate::plan::{DEFAULT_RATE, Plan};

    #[test]
    fn every_address_is_reached_by_a_shortest_path() {
        for plan in [Plan::leaf_spine(DEFAULT_RATE).unwrap(), Plan::fat_tree_4(DEFAULT_RATE).unwrap()] {
            let topology = &plan.topology;
            let tables = shortest_path_tables(topology, DEFAULT_ADDRESSES).unwrap();
            for (from, to) in pairs(topology) {
                for address in 0..DEFAULT_ADDRESSES {
                    let path = by_tables(topology, tables.all_tables(), from, to, address).unwrap();
                    assert!([1, 3, 5].contains(&path.hops().len()), "{from} to {to}, address {address}");
                }
            }
        }
    }

    #[test]
    fn addresses_of_a_host_use_all_top_switches() {
        for (plan, top) in
            [(Plan::leaf_spine(DEFAULT_RATE).unwrap(), 2), (Plan::fat_tree_4(DEFAULT_RATE).unwrap(), 4)]
        {
            let topology = &plan.topology;
            let tables = shortest_path_tables(topology, DEFAULT_ADDRESSES).unwrap();
            let hosts = topology.endpoints().len() as u16;
            let (from, to) = (EndpointId(0), EndpointId(hosts - 1));
            let over = |address| {
                let path = by_tables(topology, tables.all_tables(), from, to, address).unwrap();
                path.hops()[path.hops().len() / 2].router
            };
            assert_eq!((0..DEFAULT_ADDRESSES).map(over).collect::<BTreeSet<_>>().len(), top);
        }
    }

    fn pairs(topology: &Topology) -> impl Iterator<Item = (EndpointId, EndpointId)> + '_ {
        let hosts = topology.endpoint_ids();
        hosts
            .flat_map(|from| topology.endpoint_ids().map(move |to| (from, to)))
            .filter(|(from, to)| from != to)
    }
}
