//! Ports and paths that are inferred from mirrored frames are those that the packets really took.
//!
//! An emulated fat tree mirrors one port of every switch, so that which port a frame left by is known; runs with other
//! ports mirrored, of the same traffic, make up the whole path of each packet. What is inferred has seen the frame and
//! the versions of the network's state, and nothing else.

use std::collections::BTreeMap;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use thalweg_emulator::core::blueprint::Blueprint;
use thalweg_emulator::hosts::{HostConfig, Hosts};
use thalweg_emulator::mirror::MirrorSource;
use thalweg_emulator::ports::monitor::Monitor;
use thalweg_emulator::schemes::list::Scheme;
use thalweg_emulator::workloads::{FlowStart, Workload};
use thalweg_emulator::{Network, Packet, Request, network};
use thalweg_network::routing::{ForwardingTable, Hop, NextHops, ecmp};
use thalweg_network::topology::shapes::{Tiers, fat_tree};
use thalweg_network::{
    Case, Certainty, EndpointId, Forwarding, Inference, LinkId, LinkState, NetworkState, PortIndex, RouterId,
    Topology, Versions,
};
use thalweg_wire::parse::Parser;
use thalweg_wire::{BitRate, Bytes, Nanos, Source, Timestamp};

/// Seed of traffic and of ECMP.
const SEED: u64 = 5;
/// Length of a run, and when the forwarding changes.
const SLOTS: u64 = 1_500;
const CHANGE: u64 = 700;
/// Most packets that are begun in a slot, by 16 endpoints.
const PACKETS_PER_SLOT: u32 = 5;
/// Shadow addresses of each endpoint.
const SHADOWS: u8 = 3;
/// Longer than any packet of these runs is under way.
const SETTLE: Nanos = Nanos::from_micros(100);

/// A frame that a monitor port has sent, and what was inferred of it.
struct Seen {
    packet: Packet,
    /// The switch, and the port that it is known to have left by.
    hop: Hop,
    at: Timestamp,
    inference: Inference,
    path: Option<Vec<Hop>>,
}

/// What is done to the network in the middle of a run, and the state after it.
type Change = fn(&mut dyn Network, &NetworkState) -> NetworkState;

struct Scenario {
    topology: Topology,
    before: NetworkState,
    change: Change,
    /// Addresses that packets are sent to.
    addresses: u8,
}

impl Scenario {
    /// Under ECMP, with a link that fails.
    fn ecmp() -> Scenario {
        let topology = fat_tree(4, Tiers::default()).unwrap();
        let links = LinkState::new(&topology);
        let before = NetworkState::new(topology.clone(), links, Forwarding::ecmp(SEED)).unwrap();
        fn change(network: &mut dyn Network, before: &NetworkState) -> NetworkState {
            // A link between an edge and an aggregation switch.
            network.fail(LinkId(16));
            network.rewire();
            before.with_links(network.links().clone()).unwrap()
        }
        Scenario { topology, before, change, addresses: 1 }
    }

    /// Under tables with four trees to each endpoint, which all change.
    fn tables() -> Scenario {
        let topology = fat_tree(4, Tiers::default()).unwrap();
        let links = LinkState::new(&topology);
        let rules = Forwarding::tables(trees(&topology, 1)).with_write_back(false);
        let before = NetworkState::new(topology.clone(), links, rules).unwrap();
        fn change(network: &mut dyn Network, before: &NetworkState) -> NetworkState {
            let tables = trees(before.topology(), 2);
            for (table, router) in tables.iter().zip(before.topology().router_ids()) {
                network.set_forwarding(router, Some(table.clone()));
            }
            before.with_forwarding(before.forwarding().clone().with_tables(tables)).unwrap()
        }
        Scenario { topology, before, change, addresses: 1 + SHADOWS }
    }

    /// Everything that is mirrored of this port of every switch.
    fn run(&self, port: PortIndex, settle: Nanos) -> Vec<Seen> {
        let monitors: Vec<Monitor> = self
            .topology
            .router_ids()
            .map(|router| Monitor {
                router,
                ports: vec![port],
                rate: BitRate(10_000_000_000),
                buffer: Bytes(1 << 20),
            })
            .collect();
        let blueprint = Blueprint { monitors: &monitors, ..Blueprint::new(&self.topology, 1_500, SEED) };
        let mut network = network::build(&Scheme::default_of("droptail").unwrap(), &blueprint).unwrap();
        for (table, router) in self.before.forwarding().all_tables().iter().zip(self.topology.router_ids()) {
            network.set_forwarding(router, Some(table.clone()));
        }
        let mut versions = Versions::new(self.before.clone()).with_transition_time(settle);
        let mut traffic = Traffic::new(self.addresses);
        let (mut mirrored, mut outcomes, mut seen) = (Vec::new(), Vec::new(), Vec::new());
        let mut source = MirrorSource::new(&self.topology, blueprint.clock, "any");
        for slot in 0..SLOTS {
            if slot == CHANGE {
                let after = (self.change)(&mut *network, &self.before);
                versions.push(after, blueprint.clock.start_of(network.now())).unwrap();
            }
            network.inject(&traffic.requests());
            network.advance(&mut outcomes);
            network.take_mirrored(&mut mirrored);
            mirrored.iter().for_each(|copy| source.push(copy, None));
            let batch = source.next_batch().unwrap().expect("the source goes on");
            for (copy, frame) in mirrored.drain(..).zip(batch.iter()) {
                let headers = Parser::default().parse(&frame).unwrap();
                let (inference, path) =
                    versions.infer_path(copy.router, &headers.ethernet, &headers.key, headers.time);
                let hop = Hop { router: copy.router, port };
                let path = path.map(|path| path.hops().to_vec());
                seen.push(Seen { packet: copy.packet, hop, at: headers.time, inference, path });
            }
        }
        seen
    }

    /// Everything that is mirrored of any port.
    fn run_all(&self, settle: Nanos) -> Vec<Seen> {
        (0..4).flat_map(|port| self.run(PortIndex(port), settle)).collect()
    }
}

/// Four trees to each endpoint, along shortest paths; those of different seeds differ.
fn trees(topology: &Topology, seed: u64) -> Vec<ForwardingTable> {
    let next_hops = NextHops::new(topology, &LinkState::new(topology)).unwrap();
    let table = |router: RouterId| {
        let mut table = ForwardingTable::new(16, SHADOWS, topology.ports(router) as u16);
        for (to, address) in topology.endpoint_ids().flat_map(|to| (0..=SHADOWS).map(move |a| (to, a))) {
            let hash =
                ecmp::hash(ecmp::salt(seed, router), ecmp::word(EndpointId(0), to, u32::from(address)));
            table.set(to, address, ecmp::choose(next_hops.ports(router, to), hash).unwrap()).unwrap();
        }
        table
    };
    topology.router_ids().map(table).collect()
}

/// Packets of any source, destination, flow and address, each of its own id.
struct Traffic {
    random: Xoshiro256PlusPlus,
    addresses: u8,
    next_id: u32,
}

impl Traffic {
    fn new(addresses: u8) -> Traffic {
        Traffic { random: Xoshiro256PlusPlus::seed_from_u64(SEED), addresses, next_id: 0 }
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.random.next_u32() % bound
    }

    fn requests(&mut self) -> Vec<Request> {
        (0..self.below(PACKETS_PER_SLOT + 1)).map(|_| self.request()).collect()
    }

    fn request(&mut self) -> Request {
        let source = self.below(16) as u16;
        let destination = (source + 1 + self.below(15) as u16) % 16;
        let flow = self.below(1 << 28) | self.below(2) << 31;
        let id = self.next_id;
        self.next_id += 1;
        let packet = Packet::new(EndpointId(source), EndpointId(destination), flow, id, 1_538);
        let address = self.below(u32::from(self.addresses)) as u8;
        Request { packet: packet.with_address(address), remaining: 1_500 }
    }
}

/// Checks every frame of a run, and gives how many were inferred with each certainty.
fn check(scenario: &Scenario, seen: &[Seen]) -> [u64; Certainty::COUNT] {
    let mut counted = [0; Certainty::COUNT];
    let mut journeys: BTreeMap<u32, Vec<&Seen>> = BTreeMap::new();
    for frame in seen {
        counted[frame.inference.certainty.index()] += 1;
        journeys.entry(frame.packet.id()).or_default().push(frame);
        if frame.inference.certainty == Certainty::Certain {
            assert_eq!(frame.inference.case, Case::Known, "{:?}", frame.packet);
            assert_eq!(frame.inference.ports.output, Some(frame.hop.port), "{:?}", frame.packet);
        }
    }
    for journey in journeys.values_mut() {
        journey.sort_by_key(|frame| frame.at);
        check_journey(&scenario.topology, journey);
    }
    counted
}

/// Checks all that was seen of one packet, in order of time: its way from the source to where it arrived, or to where
/// it was when the run ended or a link went down.
fn check_journey(topology: &Topology, journey: &[&Seen]) {
    let packet = &journey[0].packet;
    let way: Vec<Hop> = journey.iter().map(|frame| frame.hop).collect();
    let is_certain = |frame: &&Seen| frame.inference.certainty == Certainty::Certain;
    let versions = [journey[0], journey[journey.len() - 1]].map(|frame| frame.inference.version);
    let is_undisturbed = journey.iter().all(is_certain) && versions[0] == versions[1];
    let mut input = Some(topology.port_of(packet.source()));
    for (index, frame) in journey.iter().enumerate() {
        let Hop { router, port } = frame.hop;
        if is_certain(frame) {
            assert_eq!(frame.inference.ports.input, input, "{packet:?} at {router}");
            let path = frame.path.as_ref().expect("a packet that is on its way has a path");
            // What becomes of a packet after a change, nobody can tell before it.
            let known = if is_undisturbed { &way[..] } else { &way[..=index] };
            assert!(path.starts_with(known), "{packet:?} went {way:?}, not {path:?}");
        }
        input = Some(topology.peer(router, port).port);
    }
}

/// Frames whose output port was inferred wrongly.
fn wrong(seen: &[Seen]) -> usize {
    seen.iter().filter(|frame| frame.inference.ports.output != Some(frame.hop.port)).count()
}

#[test]
fn inference_is_exact_for_ecmp_with_a_link_failure() {
    let scenario = Scenario::ecmp();
    let seen = scenario.run_all(SETTLE);
    let counted = check(&scenario, &seen);
    assert!(counted[Certainty::Certain.index()] > 10_000, "{counted:?}");
    assert!(counted[Certainty::Agreed.index()] > 100, "{counted:?}");
    assert_eq!(counted[Certainty::Forgotten.index()], 0);
}

#[test]
fn inference_is_exact_for_tables_with_changing_trees() {
    let scenario = Scenario::tables();
    let seen = scenario.run_all(SETTLE);
    let counted = check(&scenario, &seen);
    assert!(counted[Certainty::Certain.index()] > 10_000, "{counted:?}");
    assert!(counted[Certainty::Ambiguous.index()] > 100, "{counted:?}");
    assert!(wrong(&seen) > 0, "packets that were on their way when the trees changed");
    let doubtful = seen.iter().filter(|frame| frame.inference.certainty != Certainty::Certain);
    assert!(doubtful.clone().any(|frame| frame.inference.version == 2), "by the new trees");
    assert!(doubtful.clone().any(|frame| frame.inference.version == 1), "the new trees do not lead there");
}

#[test]
fn without_a_transition_time_packets_in_flight_are_misattributed() {
    let seen = Scenario::tables().run_all(Nanos::ZERO);
    assert!(seen.iter().all(|frame| frame.inference.certainty == Certainty::Certain));
    assert!(wrong(&seen) > 0);
}

/// Flows that all begin at once.
struct Flows(Vec<FlowStart>);

impl Workload for Flows {
    fn next_start(&self) -> Option<Timestamp> {
        self.0.last().map(|flow| flow.at)
    }

    fn start(&mut self) -> Option<FlowStart> {
        self.0.pop()
    }

    fn completed(&mut self, _flow: u32, _at: Timestamp) {}
}

#[test]
fn tcp_data_and_acknowledgements_follow_the_path() {
    let scenario = Scenario::ecmp();
    let topology = &scenario.topology;
    let flow = |source: u16| FlowStart {
        at: Timestamp(0),
        source: EndpointId(source),
        destination: EndpointId((source + 5) % 16),
        bytes: 200_000,
        dscp: 0,
    };
    for port in (0..4).map(PortIndex) {
        let monitor = |router| Monitor {
            router,
            ports: vec![port],
            rate: BitRate(1_000_000_000),
            buffer: Bytes(1 << 20),
        };
        let monitors: Vec<_> = topology.router_ids().map(monitor).collect();
        let blueprint = Blueprint { monitors: &monitors, ..Blueprint::new(topology, 1_500, SEED) };
        let mut network = network::build(&Scheme::default_of("droptail").unwrap(), &blueprint).unwrap();
        let mut hosts = Hosts::new(HostConfig::default(), 16, blueprint.clock).unwrap();
        let mut flows = Flows((0..16).chain(0..16).map(flow).collect());
        let mut source = MirrorSource::new(topology, blueprint.clock, "any");
        let versions = Versions::new(scenario.before.clone());
        let (mut mirrored, mut frames) = (Vec::new(), [0; 2]);
        for _ in 0..500 {
            hosts.slot(&mut *network, &mut flows);
            network.take_mirrored(&mut mirrored);
            mirrored.iter().for_each(|copy| source.push(copy, hosts.segment(copy.packet.id())));
            let batch = source.next_batch().unwrap().expect("the source goes on");
            for (copy, frame) in mirrored.drain(..).zip(batch.iter()) {
                let packet = Parser::default().parse(&frame).unwrap();
                let inference = versions.infer(copy.router, &packet.ethernet, &packet.key, packet.time);
                assert_eq!(
                    (inference.case, inference.ports.output),
                    (Case::Known, Some(port)),
                    "{}",
                    packet.key
                );
                frames[usize::from(packet.payload_length == 0)] += 1;
            }
        }
        assert!(frames.iter().all(|&frames| frames > 500), "{frames:?}");
    }
}
