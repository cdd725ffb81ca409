//! Paths are shortest, complete and free of loops, whatever the network is.

use proptest::prelude::*;

use super::*;
use crate::identity::{EndpointId, LinkId, PortIndex, RouterId};
use crate::link_state::LinkState;
use crate::topology::shapes::{SHAPES, Tiers, fat_tree, leaf_spine, racks};
use crate::topology::{LinkSpec, Node, Topology, TopologyBuilder};

/// No path is so long.
const FAR: usize = 1_000_000;

/// Hops between all routers by Floyd and Warshall's algorithm.
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

/// The ports that begin a shortest path, found from the distances.
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

/// Any network, several links between the same two routers and islands included, and some of its links down.
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
            // Links of a router with itself are refused: then there is one less.
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
    fn next_hops_are_the_ports_that_distances_name((topology, links) in networks()) {
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
    fn every_ecmp_path_is_shortest_and_each_is_found_if_there_is_one(
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
    fn forwarding_tables_with_the_choices_of_ecmp_lead_along_the_same_paths(seed: u64, source in 0u16..16) {
        let topology = fat_tree(4, Tiers::default()).unwrap();
        let next_hops = NextHops::new(&topology, &LinkState::new(&topology)).unwrap();
        let source = EndpointId(source);
        // Address a stands for flow a: four trees to each destination.
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
    fn any_tables_give_a_path_or_say_why_there_is_none(
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
                    let comes_back = topology.router_ids().any(|_| {
                        let Node::Router(then) = topology.peer(at, next(at).unwrap()).node else { return false };
                        at = then;
                        at == router
                    });
                    prop_assert!(comes_back, "{router} is on the loop");
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
fn a_link_that_fails_is_left_out_and_one_that_is_repaired_comes_back() {
    let topology = leaf_spine(2, 2, 1, Tiers::default()).unwrap();
    let (from, to) = (RouterId(0), EndpointId(1));
    let mut links = LinkState::new(&topology);
    let ports = |links: &LinkState| NextHops::new(&topology, links).unwrap().ports(from, to).to_vec();
    assert_eq!(ports(&links), [PortIndex(1), PortIndex(2)]);
    links.fail(topology.link_at(from, PortIndex(1))).unwrap();
    assert_eq!(ports(&links), [PortIndex(2)]);
    // Beyond the spine counts as well: that spine is still two hops away by way of the other leaf.
    links.fail(topology.link_at(RouterId(3), PortIndex(1))).unwrap();
    assert_eq!(ports(&links), []);
    links.repair(topology.link_at(from, PortIndex(1))).unwrap();
    assert_eq!(ports(&links), [PortIndex(1)]);
    // An endpoint's own link is its router's concern, which drops what is for it there.
    links.fail(topology.endpoint_link(to)).unwrap();
    assert_eq!(ports(&links), [PortIndex(1)]);
}

#[test]
fn what_does_not_exist_has_no_ports_and_no_path() {
    let topology = racks(2, 2, Tiers::default()).unwrap();
    let next_hops = NextHops::new(&topology, &LinkState::new(&topology)).unwrap();
    assert_eq!(next_hops.ports(RouterId(3), EndpointId(0)), []);
    assert_eq!(next_hops.ports(RouterId(0), EndpointId(4)), []);
    let nobody = EndpointId(4);
    let error = path::by_ecmp(&topology, &next_hops, 0, nobody, EndpointId(0), 0).unwrap_err();
    assert_eq!(error, PathError::UnknownEndpoint { endpoint: nobody });
}

#[test]
fn a_network_that_is_too_large_or_another_ones_links_are_refused() {
    let small = racks(2, 1, Tiers::default()).unwrap();
    let large = SHAPES[2].build(&[9_000, 1], Tiers::default()).unwrap();
    let refusals = [
        (
            NextHops::new(&large, &LinkState::new(&large)),
            "9000 routers to 9000 racks are too many pairs to hold: at most 67108864",
        ),
        (NextHops::new(&small, &LinkState::new(&large)), "the link state has 9000 links, and the topology 4"),
    ];
    for (refusal, message) in refusals {
        assert_eq!(refusal.unwrap_err().to_string(), message);
    }
}

#[test]
fn paths_that_do_not_arrive_say_why() {
    let topology = racks(2, 1, Tiers::default()).unwrap();
    let (from, to) = (EndpointId(0), EndpointId(1));
    let by = |ports: [Option<u16>; 3]| {
        path::follow(&topology, from, to, |router| ports[router.index()].map(PortIndex))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(by([None, None, None]), "r0 has no way to h1");
    assert_eq!(by([Some(7), None, None]), "r0 has no port p7");
    assert_eq!(by([Some(0), None, None]), "r0 sends what is for h1 to h0");
    assert_eq!(by([Some(1), Some(0), Some(0)]), "what is for h1 goes round in a loop through r2");
}
