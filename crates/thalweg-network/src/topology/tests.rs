//! Shapes and builders give the requested topology or an error.

use proptest::prelude::*;

use super::shapes::{SHAPES, Shape, Tiers, dumbbell, fat_tree, isolated_racks, leaf_spine, rack, racks};
use super::*;

fn slow() -> LinkSpec {
    LinkSpec { rate: BitRate(1_000_000_000), delay: Nanos(500), ..LinkSpec::default() }
}

fn tiers() -> Tiers {
    Tiers { access: slow(), uplink: LinkSpec::default() }
}

/// Returns the names of the routers adjacent to a router, in port order.
fn neighbour_names(topology: &Topology, router: &str) -> Vec<String> {
    let Some(Node::Router(router)) = topology.node_named(router) else { panic!("unknown router {router}") };
    let peers = topology.peers(router)[topology.rack_size(router)..].iter();
    peers.map(|peer| topology.name(peer.node).to_owned()).collect()
}

proptest! {
    #[test]
    fn every_shape_keeps_the_invariants_or_is_rejected(
        shape in 0..SHAPES.len(),
        sizes in prop::collection::vec(0u32..9, 1..4),
    ) {
        let shape = &SHAPES[shape];
        if let Ok(topology) = shape.build(&sizes, tiers()) {
            topology.check_invariants();
            prop_assert_eq!(shape.sizes.len(), sizes.len());
        }
    }

    #[test]
    fn any_routers_endpoints_and_links_keep_the_invariants(
        routers in 1u16..12,
        endpoints in prop::collection::vec(0u16..12, 1..30),
        links in prop::collection::vec((0u16..12, 0u16..12), 0..40),
    ) {
        let mut builder = TopologyBuilder::new();
        for router in 0..routers {
            builder.add_router(format!("r{router}")).unwrap();
        }
        let mut accepted = (0, 0);
        // Endpoints and links alternate: their numbers must not depend on the order.
        let mut links = links.into_iter();
        for router in endpoints {
            let added = builder.add_endpoint(format!("h{}", accepted.0), RouterId(router), slow());
            prop_assert_eq!(added.is_ok(), router < routers);
            accepted.0 += usize::from(added.is_ok());
            for (a, b) in links.by_ref().take(2) {
                let connected = builder.connect(RouterId(a), RouterId(b), LinkSpec::default());
                prop_assert_eq!(connected.is_ok(), a != b && a < routers && b < routers);
                accepted.1 += usize::from(connected.is_ok());
            }
        }
        match builder.build() {
            Ok(topology) => {
                topology.check_invariants();
                prop_assert_eq!(topology.endpoints().len(), accepted.0);
                prop_assert_eq!(topology.links().len(), accepted.0 + accepted.1);
                for endpoint in topology.endpoint_ids() {
                    let (router, port) = (topology.router_of(endpoint), topology.port_of(endpoint));
                    prop_assert_eq!(topology.rack(router).nth(port.index()), Some(endpoint));
                    prop_assert_eq!(topology.link_at(router, port), topology.endpoint_link(endpoint));
                    prop_assert_eq!(topology.links()[endpoint.index()].spec(), slow());
                }
            }
            Err(error) => prop_assert_eq!((error, accepted.0), (TopologyError::NoEndpoints, 0)),
        }
    }

    #[test]
    fn a_fat_tree_has_the_sizes_of_the_paper(half in 1u32..9) {
        let k = 2 * half;
        let topology = fat_tree(k, tiers()).unwrap();
        topology.check_invariants();
        prop_assert_eq!(topology.endpoints().len() as u32, k.pow(3) / 4);
        prop_assert_eq!(topology.routers().len() as u32, 5 * k * k / 4);
        // k^3/4 links in each of three tiers.
        prop_assert_eq!(topology.links().len() as u32, 3 * k.pow(3) / 4);
        for router in topology.router_ids() {
            prop_assert_eq!(topology.ports(router) as u32, k);
        }
    }
}

#[test]
fn a_fat_tree_is_wired_as_documented() {
    let topology = fat_tree(4, tiers()).unwrap();
    assert_eq!(neighbour_names(&topology, "edge2"), ["agg2", "agg3"]);
    assert_eq!(neighbour_names(&topology, "agg2"), ["edge2", "edge3", "core0", "core1"]);
    assert_eq!(neighbour_names(&topology, "agg3"), ["edge2", "edge3", "core2", "core3"]);
    assert_eq!(neighbour_names(&topology, "core1"), ["agg0", "agg2", "agg4", "agg6"]);
    assert_eq!(neighbour_names(&topology, "core3"), ["agg1", "agg3", "agg5", "agg7"]);
    let last = EndpointId(15);
    assert_eq!(topology.name(Node::Router(topology.router_of(last))), "edge7");
    assert_eq!(topology.port_of(last), PortIndex(1));
    assert_eq!(topology.links()[15].spec(), tiers().access);
    assert_eq!(topology.links()[16].spec(), tiers().uplink);
}

#[test]
fn the_other_shapes_are_wired_as_documented() {
    let counts = |topology: Topology| {
        topology.check_invariants();
        (topology.endpoints().len(), topology.routers().len(), topology.links().len())
    };
    assert_eq!(counts(rack(32, slow()).unwrap()), (32, 1, 32));
    assert_eq!(counts(racks(3, 8, tiers()).unwrap()), (24, 4, 27));
    assert_eq!(counts(isolated_racks(3, 8, slow()).unwrap()), (24, 3, 24));
    assert_eq!(counts(dumbbell(5, tiers()).unwrap()), (10, 2, 11));
    assert_eq!(counts(leaf_spine(4, 3, 2, tiers()).unwrap()), (8, 7, 20));

    let topology = racks(3, 8, tiers()).unwrap();
    assert_eq!(neighbour_names(&topology, "agg0"), ["tor0", "tor1", "tor2"]);
    assert_eq!(topology.peer(RouterId(2), PortIndex(8)).node, Node::Router(RouterId(3)));
    let topology = leaf_spine(4, 3, 2, tiers()).unwrap();
    assert_eq!(neighbour_names(&topology, "leaf3"), ["spine0", "spine1", "spine2"]);
    assert_eq!(neighbour_names(&topology, "spine2"), ["leaf0", "leaf1", "leaf2", "leaf3"]);
}

#[test]
fn shapes_are_found_by_name_and_check_their_sizes() {
    for shape in &SHAPES {
        let sizes = vec![2; shape.sizes.len()];
        assert!(shape.build(&sizes, Tiers::default()).is_ok(), "{}", shape.name);
        let error = shape.build(&[], Tiers::default()).unwrap_err();
        assert_eq!(error.to_string(), format!("{} takes {} sizes, got 0", shape.name, sizes.len()));
        assert_eq!(Shape::named(shape.name).map(|found| found.summary), Some(shape.summary));
    }
    assert!(Shape::named("ring").is_none());
}

/// A rejection takes at most as much work as the largest topology.
#[test]
fn too_large_shapes_are_rejected() {
    let max = u32::MAX;
    let router = |router: &str| TopologyError::TooManyPorts { router: router.to_owned() };
    assert_eq!(rack(1_025, slow()), Err(router("tor0")));
    assert!(rack(1_024, slow()).is_ok());
    assert_eq!(rack(max, slow()), Err(router("tor0")));
    assert_eq!(racks(max, max, tiers()), Err(TopologyError::TooManyRouters));
    assert_eq!(racks(1_025, 1, tiers()), Err(router("agg0")));
    assert_eq!(isolated_racks(64, 1_024, slow()), Err(TopologyError::TooManyEndpoints));
    assert_eq!(isolated_racks(65_535, 1, slow()).unwrap().endpoints().len(), 65_535);
    assert_eq!(leaf_spine(2, max, 1, tiers()), Err(TopologyError::TooManyRouters));
    assert_eq!(fat_tree(64, tiers()), Err(TopologyError::TooManyEndpoints));
    assert_eq!(fat_tree(max - 1, tiers()), Err(TopologyError::TooManyRouters));
    assert_eq!(fat_tree(5, tiers()), Err(TopologyError::FatTreeArity { k: 5 }));
    assert_eq!(fat_tree(0, tiers()), Err(TopologyError::FatTreeArity { k: 0 }));
    assert_eq!(rack(0, slow()), Err(TopologyError::NoEndpoints));
}

#[test]
fn a_rejected_router_endpoint_or_link_changes_nothing() {
    let mut builder = TopologyBuilder::new();
    let tor = builder.add_router("tor").unwrap();
    let host = builder.add_endpoint("host", tor, slow()).unwrap();
    let (good, nowhere) = (slow(), RouterId(9));
    let with_rate = |rate| LinkSpec { rate: BitRate(rate), ..good };
    let late = LinkSpec { delay: Nanos(MAX_DELAY.0 + 1), ..good };
    let varying = LinkSpec { jitter: Nanos(501), ..good };
    let rejected = [
        (
            builder.add_router("").err(),
            r#"invalid name "": expected 1 to 64 bytes without control characters"#,
        ),
        (
            builder.add_router("a\nb").err(),
            r#"invalid name "a\nb": expected 1 to 64 bytes without control characters"#,
        ),
        (builder.add_router("host").err(), r#"duplicate node name "host""#),
        (builder.add_endpoint("tor", tor, good).err(), r#"duplicate node name "tor""#),
        (builder.add_endpoint("h", nowhere, good).err(), "unknown router r9"),
        (
            builder.add_endpoint("h", tor, with_rate(0)).err(),
            "invalid link rate 0 bit/s: expected 1 bit/s to 1.00 Pbit/s",
        ),
        (builder.connect(tor, nowhere, good).err(), "unknown router r9"),
        (builder.connect(tor, tor, good).err(), r#"a link connects router "tor" to itself"#),
        (
            builder.connect(tor, tor, with_rate(u64::MAX)).err(),
            "invalid link rate 18.4 Ebit/s: expected 1 bit/s to 1.00 Pbit/s",
        ),
        (builder.connect(tor, tor, late).err(), "invalid link delay 10.0 s: expected at most 10.0 s"),
        (
            builder.connect(tor, tor, varying).err(),
            "invalid link jitter 501 ns: expected at most the delay, which is 500 ns",
        ),
        (builder.set_mac(EndpointId(1), MacAddress([2; 6])).err(), "unknown endpoint h1"),
        (builder.set_ip(EndpointId(1), Ipv4Addr::LOCALHOST).err(), "unknown endpoint h1"),
        (
            builder.set_mac(host, MacAddress([0xff; 6])).err(),
            "invalid MAC address ff:ff:ff:ff:ff:ff: expected a unicast address",
        ),
        (
            builder.set_mac(host, address::shadow_mac(host, 1)).err(),
            "MAC address 02:54:57:01:00:00 is reserved: 02:54:57 is the prefix of default and shadow addresses",
        ),
    ];
    for (error, message) in rejected {
        assert_eq!(error.expect(message).to_string(), message);
    }
    assert_eq!(builder.build(), {
        let mut builder = TopologyBuilder::new();
        let tor = builder.add_router("tor").unwrap();
        builder.add_endpoint("host", tor, slow()).unwrap();
        builder.build()
    });
}

#[test]
fn addresses_are_unique_and_resolve_to_their_endpoint() {
    let mut builder = TopologyBuilder::new();
    let tor = builder.add_router("tor").unwrap();
    let ids: Vec<_> = (0..4).map(|i| builder.add_endpoint(format!("h{i}"), tor, slow()).unwrap()).collect();
    let (mac, ip) = (MacAddress([0, 0x25, 0x90, 0, 0, 1]), Ipv4Addr::new(192, 168, 0, 1));
    builder.set_mac(ids[2], mac).unwrap();
    builder.set_ip(ids[2], ip).unwrap();

    let topology = builder.clone().build().unwrap();
    topology.check_invariants();
    for (id, address) in ids.iter().flat_map(|&id| [0, 1, 255].map(|address| (id, address))) {
        assert_eq!(topology.endpoint_with_mac(topology.mac(id, address)), Some((id, address)));
    }
    assert_eq!(topology.mac(ids[2], 0), mac);
    assert_eq!(
        topology.endpoint_with_mac(address::default_mac(ids[2])),
        None,
        "the default address was replaced"
    );
    assert_eq!(topology.endpoint_with_mac(address::shadow_mac(EndpointId(4), 1)), None);
    assert_eq!(topology.endpoint_with_ip(ip), Some(ids[2]));
    assert_eq!(topology.endpoint_with_ip(address::default_ip(ids[2])), None);

    let mut same_mac = builder.clone();
    same_mac.set_mac(ids[1], mac).unwrap();
    let message = r#""h1" and "h2" have the same MAC address, 00:25:90:00:00:01"#;
    assert_eq!(same_mac.build().unwrap_err().to_string(), message);
    builder.set_ip(ids[3], address::default_ip(ids[0])).unwrap();
    let message = r#""h0" and "h3" have the same IP address, 10.0.0.1"#;
    assert_eq!(builder.build().unwrap_err().to_string(), message);
}
