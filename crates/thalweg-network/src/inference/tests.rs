//! The inference is compared with a plain walk through the network.

use proptest::prelude::*;
use thalweg_wire::Protocol;

use super::*;
use crate::address::shadow_mac;
use crate::link_state::LinkState;
use crate::routing::NextHops;
use crate::state::tests::states;
use crate::state::{Entry, Forwarding};
use crate::topology::Topology;
use crate::topology::shapes::{Tiers, fat_tree, leaf_spine};

fn addresses(source: MacAddress, destination: MacAddress) -> EthernetAddresses {
    EthernetAddresses { destination, source }
}

fn tcp(ports: (u16, u16)) -> FlowKey {
    FlowKey::v4(1, 2, ports.0, ports.1, Protocol::TCP)
}

/// A switch on a path, its input port, and its forwarding choice.
type Stop = (RouterId, PortIndex, Choice);

/// Returns the choice of a router by a search of plain lists.
fn choice(
    state: &NetworkState,
    router: RouterId,
    source: Option<EndpointId>,
    destination: MacAddress,
    flow: Option<u32>,
) -> Choice {
    let topology = state.topology();
    let is_for = |entry: &Entry| entry.router == router && entry.mac == destination;
    if let Some(entry) = state.forwarding().entries(topology).find(is_for) {
        return Choice::Port(entry.port);
    }
    let Some(seed) = state.forwarding().seed() else { return Choice::NoRoute };
    let (to, _) = topology.endpoint_with_mac(destination).unwrap();
    let next_hops = NextHops::new(topology, state.links()).unwrap();
    match (next_hops.ports(router, to), source, flow) {
        ([], _, _) => Choice::NoRoute,
        ([port], _, _) => Choice::Port(*port),
        (ports, Some(from), Some(flow)) => {
            let hash = ecmp::hash(ecmp::salt(seed, router), ecmp::word(from, to, flow));
            Choice::Port(ecmp::choose(ports, hash).unwrap())
        }
        _ => Choice::Unknown,
    }
}

/// Follows a packet until it arrives, is dropped, cannot be followed, or reaches a router twice.
fn walk(state: &NetworkState, from: EndpointId, to: MacAddress, flow: Option<u32>) -> Vec<Stop> {
    let topology = state.topology();
    let mut stops: Vec<Stop> = Vec::new();
    let (mut router, mut input) = (topology.router_of(from), topology.port_of(from));
    while !stops.iter().any(|stop| stop.0 == router) {
        let choice = choice(state, router, Some(from), to, flow);
        stops.push((router, input, choice));
        let Choice::Port(port) = choice else { break };
        match topology.peer(router, port) {
            Attachment { node: Node::Router(next), port } => (router, input) = (next, port),
            Attachment { node: Node::Endpoint(_), .. } => break,
        }
    }
    stops
}

/// Returns the expected inference for a packet between two endpoints.
fn expected(
    state: &NetworkState,
    router: RouterId,
    from: EndpointId,
    to: (EndpointId, u8),
    flow: Option<u32>,
) -> (Ports, Case) {
    let topology = state.topology();
    let walk_to = |address| walk(state, from, topology.mac(to.0, address), flow);
    let stop_of = |path: &[Stop]| path.iter().find(|stop| stop.0 == router).copied();
    let path = walk_to(to.1);
    // Addresses that no table has are unused.
    let highest =
        state.forwarding().all_tables().iter().flat_map(|table| table.entries()).map(|entry| entry.1).max();
    let in_use = highest.unwrap_or(0) + 1;
    let output = |choice| if let Choice::Port(port) = choice { Some(port) } else { None };
    match stop_of(&path) {
        Some((_, input, Choice::NoRoute)) => (Ports { input: Some(input), output: None }, Case::NoRoute),
        Some((_, input, Choice::Unknown)) => (Ports { input: Some(input), output: None }, Case::NoPorts),
        Some((_, input, Choice::Port(port))) => {
            let may_be_any =
                to.1 == 0 && state.forwarding().writes_back() && router == topology.router_of(to.0);
            let inputs = (1..in_use).filter_map(|address| Some(stop_of(&walk_to(address))?.1));
            let others = inputs.filter(|&other| other != input).count();
            match may_be_any && others > 0 {
                true => (Ports { input: None, output: Some(port) }, Case::Rewritten),
                false => (Ports { input: Some(input), output: Some(port) }, Case::Known),
            }
        }
        None => {
            let &(at, _, last) = path.last().unwrap();
            match last {
                Choice::NoRoute => (Ports::default(), Case::NoRoute),
                Choice::Unknown => {
                    let output = output(choice(state, router, Some(from), topology.mac(to.0, to.1), flow));
                    (Ports { input: None, output }, Case::NoPorts)
                }
                Choice::Port(port) => match topology.peer(at, port).node {
                    Node::Router(_) => (Ports::default(), Case::NoRoute),
                    Node::Endpoint(_) => (Ports::default(), Case::OffPath),
                },
            }
        }
    }
}

proptest! {
    #[test]
    fn inferred_switch_ports_match_a_hop_by_hop_walk(state in states(), flow in prop::option::of(0u32..1 << 28)) {
        let topology = state.topology();
        let key = tcp(flow.map_or((0, 0), flow_ports::ports));
        for (from, to) in topology.endpoint_ids().flat_map(|from| topology.endpoint_ids().map(move |to| (from, to))) {
            for address in 0..4 {
                let ethernet = addresses(topology.mac(from, 0), topology.mac(to, address));
                for router in topology.router_ids() {
                    let found = state.ports(router, &ethernet, &key);
                    let expected = expected(&state, router, from, (to, address), flow);
                    prop_assert_eq!(found, expected, "{} to {} address {} at {}", from, to, address, router);
                }
            }
        }
    }

    #[test]
    fn a_path_consists_of_the_output_ports(state in states(), flow in 0u32..1 << 28) {
        let topology = state.topology();
        let key = tcp(flow_ports::ports(flow));
        for (from, to) in topology.endpoint_ids().flat_map(|from| topology.endpoint_ids().map(move |to| (from, to))) {
            for address in 0..4 {
                let ethernet = addresses(topology.mac(from, 0), topology.mac(to, address));
                let Ok(path) = state.path(&ethernet, &key) else { continue };
                for hop in path.hops() {
                    let (ports, case) = state.ports(hop.router, &ethernet, &key);
                    prop_assert!(case.is_on_path());
                    prop_assert_eq!(ports.output, Some(hop.port));
                }
            }
        }
    }

    #[test]
    fn any_headers_are_accepted(state in states(), router: u16, destination: [u8; 6], source: [u8; 6], ports: (u16, u16)) {
        let ethernet = addresses(MacAddress(source), MacAddress(destination));
        let (found, case) = state.ports(RouterId(router), &ethernet, &tcp(ports));
        if usize::from(router) >= state.topology().routers().len() {
            prop_assert_eq!((found, case), (Ports::default(), Case::OffPath));
        }
        let _ = state.path(&ethernet, &tcp(ports));
    }
}

/// Two leaves with one host each and two spines; h1's shadow address 1 uses the second spine.
fn two_spines() -> (Topology, Vec<Entry>) {
    let topology = leaf_spine(2, 2, 1, Tiers::default()).unwrap();
    let entry = |router, mac, port| Entry { router: RouterId(router), mac, port: PortIndex(port) };
    let [h0, h1] = [0, 1].map(|endpoint| topology.mac(EndpointId(endpoint), 0));
    let shadow = shadow_mac(EndpointId(1), 1);
    let entries = vec![
        entry(0, h1, 1),
        entry(0, shadow, 2),
        entry(1, h1, 0),
        entry(1, shadow, 0),
        entry(1, h0, 1),
        entry(2, h1, 1),
        entry(3, shadow, 1),
    ];
    (topology, entries)
}

fn state_of(topology: &Topology, entries: &[Entry]) -> NetworkState {
    let tables = Forwarding::table_list(topology, entries).unwrap();
    NetworkState::new(topology.clone(), LinkState::new(topology), Forwarding::tables(tables)).unwrap()
}

#[test]
fn each_kind_of_packet_gives_its_inference_case() {
    let (topology, entries) = two_spines();
    let state = state_of(&topology, &entries);
    let mac = |endpoint, address| topology.mac(EndpointId(endpoint), address);
    let stranger = MacAddress([0, 1, 2, 3, 4, 5]);
    let (all, none) = (MacAddress([0xff; 6]), MacAddress::default());
    let cases = [
        (0, mac(0, 0), mac(1, 0), Some(0), Some(1), Case::Known),
        (0, mac(0, 0), mac(1, 1), Some(0), Some(2), Case::Known),
        (2, mac(0, 0), mac(1, 0), Some(0), Some(1), Case::Known),
        (1, mac(0, 0), mac(1, 1), Some(2), Some(0), Case::Known),
        (1, mac(0, 0), mac(1, 0), None, Some(0), Case::Rewritten),
        (0, stranger, mac(1, 0), None, Some(1), Case::UnknownSource),
        (0, mac(0, 0), stranger, Some(0), None, Case::UnknownDestination),
        (1, mac(0, 0), stranger, None, None, Case::UnknownDestination),
        (0, none, none, None, None, Case::UnknownSource),
        (0, mac(0, 0), all, Some(0), None, Case::Group),
        (2, mac(0, 0), all, None, None, Case::Group),
        (0, stranger, all, None, None, Case::Group),
        (2, mac(1, 0), mac(0, 0), Some(1), None, Case::NoRoute),
        (0, mac(1, 0), mac(0, 0), None, None, Case::NoRoute),
        (3, mac(0, 0), mac(1, 0), None, None, Case::OffPath),
    ];
    for (router, source, destination, input, output, case) in cases {
        let found = state.ports(RouterId(router), &addresses(source, destination), &tcp((40_000, 80)));
        let [input, output] = [input, output].map(|port| port.map(PortIndex));
        assert_eq!(found, (Ports { input, output }, case), "{source} to {destination} at r{router}");
    }
}

#[test]
fn the_input_port_at_the_last_switch_is_known_if_shadow_addresses_are_not_rewritten_or_there_is_one_path() {
    let (topology, entries) = two_spines();
    let last = |state: &NetworkState| {
        let ethernet = addresses(topology.mac(EndpointId(0), 0), topology.mac(EndpointId(1), 0));
        state.ports(RouterId(1), &ethernet, &tcp((1, 2)))
    };
    let known = (Ports { input: Some(PortIndex(1)), output: Some(PortIndex(0)) }, Case::Known);
    let state = state_of(&topology, &entries);
    let kept = state.with_forwarding(state.forwarding().clone().with_write_back(false)).unwrap();
    assert_eq!(last(&kept), known);
    let shadow = shadow_mac(EndpointId(1), 1);
    let over_one = entries.iter().map(|entry| match (entry.router, entry.mac == shadow) {
        (RouterId(0), true) => Entry { port: PortIndex(1), ..*entry },
        (RouterId(3), true) => Entry { router: RouterId(2), ..*entry },
        _ => *entry,
    });
    assert_eq!(last(&state_of(&topology, &over_one.collect::<Vec<_>>())), known);
}

#[test]
fn a_fragment_is_followed_where_only_one_path_exists() {
    let topology = fat_tree(4, Tiers::default()).unwrap();
    let links = LinkState::new(&topology);
    let state = NetworkState::new(topology.clone(), links, Forwarding::ecmp(1)).unwrap();
    let ethernet = addresses(topology.mac(EndpointId(0), 0), topology.mac(EndpointId(15), 0));
    let edges = [EndpointId(0), EndpointId(15)].map(|endpoint| topology.router_of(endpoint));
    let found = edges.map(|router| state.ports(router, &ethernet, &tcp((0, 0))));
    assert_eq!(found[0], (Ports { input: Some(PortIndex(0)), output: None }, Case::NoPorts));
    assert_eq!(found[1], (Ports { input: None, output: Some(PortIndex(1)) }, Case::NoPorts));
    assert_eq!(state.path(&ethernet, &tcp((0, 0))), Err(NoPath::Headers(Case::NoPorts)));
    // An echo request never has ports, so none are missing.
    let echo = FlowKey::v4(1, 2, 0, 0, Protocol(1));
    assert_eq!(state.ports(edges[0], &ethernet, &echo).1, Case::Known);
}

#[test]
fn a_loop_ends_the_search() {
    let (topology, _) = two_spines();
    let mac = topology.mac(EndpointId(1), 0);
    let entry = |router, port| Entry { router: RouterId(router), mac, port: PortIndex(port) };
    // The loop is leaf0, spine0, leaf1, spine1.
    let state = state_of(&topology, &[entry(0, 1), entry(2, 1), entry(1, 2), entry(3, 0)]);
    let ethernet = addresses(topology.mac(EndpointId(0), 0), mac);
    let at = |router| state.ports(RouterId(router), &ethernet, &tcp((1, 2)));
    assert_eq!(at(3), (Ports { input: Some(PortIndex(1)), output: Some(PortIndex(0)) }, Case::Known));
    assert!(matches!(state.path(&ethernet, &tcp((1, 2))), Err(NoPath::Broken(PathError::Loop { .. }))));
    // A router outside the loop.
    let state = state_of(&topology, &[entry(0, 1), entry(2, 0)]);
    assert_eq!(state.ports(RouterId(3), &ethernet, &tcp((1, 2))), (Ports::default(), Case::NoRoute));
}
