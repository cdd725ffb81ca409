//! Several cores.

use thalweg_network::topology::LossRate;

use super::*;

/// Uniformly random traffic from the endpoints of some racks. Each rack has its own random numbers.
struct Uniform {
    racks: Vec<(Vec<EndpointId>, Xoshiro256PlusPlus)>,
    endpoints: u64,
    load: f64,
    injected: u64,
    arrived: Vec<(Slot, Packet)>,
    dropped: Vec<Dropped>,
}

impl Uniform {
    fn new(topology: &Topology, routers: impl Iterator<Item = RouterId>, load: f64) -> Self {
        let racks = routers
            .filter(|&router| topology.rack_size(router) > 0)
            .map(|router| {
                (topology.rack(router).collect(), Xoshiro256PlusPlus::seed_from_u64(u64::from(router.0)))
            })
            .collect();
        let endpoints = topology.endpoints().len() as u64;
        Uniform { racks, endpoints, load, injected: 0, arrived: Vec::new(), dropped: Vec::new() }
    }
}

impl Driver<DropTail<Routing>> for Uniform {
    fn slot(&mut self, shard: &mut Shard<DropTail<Routing>>) {
        let now = shard.now();
        self.arrived.extend(shard.delivered().flatten().map(|&packet| (now, packet)));
        shard.take_dropped(&mut self.dropped);
        let threshold = (self.load * 2f64.powi(32)) as u64;
        for (endpoints, random) in &mut self.racks {
            for &source in endpoints.iter() {
                let bits = random.next_u64();
                if bits >> 32 < threshold {
                    let destination = EndpointId((bits % self.endpoints) as u16);
                    let length = [84, 590, 1_538][(bits >> 20) as usize % 3];
                    let packet =
                        Packet::new(source, destination, (bits >> 8) as u32 % 64, now.0 as u32, length);
                    shard.inject([Request { packet, remaining: 0 }]);
                    self.injected += 1;
                }
            }
        }
    }
}

/// Arrivals sorted by endpoint, then by time: an order that does not depend on the assignment of racks to cores.
fn in_order(mut arrived: Vec<(Slot, Packet)>) -> Vec<(Slot, Packet)> {
    arrived.sort_by_key(|(slot, packet)| (packet.destination(), *slot));
    arrived
}

fn run(
    topology: &Topology,
    assignment: &[usize],
    events: &[(Slot, Event)],
    balance: Balance,
) -> (Vec<(Slot, Packet)>, u64, u64) {
    let blueprint = Blueprint { balance, ..Blueprint::new(topology, 1_500, 7) };
    let (mut shards, crossings) = blueprint
        .build_sharded(assignment, |routing, shape| drop_tail(routing, shape, &DropTailConfig { buffer: 4 }))
        .unwrap();
    let mut drivers: Vec<Uniform> = (0..shards.len())
        .map(|shard| {
            let routers = topology.router_ids().filter(|router| assignment[router.index()] == shard);
            Uniform::new(topology, routers, 0.7)
        })
        .collect();
    let run = Run {
        topology,
        clock: blueprint.clock,
        crossings: &crossings,
        events,
        until: Slot(1_500),
        pace: Pace::Virtual,
    };
    run.run(&mut shards, &mut drivers, |_| ());
    let mut dropped = 0;
    let mut arrived = Vec::new();
    let mut tallied = 0;
    for (shard, mut driver) in shards.iter_mut().zip(drivers) {
        shard.take_dropped(&mut driver.dropped);
        dropped += driver.dropped.iter().filter(|loss| matches!(loss.place, Place::Port(..))).count() as u64;
        arrived.extend(driver.arrived);
    }
    for router in topology.router_ids() {
        let shard = &shards[assignment[router.index()]];
        for port in 0..topology.ports(router) as u16 {
            tallied += shard.port_tally(router, PortIndex(port)).verdicts.drops();
        }
    }
    (in_order(arrived), dropped, tallied)
}

/// Links that lose 1 % in one direction and 3 % in the other, with this jitter.
fn impaired(tiers: Tiers, jitter: Nanos) -> Tiers {
    let loss = [0.01, 0.03].map(|rate| LossRate::new(rate).unwrap());
    Tiers {
        access: LinkSpec { loss, jitter: jitter.min(tiers.access.delay), ..tiers.access },
        uplink: LinkSpec { loss, jitter, ..tiers.uplink },
    }
}

#[test]
fn several_cores_give_the_result_of_one() {
    let delay = Nanos::from_micros(4);
    for (topology, cores) in [
        (racks(3, 4, tiers(10, 40, delay)).unwrap(), 2),
        (leaf_spine(4, 2, 3, tiers(10, 25, delay)).unwrap(), 3),
        (leaf_spine(4, 2, 3, impaired(tiers(10, 25, delay), Nanos::from_micros(3))).unwrap(), 3),
        (racks(3, 4, impaired(tiers(10, 40, delay), Nanos(3_200))).unwrap(), 2),
        (fat_tree(4, tiers(10, 10, Nanos::ZERO)).unwrap(), 4),
    ] {
        let routers = topology.routers().len();
        let link = topology
            .link_at(topology.router_of(EndpointId(0)), PortIndex(topology.rack_size(RouterId(0)) as u16));
        let events = [
            (Slot(400), Event::Fail(link)),
            (Slot(410), Event::Rewire),
            (Slot(900), Event::Repair(link)),
            (Slot(901), Event::Rewire),
        ];
        for balance in [Balance::Ecmp, Balance::Spray] {
            let one = run(&topology, &vec![0; routers], &events, balance);
            let dealt: Vec<usize> = (0..routers).map(|router| router % cores).collect();
            let several = run(&topology, &dealt, &events, balance);
            assert!(one.0.len() > 5_000 && one.1 > 20, "{} arrived, {} dropped", one.0.len(), one.1);
            assert_eq!(one.1, one.2, "each drop at a port is in its tally");
            assert!(one == several, "{routers} routers on {cores} cores");
        }
    }
}

/// Runs a dumbbell with a long link between its racks, in two stages, on `cores` cores. Returns the numbers of packets
/// injected, delivered, dropped and in flight.
fn long_link(cores: usize, tiers: Tiers, events: &[(Slot, Event)]) -> [u64; 4] {
    let topology = dumbbell(4, tiers).unwrap();
    let blueprint = Blueprint::new(&topology, 1_500, 7);
    let assignment = [0, cores - 1];
    let (mut shards, crossings) = blueprint
        .build_sharded(&assignment, |routing, shape| drop_tail(routing, shape, &DropTailConfig::default()))
        .unwrap();
    let mut drivers: Vec<Uniform> = (0..cores)
        .map(|shard| {
            let routers = topology.router_ids().filter(|router| assignment[router.index()] == shard);
            Uniform::new(&topology, routers, 0.7)
        })
        .collect();
    for until in [1_000, 10_500] {
        let run = Run {
            topology: &topology,
            clock: blueprint.clock,
            crossings: &crossings,
            events: if until == 1_000 { events } else { &[] },
            until: Slot(until),
            pace: Pace::Virtual,
        };
        run.run(&mut shards, &mut drivers, |_| ());
    }
    let mut counts = [0; 4];
    for (shard, driver) in shards.iter_mut().zip(&mut drivers) {
        driver.slot(shard);
        shard.take_dropped(&mut driver.dropped);
        counts[0] += driver.injected;
        counts[1] += driver.arrived.len() as u64;
        counts[2] += driver.dropped.len() as u64;
        counts[3] += shard.in_flight();
    }
    counts
}

#[test]
fn nothing_is_lost_between_cores_on_long_links() {
    // 10 ms are 8,128 slots with some 20,000 packets in flight: more than a ring holds.
    let tiers = |delay| tiers(10, 40, delay);
    let (short, long) = (tiers(Nanos::from_micros(50)), tiers(Nanos::from_millis(10)));
    for tiers in [short, long, impaired(short, Nanos::from_micros(20)), impaired(long, Nanos::from_millis(2))]
    {
        let [one, two] = [1, 2].map(|cores| long_link(cores, tiers, &[]));
        assert_eq!(one, two, "{tiers:?}");
        assert_eq!(one[0], one[1] + one[2] + one[3]);
        assert!(one[3] > 0);
    }
}

#[test]
fn a_short_failure_drops_the_same_packets_on_two_cores() {
    let link = LinkId(8); // Endpoints' links come first.
    let events = [(Slot(300), Event::Fail(link)), (Slot(310), Event::Repair(link))];
    let tiers = tiers(10, 40, Nanos::from_micros(100));
    for tiers in [tiers, impaired(tiers, Nanos::from_micros(60))] {
        let [one, two] = [1, 2].map(|cores| long_link(cores, tiers, &events));
        assert_eq!(one, two);
        assert!(one[2] > 100, "{} dropped", one[2]);
    }
}

#[test]
fn late_slots_are_counted() {
    let topology = rack(2, tiers(10, 10, Nanos::ZERO).access).unwrap();
    let blueprint = Blueprint::new(&topology, 1_500, 1);
    let (mut shards, crossings) = blueprint
        .build_sharded(&[0], |routing, shape| drop_tail(routing, shape, &DropTailConfig::default()))
        .unwrap();
    let mut drivers = [Uniform::new(&topology, topology.router_ids(), 0.5)];
    // A clock that jumps by 50 us once.
    let ticks = std::sync::atomic::AtomicU64::new(0);
    let clock = || {
        let tick = ticks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Nanos(tick * 100 + if tick > 500 { 50_000 } else { 0 })
    };
    let run = Run {
        topology: &topology,
        clock: blueprint.clock,
        crossings: &crossings,
        events: &[],
        until: Slot(200),
        pace: Pace::Real(&RealTime {
            clock: &clock,
            options: PaceOptions { late_after: Nanos(1_230), ..PaceOptions::default() },
            events: None,
            stop: None,
            progress: None,
        }),
    };
    let punctuality = run.run(&mut shards, &mut drivers, |_| ()).punctuality[0];
    assert!(
        (40..=45).contains(&punctuality.late_slots),
        "{punctuality:?}: 50 us are 40 slots and what it takes to catch up"
    );
    assert!((49_000..=51_500).contains(&punctuality.worst.0), "{punctuality:?}");
    assert_eq!(shards[0].now(), Slot(200), "none is left out");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_packet_arrives_is_dropped_or_is_in_flight(
        shape in 0..5, buffer in 1..20u32, seed: u64, packets in 1..400usize, failures in prop::collection::vec((0..60u64, 0..12u32), 0..4),
    ) {
        let topology = match shape {
            0 => rack(5, tiers(10, 10, Nanos::ZERO).access),
            1 => racks(3, 2, tiers(1, 40, Nanos::from_micros(3))),
            2 => leaf_spine(2, 3, 2, tiers(25, 10, Nanos::from_micros(1))),
            3 => leaf_spine(2, 2, 2, impaired(tiers(10, 25, Nanos::from_micros(9)), Nanos::from_micros(9))),
            _ => fat_tree(2, tiers(10, 10, Nanos::ZERO)),
        }.unwrap();
        let mut network = emulation(&topology, buffer);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let hosts = topology.endpoints().len() as u64;
        let mut outcomes: Vec<Outcome> = Vec::new();
        let mut injected = 0;
        for slot in 0..80u64 {
            for &(when, link) in &failures {
                let link = LinkId(link % topology.links().len() as u32);
                if when == slot { network.fail(link); network.rewire(); }
                if when + 10 == slot { network.repair(link); network.rewire(); }
            }
            if slot < 60 {
                for _ in 0..packets / 60 + 1 {
                    let bits = random.next_u64();
                    let length = 84 + (bits >> 40) as u16 % 1_455;
                    network.inject(&[request((bits % hosts) as u16, (bits >> 32) as u16 % hosts as u16, injected, length)]);
                    injected += 1;
                }
            }
            network.advance(&mut outcomes);
            prop_assert_eq!(u64::from(injected), outcomes.len() as u64 + network.in_flight());
        }
        // No id twice.
        let mut ids: Vec<u32> = outcomes.iter().map(|outcome| outcome.packet.id()).collect();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), outcomes.len());
    }
}
