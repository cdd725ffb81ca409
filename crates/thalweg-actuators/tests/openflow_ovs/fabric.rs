//! A network of Open vSwitch bridges: installed entries, and traces of packets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_actuators::openflow::{Config, Fabric, FabricEvent, Member, PortReference};
use thalweg_actuators::{Action, ActionId, Actuator};
use thalweg_control::Pair;
use thalweg_control::routes::RuleFaults;
use thalweg_network::routing::{TreeOptions, spanning_trees};
use thalweg_network::topology::shapes::{Tiers, leaf_spine};
use thalweg_network::{
    EndpointId, Forwarding, LinkSpec, LinkState, NetworkState, PortIndex, RouterId, Topology, TopologyBuilder,
};
use thalweg_wire::openflow::{DatapathId, PortNumber};
use thalweg_wire::{Nanos, Timestamp};

use crate::ovs::Ovs;
use crate::{TEST_TIMEOUT, check_log, local, ovs};

const ADDRESSES: u8 = 2;
/// From a host of the first leaf to one of the second.
const PAIR: Pair = Pair { source: EndpointId(0), destination: EndpointId(3) };
/// Beyond the four ports of a leaf.
const MONITOR: u32 = 5;

fn state() -> NetworkState {
    let topology = Arc::new(leaf_spine(2, 2, 2, Tiers::default()).unwrap());
    let links = LinkState::new(&topology);
    let trees = spanning_trees(&topology, &links, TreeOptions { addresses: ADDRESSES, seed: 1 });
    NetworkState::new(topology, links, Forwarding::tables(trees)).unwrap()
}

fn fabric(state: &NetworkState) -> (Fabric, SocketAddr) {
    fabric_with(state, Config::default())
}

fn fabric_with(state: &NetworkState, config: Config) -> (Fabric, SocketAddr) {
    let member = |router: RouterId| Member {
        router,
        datapath: DatapathId(0x100 + u64::from(router.0)),
        monitor: Some(PortNumber(MONITOR).into()),
    };
    let members: Vec<Member> = state.topology().router_ids().map(member).collect();
    let fabric = Fabric::new(Arc::clone(state.topology()), &members, config);
    let address = fabric.switches().listen(local(0), None).unwrap();
    (fabric, address)
}

fn bridge(router: RouterId) -> String {
    format!("sw{}", router.0)
}

fn add_bridges(ovs: &Ovs, state: &NetworkState, controller: SocketAddr) {
    for router in state.topology().router_ids() {
        ovs.add_bridge(&bridge(router), 0x100 + u64::from(router.0), MONITOR, controller);
    }
}

fn settle(fabric: &mut Fabric) {
    settle_until(fabric, |fabric| fabric.out_of_sync().next().is_none());
}

fn settle_until(fabric: &mut Fabric, mut is_done: impl FnMut(&mut Fabric) -> bool) {
    let (start, mut now) = (Instant::now(), Timestamp(0));
    while {
        fabric.maintain(now);
        !is_done(fabric)
    } {
        assert!(start.elapsed() < TEST_TIMEOUT, "{:?}", fabric.take_events());
        std::thread::sleep(Duration::from_millis(2));
        now = now + Nanos::from_millis(2);
    }
}

fn reroute(fabric: &mut Fabric, address: u8) {
    let action = Action {
        id: ActionId(1),
        pair: PAIR,
        address,
        issued: Timestamp(0),
        deadline: Timestamp(0) + Nanos::from_secs(5),
    };
    fabric.reroute(&action).unwrap();
    settle(fabric);
}

/// Returns the OpenFlow number of a port: that in its name, as in `sw0p3`, or that of a port without a name.
fn number_of(topology: &Topology, router: RouterId, port: PortIndex) -> u32 {
    match topology.port_name(router, port) {
        Some(name) => name.rsplit_once('p').unwrap().1.parse().unwrap(),
        None => u32::from(port.0) + 1,
    }
}

/// Traces a packet of the pair with this destination address through the network, by the actions that each switch
/// reports. Returns the path, the host and the final address; ignores copies.
fn walk(ovs: &Ovs, state: &NetworkState, address: u8) -> (Vec<RouterId>, EndpointId, String) {
    let topology = state.topology();
    let (mut router, mut port) = (topology.router_of(PAIR.source), topology.port_of(PAIR.source));
    let source = topology.mac(PAIR.source, 0);
    let mut destination = topology.mac(PAIR.destination, address).to_string();
    let mut path = Vec::new();
    loop {
        path.push(router);
        let in_port = number_of(topology, router, port);
        let packet = format!("in_port={in_port},dl_src={source},dl_dst={destination},dl_type=0x88b5");
        let actions = ovs.trace(&bridge(router), &packet);
        if let Some((_, written)) = actions.split_once("dst=") {
            destination = written[..17].to_owned();
        }
        // Datapath port numbers, in the order in which ports were added: six per bridge.
        let numbers = actions.split(',').filter_map(|action| action.parse::<u32>().ok());
        let outputs: Vec<u32> = numbers.map(|number| ovs.of_port(&bridge(router), number)).collect();
        assert_eq!(outputs.iter().filter(|&&output| output == MONITOR).count(), 1, "{actions}: one copy");
        let output = *outputs
            .iter()
            .find(|&&output| output != MONITOR)
            .expect("an output other than the monitor port");
        let ports = (0..topology.ports(router) as u16).map(PortIndex);
        let output = ports.clone().find(|&port| number_of(topology, router, port) == output).unwrap();
        let peer = topology.peer(router, output);
        match peer.node {
            thalweg_network::Node::Router(next) => (router, port) = (next, peer.port),
            thalweg_network::Node::Endpoint(host) => return (path, host, destination),
        }
    }
}

#[test]
fn a_network_of_bridges_forwards_by_both_trees_and_reroutes_a_pair() {
    let Some(mut ovs) = ovs("a_network_of_bridges", "OpenFlow13") else { return };
    let state = state();
    let (mut fabric, address) = fabric(&state);
    add_bridges(&ovs, &state, address);
    fabric.install(&state);
    settle(&mut fabric);
    let topology = state.topology();
    for router in topology.router_ids() {
        assert_eq!(ovs.flows(&bridge(router)).len(), 4 * usize::from(ADDRESSES));
    }
    let base = topology.mac(PAIR.destination, 0).to_string();
    let (base_path, host, arrives_as) = walk(&ovs, &state, 0);
    assert_eq!((base_path.len(), host, &arrives_as), (3, PAIR.destination, &base));
    let (shadow_path, host, arrives_as) = walk(&ovs, &state, 1);
    assert_eq!((host, &arrives_as), (PAIR.destination, &base), "written back");
    assert_ne!(base_path, shadow_path);

    // The host still sends to the base address.
    reroute(&mut fabric, 1);
    assert_eq!(walk(&ovs, &state, 0), (shadow_path.clone(), PAIR.destination, base.clone()));
    let shown = ovs.flows("sw0");
    let reroutes: Vec<_> = shown.iter().filter(|line| line.contains("priority=20480")).collect();
    let [line] = reroutes.as_slice() else { panic!("{shown:?}") };
    for part in [
        "cookie=0x7477000000000002,",
        "in_port=1,dl_src=02:54:57:00:00:00,dl_dst=02:54:57:00:00:03",
        "actions=set_field:02:54:57:01:00:03->eth_dst,output:5,output:",
    ] {
        assert!(line.contains(part), "{part} is not in {line}");
    }

    // All switches restart empty at once.
    ovs.kill_switch();
    ovs.start_switch();
    let start = Instant::now();
    while !fabric.take_events().iter().any(|event| matches!(event, FabricEvent::Down { .. })) {
        fabric.maintain(Timestamp(0));
        assert!(start.elapsed() < TEST_TIMEOUT);
    }
    settle(&mut fabric);
    assert_eq!(walk(&ovs, &state, 0).0, shadow_path);
    reroute(&mut fabric, 0);
    assert_eq!(walk(&ovs, &state, 0).0, base_path);
    assert_eq!(ovs.flows("sw0").len(), 8);
    check_log(&ovs);
}

#[test]
fn a_restarted_controller_sends_only_missing_entries() {
    let Some(ovs) = ovs("a_restarted_controller_sends_only_missing_entries", "OpenFlow13") else { return };
    let state = state();
    let (mut first, address) = fabric(&state);
    add_bridges(&ovs, &state, address);
    first.install(&state);
    settle(&mut first);
    drop(first);
    // Simulates an incomplete installation.
    let socket = format!("unix:{}", ovs.path("sw2.mgmt").display());
    ovs.run("ovs-ofctl", &["-O", "OpenFlow13", "del-flows", &socket, "dl_dst=02:54:57:01:00:00"]);
    assert_eq!(ovs.flows("sw2").len(), 7);
    let (mut second, address) = fabric(&state);
    for router in state.topology().router_ids() {
        ovs.set_controller_of(&bridge(router), &format!("tcp:{address}"));
    }
    second.install(&state);
    settle(&mut second);
    assert_eq!((second.counters().written, second.counters().removed), (1, 0));
    assert_eq!(ovs.flows("sw2").len(), 8);
    check_log(&ovs);
}

/// Maintains the fabric until a repair was reported and carried out. Returns what was repaired.
fn repaired(fabric: &mut Fabric) -> (RouterId, RuleFaults) {
    let start = Instant::now();
    loop {
        fabric.maintain(Timestamp(start.elapsed().as_nanos() as u64));
        for event in fabric.take_events() {
            if let FabricEvent::Repaired { router, faults } = event {
                settle(fabric);
                return (router, faults);
            }
        }
        assert!(start.elapsed() < TEST_TIMEOUT, "not repaired");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the entries without counters and ages, in order.
fn entries_of(ovs: &Ovs, bridge: &str) -> Vec<String> {
    let of = |line: &String| {
        let (head, tail) = line.split_once("duration=").unwrap();
        let (_, tail) = tail.split_once("n_bytes=").unwrap();
        format!("{head}{}", tail.split_once(", ").unwrap().1)
    };
    let mut entries: Vec<String> = ovs.flows(bridge).iter().map(of).collect();
    entries.sort();
    entries
}

fn ofctl(ovs: &Ovs, command: &str, bridge: &str, flow: &str) {
    let socket = format!("unix:{}", ovs.path(&format!("{bridge}.mgmt")).display());
    ovs.run("ovs-ofctl", &["-O", "OpenFlow13", command, &socket, flow]);
}

fn maintain_for_a_while(fabric: &mut Fabric) {
    for _ in 0..50 {
        fabric.maintain(Timestamp(0));
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn deleted_entries_are_repaired_because_the_switch_reports_them() {
    let Some(ovs) = ovs("deleted_entries_are_repaired", "OpenFlow13") else { return };
    let state = state();
    // Only the report of the switch can cause an audit in time.
    let config = Config { audit_interval: Nanos::from_secs(3_600), ..Config::default() };
    let (mut fabric, address) = fabric_with(&state, config);
    add_bridges(&ovs, &state, address);
    fabric.install(&state);
    settle(&mut fabric);
    reroute(&mut fabric, 1);
    let wanted = entries_of(&ovs, "sw0");
    assert_eq!(wanted.len(), 9);
    ofctl(&ovs, "del-flows", "sw0", "dl_dst=02:54:57:01:00:03");
    assert_eq!(repaired(&mut fabric), (RouterId(0), RuleFaults { missing: 1, ..RuleFaults::default() }));
    assert_eq!(entries_of(&ovs, "sw0"), wanted);
    let socket = format!("unix:{}", ovs.path("sw0.mgmt").display());
    ovs.run("ovs-ofctl", &["-O", "OpenFlow13", "del-flows", &socket]);
    while fabric.counters().faults.missing < 10 {
        repaired(&mut fabric);
    }
    assert_eq!(entries_of(&ovs, "sw0"), wanted, "routes and the reroute entry");
    // Reports of the same deletion that arrived during the audit may cause one more.
    maintain_for_a_while(&mut fabric);
    let (faults, audits) = (fabric.counters().faults, fabric.counters().audits);
    // Its own deletions cause no audit.
    reroute(&mut fabric, 0);
    maintain_for_a_while(&mut fabric);
    assert_eq!((fabric.counters().faults, fabric.counters().audits), (faults, audits));
    check_log(&ovs);
}

#[test]
fn changed_and_foreign_entries_are_found_by_periodic_reads() {
    let Some(ovs) = ovs("changed_and_foreign_entries_are_found", "OpenFlow13") else { return };
    let state = state();
    let config = Config { audit_interval: Nanos::from_millis(50), ..Config::default() };
    let (mut fabric, address) = fabric_with(&state, config);
    add_bridges(&ovs, &state, address);
    fabric.install(&state);
    settle(&mut fabric);
    let wanted = entries_of(&ovs, "sw1");
    let cases = [
        (
            "mod-flows",
            "dl_dst=02:54:57:00:00:03,actions=drop",
            RuleFaults { changed: 1, ..RuleFaults::default() },
        ),
        (
            "add-flow",
            "cookie=0x7477000000000009,priority=7,dl_dst=02:54:57:00:00:09,actions=drop",
            RuleFaults { foreign: 1, ..RuleFaults::default() },
        ),
        (
            "add-flow",
            "cookie=0x7477000000000001,priority=16384,dl_dst=02:54:57:00:00:63,actions=drop",
            RuleFaults { foreign: 1, ..RuleFaults::default() },
        ),
        // Replaced by an entry with another cookie.
        (
            "add-flow",
            "cookie=0x5,priority=16384,dl_dst=02:54:57:00:00:03,actions=drop",
            RuleFaults { missing: 1, ..RuleFaults::default() },
        ),
    ];
    for (command, flow, faults) in cases {
        ofctl(&ovs, command, "sw1", flow);
        assert_eq!(repaired(&mut fabric), (RouterId(1), faults), "{flow}");
        assert_eq!(entries_of(&ovs, "sw1"), wanted, "{flow}");
    }
    ofctl(&ovs, "add-flow", "sw1", "cookie=0x5,priority=60000,dl_dst=02:54:57:00:00:09,actions=drop");
    let audits = fabric.counters().audits;
    let start = Instant::now();
    while fabric.counters().audits < audits + 8 {
        fabric.maintain(Timestamp(start.elapsed().as_nanos() as u64));
        assert!(start.elapsed() < TEST_TIMEOUT);
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(ovs.flows("sw1").len(), 9, "entries of other controllers stay");
    check_log(&ovs);
}

/// Returns two switches of two hosts, connected by two links. Their ports have other numbers than in the topology.
fn named_state() -> NetworkState {
    let (mut builder, link) = (TopologyBuilder::new(), LinkSpec::default());
    let routers = [0, 1].map(|number| builder.add_router(format!("tor{number}")).unwrap());
    for (host, router) in [(0, 0), (1, 0), (2, 1), (3, 1)] {
        let endpoint = builder.add_endpoint(format!("h{host}"), routers[router], link).unwrap();
        let number = [4, 1][host % 2];
        builder.set_port_name(endpoint, &format!("sw{router}p{number}")).unwrap();
    }
    for numbers in [[2, 3], [3, 2]] {
        builder.connect(routers[0], routers[1], link).unwrap();
        let names = [0, 1].map(|router| format!("sw{router}p{}", numbers[router]));
        builder.set_last_link_port_names([&names[0], &names[1]]).unwrap();
    }
    let topology = Arc::new(builder.build().unwrap());
    let links = LinkState::new(&topology);
    let trees = spanning_trees(&topology, &links, TreeOptions { addresses: ADDRESSES, seed: 1 });
    NetworkState::new(topology, links, Forwarding::tables(trees)).unwrap()
}

#[test]
fn ports_are_found_by_the_names_that_the_switches_report() {
    let Some(ovs) = ovs("ports_are_found_by_name", "OpenFlow13") else { return };
    let state = named_state();
    let member = |router: RouterId| Member {
        router,
        datapath: DatapathId(0x100 + u64::from(router.0)),
        monitor: Some(PortReference::Name(format!("sw{}p{MONITOR}", router.0))),
    };
    let members: Vec<Member> = state.topology().router_ids().map(member).collect();
    let mut fabric = Fabric::new(Arc::clone(state.topology()), &members, Config::default());
    let address = fabric.switches().listen(local(0), None).unwrap();
    add_bridges(&ovs, &state, address);
    fabric.install(&state);
    settle(&mut fabric);
    let base = state.topology().mac(PAIR.destination, 0).to_string();
    for tree in [0, 1] {
        let (path, host, arrives_as) = walk(&ovs, &state, tree);
        assert_eq!((path.len(), host, &arrives_as), (2, PAIR.destination, &base));
    }
    reroute(&mut fabric, 1);
    assert!(
        ovs.flows("sw0").iter().any(|line| line.contains("priority=20480") && line.contains("in_port=4"))
    );
    assert_eq!(walk(&ovs, &state, 0).1, PAIR.destination);
    let news = fabric.take_events();
    assert!(!news.iter().any(|event| matches!(event, FabricEvent::MissingPorts { .. })), "{news:?}");

    // A port that is added again under another number is used under that one.
    ovs.renumber_port("sw0", "sw0p4", 7);
    let rerouted = |ovs: &Ovs| {
        let flows = ovs.flows("sw0");
        flows.iter().any(|line| line.contains("priority=20480") && line.contains("in_port=7"))
            && !flows.iter().any(|line| line.contains("in_port=4") || line.contains("output:4"))
    };
    settle_until(&mut fabric, |_| rerouted(&ovs));
    check_log(&ovs);
}

#[test]
fn a_port_that_the_switch_does_not_have_is_reported_and_its_link_is_down() {
    let Some(ovs) = ovs("a_missing_port", "OpenFlow13") else { return };
    let state = named_state();
    let (mut fabric, address) = fabric(&state);
    add_bridges(&ovs, &state, address);
    fabric.install(&state);
    settle(&mut fabric);
    ovs.delete_port("sw1", "sw1p3");
    let mut news = Vec::new();
    settle_until(&mut fabric, |fabric| {
        news.extend(fabric.take_events());
        news.iter().any(|event| matches!(event, FabricEvent::LinkChanged { is_up: false, .. }))
    });
    let texts: Vec<String> = news.iter().map(|event| event.describe(state.topology()).to_string()).collect();
    assert!(
        texts.iter().any(|text| text.starts_with("tor1 lacks p2 (\"sw1p3\"): it has the ports")),
        "{texts:?}"
    );
    assert_eq!(fabric.out_of_sync().collect::<Vec<_>>(), [RouterId(1)]);
    check_log(&ovs);
}
