mod cores;
mod impairments;
mod redirection;

use proptest::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use thalweg_network::topology::shapes::{Tiers, dumbbell, fat_tree, leaf_spine, rack, racks};
use thalweg_network::topology::{LinkSpec, Topology};
use thalweg_network::{EndpointId, LinkId, PortIndex, RouterId};
use thalweg_wire::{BitRate, Bytes, Nanos, Timestamp};

use super::blueprint::{Blueprint, BlueprintError};
use super::emulation::Emulation;
use super::events::Event;
use super::pacer::PaceOptions;
use super::parallel::{Driver, Pace, RealTime, Run};
use super::shard::Shard;
use crate::fabric::{Fabric, Network};
use crate::outcome::{Dropped, Fate, Outcome, Place, Reason, Request};
use crate::packet::Packet;
use crate::ports::monitor::Monitor;
use crate::router::{Balance, RouterPorts, Routing};
use crate::schemes::Scheme;
use crate::schemes::drop_tail::{DropTail, DropTailConfig, drop_tail};
use crate::slot::Slot;

const GIGABIT: u64 = 1_000_000_000;

fn tiers(access: u64, uplink: u64, delay: Nanos) -> Tiers {
    Tiers {
        access: LinkSpec { rate: BitRate(access * GIGABIT), delay: Nanos::ZERO, ..LinkSpec::default() },
        uplink: LinkSpec { rate: BitRate(uplink * GIGABIT), delay, ..LinkSpec::default() },
    }
}

fn emulation(topology: &Topology, buffer: u32) -> Emulation<DropTail<Routing>> {
    let blueprint = Blueprint::new(topology, 1_500, 1);
    Emulation::new(&blueprint, |routing, shape| drop_tail(routing, shape, &DropTailConfig { buffer }))
        .unwrap()
}

fn request(source: u16, destination: u16, id: u32, length: u16) -> Request {
    let packet = Packet::new(EndpointId(source), EndpointId(destination), u32::from(source), id, length);
    Request { packet, remaining: 0 }
}

/// Runs `slots` slots. Returns the slot in which each packet arrived (at its start), by id.
fn arrivals(network: &mut dyn Network, slots: u64) -> Vec<(u64, u32)> {
    let mut outcomes = Vec::new();
    let mut arrivals = Vec::new();
    for _ in 0..slots {
        network.advance(&mut outcomes);
        let now = network.now().0;
        arrivals
            .extend(outcomes.drain(..).filter(|o| o.fate == Fate::Delivered).map(|o| (now, o.packet.id())));
    }
    arrivals
}

#[test]
fn a_full_size_packet_takes_one_slot_a_link() {
    let topology = rack(4, tiers(10, 10, Nanos::ZERO).access).unwrap();
    let mut network = emulation(&topology, 16);
    network.inject(&[request(0, 1, 7, 1_538), request(0, 1, 8, 1_538)]);
    assert_eq!(arrivals(&mut network, 6), [(2, 7), (3, 8)]);
}

#[test]
fn shorter_slots_make_slow_networks_exact_in_real_time() {
    for (kbps, longest_slot) in
        [(10, 4_807_000), (100, 480_700), (1_000, 97_000), (20_000, 77_000), (1_000_000, 12_304)]
    {
        let delay = Nanos::from_millis(10);
        let link = LinkSpec { rate: BitRate(kbps * 1_000), delay, ..LinkSpec::default() };
        let topology = rack(2, link).unwrap();
        let blueprint = Blueprint::new(&topology, 1_500, 1).with_slots_within(Nanos::from_micros(100));
        let clock = blueprint.clock;
        let slot = clock.start_of(Slot(1)).0;
        assert!(slot <= longest_slot, "{slot} ns at {kbps} kbit/s");
        let drop_tail = |routing: Routing, ports: RouterPorts<'_>| {
            drop_tail(routing, ports, &DropTailConfig { buffer: 16 })
        };
        let mut network = Emulation::new(&blueprint, drop_tail).unwrap();
        // A ping, and a packet of the largest length.
        for (id, length) in [(1, 122), (2, 1_538)] {
            let start = network.now();
            network.inject(&[request(0, 1, id, length)]);
            let transmission = u64::from(length) * 8_000_000 / kbps;
            let exact = 2 * (delay.0 + transmission);
            let slots = (exact / slot) + 4;
            let (arrival, _) = arrivals(&mut network, slots)[0];
            let measured = clock.start_of(Slot(arrival - start.0)).0;
            assert!(
                (exact..exact + 2 * slot).contains(&measured),
                "{measured} ns, not {exact}, at {kbps} kbit/s"
            );
        }
    }
}

#[test]
fn slots_stay_long_enough_for_the_slowest_link() {
    let spec = |kbps: u64| LinkSpec { rate: BitRate(kbps * 1_000), ..LinkSpec::default() };
    let mut builder = thalweg_network::TopologyBuilder::new();
    let router = builder.add_router("r").unwrap();
    builder.add_endpoint("fast", router, spec(10_000)).unwrap();
    builder.add_endpoint("slow", router, spec(2)).unwrap();
    let topology = builder.build().unwrap();
    let blueprint = Blueprint::new(&topology, 1_500, 1);
    let shorter = blueprint.clone().with_slots_within(Nanos::from_micros(100));
    assert_eq!(shorter.check(), Ok(()));
    let [before, after] = [&blueprint, &shorter].map(|it| it.clock.start_of(Slot(1)).0);
    assert_eq!((before, after), (1_230_400, 615_200), "6.2 s are 10,000 of them");
}

#[test]
fn small_packets_share_a_slot() {
    let topology = rack(4, tiers(10, 10, Nanos::ZERO).access).unwrap();
    let mut network = emulation(&topology, 64);
    // 18 times 84 bytes are 1,512: the nineteenth ends in the slot after.
    let packets: Vec<Request> = (0..19).map(|id| request(0, 1, id, 84)).collect();
    network.inject(&packets);
    let slots: Vec<u64> = arrivals(&mut network, 6).into_iter().map(|(slot, _)| slot).collect();
    assert_eq!(slots[..18], [2; 18]);
    assert_eq!(slots[18..], [3]);
}

/// Runs `slots` slots. Returns the arrival time in nanoseconds and the id of each packet, in order of time.
fn arrival_times(network: &mut dyn Network, slots: u64) -> Vec<(f64, u32)> {
    let mut outcomes = Vec::new();
    let mut times = Vec::new();
    let slot = network.clock().seconds() * 1e9;
    for _ in 0..slots {
        network.advance(&mut outcomes);
        let now = network.now().0 as f64;
        let delivered = outcomes.drain(..).filter(|outcome| outcome.fate == Fate::Delivered);
        times.extend(
            delivered.map(|outcome| {
                ((now - f64::from(outcome.packet.lag().0) / 128.0) * slot, outcome.packet.id())
            }),
        );
    }
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    times
}

/// Each hop rounds to the nearest 2^-7 of a slot, 9.6 ns.
fn assert_times(times: &[(f64, u32)], expected: &[(f64, u32)], tolerance: f64) {
    assert_eq!(times.len(), expected.len(), "{times:?}");
    for (time, expected) in times.iter().zip(expected) {
        assert!(
            time.1 == expected.1 && (time.0 - expected.0).abs() < tolerance,
            "{times:?}, not {expected:?}"
        );
    }
}

#[test]
fn packets_take_their_transmission_times_and_the_delay() {
    let topology = dumbbell(
        1,
        Tiers {
            access: LinkSpec { rate: BitRate(10 * GIGABIT), delay: Nanos::ZERO, ..LinkSpec::default() },
            uplink: LinkSpec {
                rate: BitRate(10 * GIGABIT / 4),
                delay: Nanos::from_micros(5),
                ..LinkSpec::default()
            },
        },
    )
    .unwrap();
    let mut network = emulation(&topology, 64);
    network.inject(&[request(0, 1, 1, 1_538), request(0, 1, 2, 1_538), request(0, 1, 3, 84)]);
    // Full-size packets take 1,230.4 ns at 10 Gbit/s and 4,921.6 ns at 2.5 Gbit/s.
    let expected = [(12_382.4, 1), (17_304.0, 2), (17_371.2, 3)];
    assert_times(&arrival_times(&mut network, 40), &expected, 30.0);
}

#[test]
fn fast_links_carry_several_packets_a_slot() {
    let topology = dumbbell(8, tiers(10, 40, Nanos::ZERO)).unwrap();
    let mut network = emulation(&topology, 64);
    let packets: Vec<Request> = (0..8).map(|host| request(host, 8 + host, 0, 1_538)).collect();
    network.inject(&packets);
    let expected: Vec<(f64, u32)> = (1..=8).map(|n| (2.0 * 1_230.4 + 307.6 * f64::from(n), 0)).collect();
    assert_times(&arrival_times(&mut network, 40), &expected, 30.0);
}

/// A lone packet takes the transmission times and delays of its four links, for any slot length.
#[test]
fn a_packet_alone_takes_the_latency_of_its_links() {
    for (access, uplink, length, expected) in [
        (10, 100, 1_538, 2.0 * (1_230.4 + 123.04) + 4_000.0),
        (1, 10, 1_538, 2.0 * (12_304.0 + 1_230.4) + 4_000.0),
        (10, 10, 1_538, 4.0 * 1_230.4 + 4_000.0),
        (10, 100, 84, 2.0 * (67.2 + 6.72) + 4_000.0),
        (1, 10, 84, 2.0 * (672.0 + 67.2) + 4_000.0),
    ] {
        let mut tiers = tiers(access, uplink, Nanos::from_micros(1));
        tiers.access.delay = Nanos::from_micros(1);
        let topology = leaf_spine(2, 2, 1, tiers).unwrap();
        let mut network = emulation(&topology, 64);
        network.inject(&[request(0, 1, 7, length)]);
        let times = arrival_times(&mut network, 100);
        assert_times(&times, &[(expected, 7)], expected * 0.02);
    }
}

#[test]
fn a_full_queue_drops_the_latest_packet() {
    let topology = rack(4, tiers(10, 10, Nanos::ZERO).access).unwrap();
    let mut network = emulation(&topology, 2);
    network.inject(&[request(0, 3, 0, 1_538), request(1, 3, 1, 1_538), request(2, 3, 2, 1_538)]);
    let mut outcomes = Vec::new();
    (0..6).for_each(|_| network.advance(&mut outcomes));
    let dropped: Vec<(u32, Fate)> = outcomes
        .iter()
        .filter(|outcome| outcome.fate != Fate::Delivered)
        .map(|outcome| (outcome.packet.id(), outcome.fate))
        .collect();
    let place = Place::Port(RouterId(0), topology.port_of(EndpointId(3)));
    assert_eq!(dropped, [(2, Fate::Dropped(place, Reason::Full))]);
    let tally = network.port_tally(RouterId(0), topology.port_of(EndpointId(3)));
    assert_eq!((tally.sent.packets, tally.verdicts.drops()), (2, 1));
}

/// Two hosts send at full rate, one of them through a queue at its interface, over a port of half the rate that they
/// need. Each loses half of 20,000, plus or minus 5 % in all but one run of 10^11 (7 sigma, seed 1).
#[test]
fn busy_interfaces_have_no_advantage_at_a_full_queue() {
    let topology = rack(3, tiers(10, 10, Nanos::ZERO).access).unwrap();
    let mut network = emulation(&topology, 8);
    let mut outcomes = Vec::new();
    network.inject(&[request(0, 2, 0, 1_538), request(0, 2, 0, 1_538)]);
    for _ in 0..20_000 {
        network.inject(&[request(0, 2, 0, 1_538), request(1, 2, 1, 1_538)]);
        network.advance(&mut outcomes);
    }
    let lost = |id| outcomes.iter().filter(|o| o.fate != Fate::Delivered && o.packet.id() == id).count();
    assert!((9_500..=10_500).contains(&lost(0)), "{} and {}", lost(0), lost(1));
    assert!((9_500..=10_500).contains(&lost(1)), "{} and {}", lost(0), lost(1));
}

#[test]
fn an_interface_queue_is_limited() {
    let topology = rack(2, tiers(10, 10, Nanos::ZERO).access).unwrap();
    let mut network = emulation(&topology, 1_024);
    let packets: Vec<Request> = (0..200).map(|id| request(0, 1, id, 1_538)).collect();
    network.inject(&packets);
    assert_eq!(network.backlog(EndpointId(0)), 129 * 1_538, "one is leaving, and 128 wait");
    let mut outcomes = Vec::new();
    (0..200).for_each(|_| network.advance(&mut outcomes));
    let drops =
        outcomes.iter().filter(|o| o.fate == Fate::Dropped(Place::Endpoint(EndpointId(0)), Reason::Full));
    assert_eq!((drops.count(), network.in_flight()), (71, 0));
    assert_eq!(network.interface_tally(EndpointId(0)).sent.packets, 129);
}

#[test]
fn a_failing_link_drops_its_packets_and_queue() {
    let topology = dumbbell(2, tiers(10, 10, Nanos::from_micros(20))).unwrap();
    let mut network = emulation(&topology, 64);
    let between = topology
        .links()
        .iter()
        .position(|link| link.ends.iter().all(|end| matches!(end.node, thalweg_network::Node::Router(_))));
    let between = LinkId(between.unwrap() as u32);
    let packets: Vec<Request> =
        (0..20).map(|id| request(id as u16 % 2, 2 + id as u16 % 2, id, 1_538)).collect();
    network.inject(&packets);
    let mut outcomes = Vec::new();
    (0..11).for_each(|_| network.advance(&mut outcomes));
    network.fail(between);
    assert_eq!(network.in_flight(), 0, "all were on the link, or waited for it");
    network.inject(&[request(0, 3, 100, 1_538)]);
    (0..10).for_each(|_| network.advance(&mut outcomes));
    network.repair(between);
    network.inject(&[request(0, 3, 101, 1_538)]);
    (0..30).for_each(|_| network.advance(&mut outcomes));
    let lost = outcomes.iter().filter(|o| matches!(o.fate, Fate::Dropped(_, Reason::LinkDown))).count();
    let delivered: Vec<u32> =
        outcomes.iter().filter(|o| o.fate == Fate::Delivered).map(|o| o.packet.id()).collect();
    assert_eq!((lost, delivered), (21, vec![101]));
}

#[test]
fn traffic_is_rerouted_around_a_failed_link() {
    let topology = leaf_spine(2, 2, 1, tiers(10, 10, Nanos::ZERO)).unwrap();
    let mut network = emulation(&topology, 64);
    let uplinks: Vec<LinkId> = (0..topology.links().len() as u32)
        .map(LinkId)
        .filter(|&id| {
            topology.links()[id.index()]
                .ends
                .iter()
                .all(|end| matches!(end.node, thalweg_network::Node::Router(_)))
        })
        .collect();
    for &link in &uplinks {
        network.fail(link);
        network.rewire();
        network.inject(&[request(0, 1, 0, 1_538)]);
        assert_eq!(arrivals(&mut network, 8).len(), 1, "one of two spines is left");
        network.repair(link);
    }
    uplinks.iter().for_each(|&link| network.fail(link));
    network.rewire();
    network.inject(&[request(0, 1, 0, 1_538)]);
    let mut outcomes = Vec::new();
    (0..8).for_each(|_| network.advance(&mut outcomes));
    let leaf = topology.router_of(EndpointId(0));
    assert_eq!(outcomes[0].fate, Fate::Dropped(Place::Router(leaf), Reason::NoRoute));
}

#[test]
fn a_monitor_port_sends_up_to_its_rate() {
    let topology = rack(4, tiers(10, 10, Nanos::ZERO).access).unwrap();
    let monitor = Monitor {
        router: RouterId(0),
        ports: (0..4).map(PortIndex).collect(),
        rate: BitRate(10 * GIGABIT),
        buffer: Bytes(8 * 1_538),
    };
    let blueprint =
        Blueprint { monitors: std::slice::from_ref(&monitor), ..Blueprint::new(&topology, 1_500, 1) };
    let mut network =
        Emulation::new(&blueprint, |routing, shape| drop_tail(routing, shape, &DropTailConfig::default()))
            .unwrap();
    let mut outcomes = Vec::new();
    let mut mirrored = Vec::new();
    // Two hosts send at full rate; half of it fits.
    for slot in 0..1_000 {
        network.inject(&[request(0, 1, slot, 1_538), request(2, 3, slot, 1_538)]);
        network.advance(&mut outcomes);
        network.take_mirrored(&mut mirrored);
    }
    let tally = network.monitor_tally(RouterId(0)).unwrap();
    assert_eq!(tally.sent.packets, mirrored.len() as u64);
    assert_eq!(
        tally.sent.packets + tally.dropped.packets,
        network.port_tally(RouterId(0), PortIndex(1)).sent.packets * 2
    );
    assert!((1_000..=1_010).contains(&mirrored.len()), "{} of 2,000", mirrored.len());
    let times: Vec<u64> = mirrored.iter().map(|packet| packet.at.time(network.clock()).0).collect();
    assert!(times.is_sorted());
    let gap = (times[900] - times[100]) as f64 / 800.0;
    assert!((gap - 1_230.4).abs() < 0.1, "{gap} ns between packets");
    // A random order in each slot: 500 of 1,000, plus or minus four standard deviations of 16.
    let first = mirrored.iter().filter(|copy| copy.packet.destination() == EndpointId(1)).count();
    assert!((436..=564).contains(&first), "{first} of 1,000 copies are of the first port");
}

#[test]
fn an_invalid_network_is_an_error() {
    let topology = rack(2, tiers(10, 10, Nanos::ZERO).access).unwrap();
    let build = |blueprint: &Blueprint<'_>| {
        let error =
            blueprint.build(|routing, shape| drop_tail(routing, shape, &DropTailConfig::default())).err();
        assert_eq!(blueprint.check().err(), error, "a check says the same");
        error
    };
    let good = Blueprint::new(&topology, 1_500, 1);
    assert_eq!(build(&good), None);
    let monitors = [Monitor { router: RouterId(3), ports: vec![], rate: BitRate(1), buffer: Bytes(0) }];
    let error = build(&Blueprint { monitors: &monitors, ..good.clone() });
    assert_eq!(error, Some(BlueprintError::Monitor { router: 3, why: "there is no such router" }));
    let fast = LinkSpec { rate: BitRate(10 * GIGABIT), delay: Nanos::ZERO, ..LinkSpec::default() };
    let slow = LinkSpec { rate: BitRate(1_000), delay: Nanos::ZERO, ..LinkSpec::default() };
    let uneven = dumbbell(1, Tiers { access: fast, uplink: slow }).unwrap();
    let error = build(&Blueprint::new(&uneven, 1_500, 1)).unwrap();
    assert!(matches!(error, BlueprintError::Horizon { .. }), "{error}");
    let scheme = Scheme::DropTail(DropTailConfig { buffer: 1 << 29 });
    let error = crate::network::check(&scheme, &good).unwrap_err();
    assert!(matches!(error, BlueprintError::Queues { .. }), "{error}");
    assert_eq!(crate::network::build(&scheme, &good).err(), Some(error));
}
