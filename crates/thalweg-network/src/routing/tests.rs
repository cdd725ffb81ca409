//! Paths are shortest, complete and free of loops in any network.

use proptest::prelude::*;

use super::*;
use crate::identity::{EndpointId, LinkId, PortIndex, RouterId};
use crate::link_state::LinkState;
use crate::topology::shapes::{SHAPES, Tiers, fat_tree, leaf_spine, racks};
use crate::topology::{LinkSpec, Node, Topology, TopologyBuilder};

/// The distance of an unreachable router.
const FAR: usize = 1_000_000;

/// Computes the hops between all routers by the Floyd-Warshall algorithm.
fn distances(topology: &Topology, links: &LinkState) -> Vec<Vec<usize>> {
    let n = topology.routers().len();
    let mut distances = vec![vec![FAR; n]; n];
    for (index, link) in topology.links().iter().enumerate() {
        if let [Node::Router(a), Node::Router(b)] = link.ends.map(|end| end.node)
            && links.is_up(LinkId(index as u32))
        {
            distances[a.index()][b.index()] = 1;
            distances[b.index()][a.index()] = 1;
        }
    }
    for (router, row) in distances.iter_mut().enumerate() {
        row[router] = 0;
    }
    for via in 0..n {
        for from in 0..n {
            for to in 0..n {
                distances[from][to] = distances[from][to].min(distances[from][via] + distances[via][to]);
            }
        }
    }
    distances
}

/// Returns the ports that begin a shortest path, from the distances.
fn ports_by_distance(
    topology: &Topology,
    links: &LinkState,
    distances: &[Vec<usize>],
    router: RouterId,
    destination: EndpointId,
) -> Vec<PortIndex> {
    let home = topology.router_of(destination);
    if router == home {
        return vec![topology.port_of(destination)];
    }
    let here = distances[router.index()][home.index()];
    let leads_closer = |&port: &PortIndex| match topology.peer(router, port).node {
        Node::Router(next) => {
            links.is_up(topology.link_at(router, port))
                && here < FAR
                && distances[next.index()][home.index()] + 1 == here
        }
        Node::Endpoint(_) => false,
    };
    (0..topology.ports(router) as u16).map(PortIndex).filter(leads_closer).collect()
}

/// Any network with some links down; parallel links and islands are included.
fn networks() -> impl Strategy<Value = (Topology, LinkState)> {
    let parts = (
        1u16..14,
        prop::collection::vec(0u16..14, 1..20),
        prop::collection::vec((0u16..14, 0u16..14), 0..40),
        prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    );
    parts.prop_map(|(routers, endpoints, links, failures)| {
        let mut builder = TopologyBuilder::new();
        for router in 0..routers {
            builder.add_router(format!("r{router}")).unwrap();
        }
        for (index, router) in endpoints.into_iter().enumerate() {
            builder
                .add_endpoint(format!("h{index}"), RouterId(router % routers), LinkSpec::default())
                .unwrap();
        }
        for (a, b) in links {
            // A link of a router to itself is rejected and left out.
            let _ = builder.connect(RouterId(a % routers), RouterId(b % routers), LinkSpec::default());
        }
        let topology = builder.build().unwrap();
        let mut state = LinkState::new(&topology);
        for failure in failures {
            state.fail(LinkId(failure.index(topology.links().len()) as u32)).unwrap();
        }
        (topology, state)
    })
}

fn pairs(topology: &Topology) -> impl Iterator<Item = (EndpointId, EndpointId)> + '_ {
    topology.endpoint_ids().flat_map(|from| topology.endpoint_ids().map(move |to| (from, to)))
}

proptest! {
    #[test]
    fn next_hops_lead_closer_to_the_destination((topology, links) in networks()) {
        let next_hops = NextHops::new(&topology, &links).unwrap();
        let distances = distances(&topology, &links);
        for router in topology.router_ids() {
            for destination in topology.endpoint_ids() {
                let expected = ports_by_distance(&topology, &links, &distances, router, destination);
                prop_assert_eq!(next_hops.ports(router, destination), expected, "{} to {}", router, destination);
            }
        }
    }

    #[test]
    fn ecmp_paths_are_shortest_and_exist_if_any_path_does(
        (topology, links) in networks(),
        seed: u64,
        flow: u32,
    ) {
        let next_hops = NextHops::new(&topology, &links).unwrap();
        let distances = distances(&topology, &links);
        for (from, to) in pairs(&topology) {
            let [first, last] = [from, to].map(|endpoint| topology.router_of(endpoint));
            let distance = distances[first.index()][last.index()];
            match path::by_ecmp(&topology, &next_hops, seed, from, to, flow) {
                Ok(path) => {
                    prop_assert_eq!(path.hops().len(), distance + 1);
                    prop_assert_eq!(path.hops()[0].router, first);
                    prop_assert_eq!(*path.hops().last().unwrap(), Hop { router: last, port: topology.port_of(to) });
                    let ends = [from, to].map(|endpoint| topology.endpoint_link(endpoint));
                    let over: Vec<LinkId> = path.links(&topology).collect();
                    prop_assert_eq!([over[0], over[over.len() - 1]], ends);
                    prop_assert!(over[1..over.len() - 1].iter().all(|&link| links.is_up(link)));
                    let mut routers: Vec<_> = path.hops().iter().map(|hop| hop.router).collect();
                    routers.sort_unstable();
                    routers.dedup();
                    prop_assert_eq!(routers.len(), path.hops().len(), "no router twice");
                }
                Err(error) => {
                    prop_assert_eq!(error, PathError::NoRoute { router: first, destination: to });
                    prop_assert!(distance >= FAR);
                }
            }
        }
    }

    #[test]
    fn tables_with_ecmp_choices_give_the_ecmp_paths(seed: u64, source in 0u16..16) {
        let topology = fat_tree(4, Tiers::default()).unwrap();
        let next_hops = NextHops::new(&topology, &LinkState::new(&topology)).unwrap();
        let source = EndpointId(source);
        // Address a carries flow a: four trees per destination.
        let mut tables = vec![ForwardingTable::new(16, 3, 4); topology.routers().len()];
        for (destination, address) in topology.endpoint_ids().flat_map(|e| (0..4).map(move |a| (e, a))) {
            let path = path::by_ecmp(&topology, &next_hops, seed, source, destination, u32::from(address)).unwrap();
            for hop in path.hops() {
                tables[hop.router.index()].set(destination, address, hop.port).unwrap();
            }
            prop_assert_eq!(path::by_tables(&topology, &tables, source, destination, address), Ok(path));
        }
    }

    #[test]
    fn any_tables_give_a_path_or_an_error(
        (topology, _) in networks(),
        ports in prop::collection::vec(0u16..6, 14 * 20),
    ) {
        let endpoints = topology.endpoints().len();
        let mut tables = vec![ForwardingTable::new(endpoints as u16, 0, 6); topology.routers().len()];
        for (index, &port) in ports.iter().enumerate().filter(|(_, port)| **port > 0) {
            let (router, endpoint) = (index / 20, index % 20);
            if router < tables.len() && endpoint < endpoints {
                tables[router].set(EndpointId(endpoint as u16), 0, PortIndex(port - 1)).unwrap();
            }
        }
        for (from, to) in pairs(&topology) {
            let next = |router: RouterId| tables[router.index()].port(to, 0);
            match path::by_tables(&topology, &tables, from, to, 0) {
                Ok(path) => {
                    let last = path.hops()[path.hops().len() - 1];
                    prop_assert_eq!(topology.peer(last.router, last.port).node, Node::Endpoint(to));
                    prop_assert!(path.hops().iter().all(|hop| next(hop.router) == Some(hop.port)));
                }
                Err(PathError::Loop { router, .. }) => {
                    let mut at = router;
                    let returns = topology.router_ids().any(|_| {
                        let Node::Router(then) = topology.peer(at, next(at).unwrap()).node else { return false };
                        at = then;
                        at == router
                    });
                    prop_assert!(returns, "{router} is on the loop");
                }
                Err(PathError::NoRoute { router, .. }) => prop_assert_eq!(next(router), None),
                Err(PathError::NoSuchPort { router, port }) => prop_assert!(port.index() >= topology.ports(router)),
                Err(PathError::Misdelivered { router, endpoint, .. }) => {
                    prop_assert_ne!(endpoint, to);
                    prop_assert_eq!(topology.peer(router, next(router).unwrap()).node, Node::Endpoint(endpoint));
                }
                Err(error) => prop_assert!(false, "{error}"),
            }
        }
    }
}

#[test]
fn flows_of_a_fat_tree_use_every_shortest_path() {
    let topology = fat_tree(4, Tiers::default()).unwrap();
    let next_hops = NextHops::new(&topology, &LinkState::new(&topology)).unwrap();
    let core_of = |flow| {
        let path = path::by_ecmp(&topology, &next_hops, 1, EndpointId(0), EndpointId(15), flow).unwrap();
        path.hops()[2].router
    };
    let mut flows = [0; 4];
    // With 400 flows, one core gets less than 60 with probability 4e-7 (binomial, p = 1/4), for all four 2e-6.
    (0..400).for_each(|flow| flows[core_of(flow).index() - 16] += 1);
    assert!(flows.iter().all(|&flows| flows >= 60), "{flows:?}");
}

#[test]
fn paths_avoid_failed_links_until_they_are_repaired() {
    let topology = leaf_spine(2, 2, 1, Tiers::default()).unwrap();
    let (from, to) = (RouterId(0), EndpointId(1));
    let mut links = LinkState::new(&topology);
    let ports = |links: &LinkState| NextHops::new(&topology, links).unwrap().ports(from, to).to_vec();
    assert_eq!(ports(&links), [PortIndex(1), PortIndex(2)]);
    links.fail(topology.link_at(from, PortIndex(1))).unwrap();
    assert_eq!(ports(&links), [PortIndex(2)]);
    // Links beyond the spine count too: that spine is still two hops away, through the other leaf.
    links.fail(topology.link_at(RouterId(3), PortIndex(1))).unwrap();
    assert_eq!(ports(&links), []);
    links.repair(topology.link_at(from, PortIndex(1))).unwrap();
    assert_eq!(ports(&links), [PortIndex(1)]);
    // Next hops ignore an endpoint's own link: its router drops the packets there.
    links.fail(topology.endpoint_link(to)).unwrap();
    assert_eq!(ports(&links), [PortIndex(1)]);
}

#[test]
fn an_unknown_endpoint_has_no_ports_and_no_path() {
    let topology = racks(2, 2, Tiers::default()).unwrap();
    let next_hops = NextHops::new(&topology, &LinkState::new(&topology)).unwrap();
    assert_eq!(next_hops.ports(RouterId(3), EndpointId(0)), []);
    assert_eq!(next_hops.ports(RouterId(0), EndpointId(4)), []);
    let unknown = EndpointId(4);
    let error = path::by_ecmp(&topology, &next_hops, 0, unknown, EndpointId(0), 0).unwrap_err();
    assert_eq!(error, PathError::UnknownEndpoint { endpoint: unknown });
}

#[test]
fn too_large_networks_and_foreign_link_states_are_rejected() {
    let small = racks(2, 1, Tiers::default()).unwrap();
    let large = SHAPES[2].build(&[9_000, 1], Tiers::default()).unwrap();
    let rejected = [
        (
            NextHops::new(&large, &LinkState::new(&large)),
            "network too large for ECMP: 9000 routers times 9000 racks exceed 67108864 pairs",
        ),
        (
            NextHops::new(&small, &LinkState::new(&large)),
            "the link state has 9000 links, but the topology has 4",
        ),
    ];
    for (result, message) in rejected {
        assert_eq!(result.unwrap_err().to_string(), message);
    }
}

#[test]
fn broken_paths_give_the_reason() {
    let topology = racks(2, 1, Tiers::default()).unwrap();
    let (from, to) = (EndpointId(0), EndpointId(1));
    let by = |ports: [Option<u16>; 3]| {
        path::follow(&topology, from, to, |router| ports[router.index()].map(PortIndex))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(by([None, None, None]), "r0 has no route to h1");
    assert_eq!(by([Some(7), None, None]), "r0 has no port p7");
    assert_eq!(by([Some(0), None, None]), "r0 forwards packets for h1 to h0");
    assert_eq!(by([Some(1), Some(0), Some(0)]), "packets for h1 loop through r2");
}
