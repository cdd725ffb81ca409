//! Endpoints behind the interface that does not show the scheme.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use thalweg_network::Topology;
use thalweg_network::topology::LinkSpec;
use thalweg_network::topology::shapes::{Tiers, dumbbell, leaf_spine, rack};
use thalweg_wire::{BitRate, Timestamp};

use super::remote::{REMOTE_RING, remote};
use super::*;
use crate::core::events::EventQueue;
use crate::core::pacer::PaceOptions;
use crate::core::parallel::RealTime;
use crate::outcome::Reason;
use crate::packet::Packet;

fn tiers(access: u64, uplink: u64, delay: Nanos) -> Tiers {
    let gigabits = |rate| BitRate(rate * 1_000_000_000);
    Tiers {
        access: LinkSpec { rate: gigabits(access), delay: Nanos::ZERO, ..LinkSpec::default() },
        uplink: LinkSpec { rate: gigabits(uplink), delay, ..LinkSpec::default() },
    }
}

fn request(source: u16, destination: u16, id: u32, length: u16) -> Request {
    let packet = Packet::new(EndpointId(source), EndpointId(destination), u32::from(source), id, length);
    Request { packet, remaining: 0 }
}
use crate::hosts::{HostConfig, Hosts};
use crate::workloads::{FlowStart, Workload};

/// Endpoints that send at random, and keep a window of packets each: a new packet depends on the outcomes of earlier
/// ones. The order of outcomes within a slot has no effect.
struct Closed {
    sources: Vec<(EndpointId, Xoshiro256PlusPlus, u32)>,
    endpoints: u64,
    sent: u64,
    outcomes: Vec<(Slot, Outcome)>,
}

impl Closed {
    fn new(topology: &Topology, assignment: &[usize], shard: usize) -> Closed {
        let is_here = |endpoint: &EndpointId| assignment[topology.router_of(*endpoint).index()] == shard;
        let random = |endpoint: EndpointId| Xoshiro256PlusPlus::seed_from_u64(u64::from(endpoint.0));
        Closed {
            sources: topology.endpoint_ids().filter(is_here).map(|id| (id, random(id), 0)).collect(),
            endpoints: topology.endpoints().len() as u64,
            sent: 0,
            outcomes: Vec::new(),
        }
    }
}

impl Endpoints for Closed {
    fn slot(&mut self, network: &mut dyn Attachment) {
        let now = network.now();
        for outcome in network.outcomes() {
            let source = outcome.packet.source();
            let (_, _, in_flight) =
                self.sources.iter_mut().find(|(id, ..)| *id == source).expect("an outcome is at its source");
            *in_flight -= 1;
            self.outcomes.push((now, *outcome));
        }
        for (source, random, in_flight) in &mut self.sources {
            while *in_flight < 6 {
                let bits = random.next_u64();
                let destination = EndpointId((bits % self.endpoints) as u16);
                let packet = Packet::new(*source, destination, bits as u32 % 8, self.sent as u32, 1_538)
                    .with_traffic_class(0b10);
                network.inject(&[Request { packet, remaining: 0 }]);
                *in_flight += 1;
                self.sent += 1;
            }
        }
    }
}

fn closed(scheme: &Scheme, shards: usize, pace: Pace<'_>, until: u64) -> (Vec<Closed>, NetworkReport) {
    let topology = leaf_spine(4, 2, 3, tiers(10, 25, Nanos::from_micros(4))).unwrap();
    let blueprint = Blueprint::new(&topology, 1_500, 7);
    let assignment = assignment(topology.routers().len(), shards);
    let mut endpoints: Vec<Closed> =
        (0..shards).map(|shard| Closed::new(&topology, &assignment, shard)).collect();
    let run = EndpointRun {
        blueprint: &blueprint,
        scheme,
        assignment: &assignment,
        events: &[(Slot(200), Event::Fail(LinkId(13))), (Slot(210), Event::Rewire)],
        until: Slot(until),
        pace,
        sample_every: Nanos::from_micros(10),
    };
    let report = run.run(&mut endpoints, |shard| SHARD.set(shard)).unwrap();
    (endpoints, report)
}

/// All outcomes without ids, which depend on the assignment of endpoints to shards.
fn sorted(endpoints: Vec<Closed>) -> Vec<String> {
    let outcomes = endpoints.into_iter().flat_map(|endpoints| endpoints.outcomes);
    let mut outcomes: Vec<String> = outcomes
        .map(|(slot, Outcome { packet, fate })| {
            let (source, destination) = (packet.source(), packet.destination());
            format!(
                "{slot:?} {source:?} {destination:?} {} {} {fate:?}",
                packet.flow(),
                packet.traffic_class()
            )
        })
        .collect();
    outcomes.sort();
    outcomes
}

#[test]
fn outcomes_return_to_their_source_in_the_same_slot_on_any_number_of_shards() {
    for name in ["droptail", "dctcp"] {
        let mut scheme = Scheme::default_of(name).unwrap();
        match &mut scheme {
            Scheme::DropTail(config) => config.buffer = 6,
            Scheme::Dctcp(config) => (config.buffer, config.threshold) = (12, 3),
            _ => unreachable!(),
        }
        let (one, report) = closed(&scheme, 1, Pace::Virtual, 1_500);
        assert_eq!(report.punctuality, [Default::default()]);
        let sent: u64 = one.iter().map(|endpoints| endpoints.sent).sum();
        let one = sorted(one);
        assert!(one.len() > 5_000 && one.iter().any(|outcome| outcome.contains("Dropped")), "{}", one.len());
        let longest = report.occupancy.iter().map(|(_, _, occupancy)| occupancy.max()).max();
        assert!(longest > Some(2), "{longest:?}");
        for shards in [2, 3] {
            let (several, report) = closed(&scheme, shards, Pace::Virtual, 1_500);
            assert_eq!(several.iter().map(|endpoints| endpoints.sent).sum::<u64>(), sent);
            assert!(sorted(several) == one, "{name}: {shards} shards");
            assert!(report.overloads.iter().all(|(.., packets)| *packets == 0));
        }
    }
}

/// Flows that start together.
struct Burst(Vec<FlowStart>);

impl Workload for Burst {
    fn next_start(&self) -> Option<Timestamp> {
        self.0.last().map(|flow| flow.at)
    }

    fn start(&mut self) -> Option<FlowStart> {
        self.0.pop()
    }

    fn completed(&mut self, _flow: u32, _at: Timestamp) {}
}

#[test]
fn emulated_hosts_see_the_same_network_through_either_interface() {
    let topology = rack(4, tiers(10, 10, Nanos::ZERO).access).unwrap();
    let blueprint = Blueprint::new(&topology, 1_500, 7);
    let scheme = Scheme::default_of("dctcp").unwrap();
    let flow = |source| FlowStart {
        at: Timestamp(0),
        source: EndpointId(source),
        destination: EndpointId(3),
        bytes: 400_000,
        dscp: 0,
    };
    let burst = || Burst((0..3).map(flow).collect());
    let hosts = || Hosts::new(HostConfig::default(), 4, blueprint.clock).unwrap();
    let slots = 3_000;

    let mut network = crate::network::build(&scheme, &blueprint).unwrap();
    let (mut direct, mut workload) = (hosts(), burst());
    for _ in 0..slots {
        direct.slot(&mut *network, &mut workload);
    }
    let mut attached = [EmulatedHosts { hosts: hosts(), workload: burst() }];
    let run = EndpointRun {
        blueprint: &blueprint,
        scheme: &scheme,
        assignment: &[0],
        events: &[],
        until: Slot(slots + 1),
        pace: Pace::Virtual,
        sample_every: Nanos::from_millis(1),
    };
    run.run(&mut attached, |_| ()).unwrap();
    let attached = &attached[0].hosts;
    assert_eq!(direct.totals(), attached.totals());
    assert_eq!(direct.totals().flows_completed, 3);
}

thread_local! { static SHARD: std::cell::Cell<usize> = const { std::cell::Cell::new(0) } }

/// A clock that advances by 200 ns when both shards have looked, so that neither is ahead.
fn ticking() -> impl Fn() -> Nanos + Sync {
    let looks = [AtomicU64::new(0), AtomicU64::new(0)];
    move || {
        looks[SHARD.get()].fetch_add(1, Ordering::Relaxed);
        std::thread::yield_now();
        Nanos(looks.iter().map(|looks| looks.load(Ordering::Relaxed)).min().unwrap_or_default() * 200)
    }
}

#[test]
fn in_real_time_every_packet_has_an_outcome_and_events_arrive_during_the_run() {
    let clock = ticking();
    let queue = EventQueue::new(2);
    queue.push(&Event::Fail(LinkId(14))).unwrap();
    queue.push(&Event::Rewire).unwrap();
    let real = RealTime {
        clock: &clock,
        options: PaceOptions::default(),
        events: Some(&queue),
        stop: None,
        progress: None,
    };
    let scheme = Scheme::default_of("droptail").unwrap();
    let (endpoints, report) = closed(&scheme, 2, Pace::Real(&real), 3_000);
    let sent: u64 = endpoints.iter().map(|endpoints| endpoints.sent).sum();
    let done: usize = endpoints.iter().map(|endpoints| endpoints.outcomes.len()).sum();
    // How many depends on how long both threads run at the same time: a shard that has ended answers the other one no more. The rest is in
    // the network, or was delivered in the last slots, on the way to its source's shard.
    assert!(done > 0);
    assert!(
        (sent - done as u64).abs_diff(report.in_flight) <= 6 * 12,
        "{sent} sent, {done} done, {report:?}"
    );
    assert_eq!((queue.take(0), queue.take(1)), (None, None), "both shards have taken the events");
    let down = |outcome: &Outcome| matches!(outcome.fate, Fate::Dropped(_, Reason::LinkDown));
    let downs = endpoints.iter().flat_map(|endpoints| &endpoints.outcomes).filter(|(_, o)| down(o)).count();
    let tallied: u64 =
        report.ports.iter().map(|(.., tally)| tally.verdicts.dropped[Reason::LinkDown as usize]).sum();
    assert!(downs as u64 <= tallied, "{downs} of {tallied}");
}

#[test]
fn a_full_ring_drops_in_real_time_and_the_source_learns_of_it() {
    // The clock of the receiving shard stands still until the sender has run, so nobody empties the ring.
    let topology = dumbbell(8, tiers(10, 100, Nanos::ZERO)).unwrap();
    let blueprint = Blueprint::new(&topology, 1_500, 7);
    let scheme = Scheme::default_of("droptail").unwrap();
    let assignment = [0, 1];
    struct Flood {
        sources: Vec<EndpointId>,
        other: EndpointId,
        sent: u64,
        overloads: u64,
        done: u64,
    }
    impl Endpoints for Flood {
        fn slot(&mut self, network: &mut dyn Attachment) {
            self.done += network.outcomes().len() as u64;
            let overload = |outcome: &&Outcome| matches!(outcome.fate, Fate::Dropped(_, Reason::Overload));
            self.overloads += network.outcomes().iter().filter(overload).count() as u64;
            for source in &self.sources {
                if network.backlog(*source) > 1_538 {
                    continue;
                }
                let packet = Packet::new(*source, self.other, 0, self.sent as u32, 1_538);
                network.inject(&[Request { packet, remaining: 0 }]);
                self.sent += 1;
            }
        }
    }
    let first_done = AtomicBool::new(false);
    let time = AtomicU64::new(0);
    let clock = || match SHARD.get() {
        0 => {
            let now = time.fetch_add(60, Ordering::Relaxed);
            first_done.store(now > blueprint.clock.start_of(Slot(11_900)).0, Ordering::Relaxed);
            Nanos(now)
        }
        _ if !first_done.load(Ordering::Relaxed) => Nanos(0),
        _ => Nanos(2_000_000),
    };
    let options = PaceOptions { max_catch_up: Nanos::from_secs(1), ..PaceOptions::default() };
    let real = RealTime { clock: &clock, options, events: None, stop: None, progress: None };
    let flood = |sources, other| Flood { sources, other, sent: 0, overloads: 0, done: 0 };
    let mut endpoints =
        [flood((0..8).map(EndpointId).collect(), EndpointId(8)), flood(Vec::new(), EndpointId(0))];
    let run = EndpointRun {
        blueprint: &blueprint,
        scheme: &scheme,
        assignment: &assignment,
        events: &[],
        until: Slot(12_000),
        pace: Pace::Real(&real),
        sample_every: Nanos::from_millis(1),
    };
    let report = run.run(&mut endpoints, |shard| SHARD.set(shard)).unwrap();
    let overloads: u64 = report.overloads.iter().map(|(.., packets)| packets).sum();
    assert!(overloads > 1_000, "8 x 10 Gbit/s for 1.4 ms are 9,500 packets, and 4,096 fit: {overloads}");
    let tallied: u64 =
        report.ports.iter().map(|(.., tally)| tally.verdicts.dropped[Reason::Overload as usize]).sum();
    assert_eq!(tallied, overloads);
    // The last slot's outcomes are not taken any more.
    assert!(
        (1..=8).contains(&(overloads + 1 - endpoints[0].overloads)),
        "{} outcomes",
        endpoints[0].overloads
    );
    assert_eq!(report.punctuality[1].skipped_slots, 0);
}

#[test]
#[should_panic(expected = "a worker does not panic")]
fn a_panic_of_one_shard_ends_the_others() {
    struct Panics(bool);
    impl Endpoints for Panics {
        fn slot(&mut self, network: &mut dyn Attachment) {
            assert!(!self.0 || network.now() < Slot(50), "the test panics");
        }
    }
    let topology = dumbbell(2, tiers(10, 100, Nanos::ZERO)).unwrap();
    let run = EndpointRun {
        blueprint: &Blueprint::new(&topology, 1_500, 7),
        scheme: &Scheme::default_of("droptail").unwrap(),
        assignment: &[0, 1],
        events: &[],
        until: Slot(1_000),
        pace: Pace::Virtual,
        sample_every: Nanos::from_millis(1),
    };
    let _ = run.run(&mut [Panics(false), Panics(true)], |_| ());
}

#[test]
fn an_empty_network_that_skips_slots_behaves_as_one_that_runs_them() {
    let topology = leaf_spine(2, 2, 2, tiers(10, 25, Nanos::from_micros(4))).unwrap();
    let blueprint = Blueprint::new(&topology, 1_500, 7);
    for scheme in crate::schemes::SCHEMES.map(|listed| Scheme::default_of(listed.name).unwrap()) {
        let mut networks = [(); 2].map(|()| crate::network::build(&scheme, &blueprint).unwrap());
        let results = [false, true].map(|skips| {
            let network = &mut networks[usize::from(skips)];
            let (mut outcomes, mut arrivals) = (Vec::new(), Vec::new());
            for burst in 0..5 {
                let packets: Vec<Request> = (0..300).map(|id| request(id as u16 % 3, 3, id, 1_538)).collect();
                network.inject(&packets);
                while network.in_flight() > 0 {
                    network.advance(&mut outcomes);
                    arrivals.extend(outcomes.drain(..).map(|outcome| (network.now(), outcome)));
                }
                let next = Slot((burst + 1) * 7_919);
                match skips {
                    true => network.skip_to(next),
                    false => (network.now().0..next.0).for_each(|_| network.advance(&mut outcomes)),
                }
                assert!(outcomes.is_empty());
            }
            arrivals
        });
        assert_eq!(results[0].len(), 1_500);
        assert!(results[0] == results[1], "{}", scheme.name());
    }
}

#[test]
fn remote_endpoints_exchange_requests_and_outcomes_over_rings() {
    let topology = rack(3, tiers(10, 10, Nanos::ZERO).access).unwrap();
    let (endpoints, mut shard) = remote();
    // More than a shard takes in one slot. Only 128 packets fit into the interface.
    for id in 0..1_500 {
        shard.request(request(0, 1, id, 1_538)).unwrap();
    }
    let run = EndpointRun {
        blueprint: &Blueprint::new(&topology, 1_500, 7),
        scheme: &Scheme::default_of("droptail").unwrap(),
        assignment: &[0],
        events: &[],
        until: Slot(400),
        pace: Pace::Virtual,
        sample_every: Nanos::from_millis(1),
    };
    let report = run.run(&mut [endpoints], |_| ()).unwrap();
    assert_eq!(report.in_flight, 0);
    let mut ids = Vec::new();
    let mut delivered = 0;
    while let Some((outcome, slots)) = shard.outcome() {
        // Two links of a slot each at least.
        assert!(outcome.fate != Fate::Delivered || (2..=400).contains(&slots), "{slots}");
        delivered += u32::from(outcome.fate == Fate::Delivered);
        ids.push(outcome.packet.id());
    }
    ids.sort_unstable();
    assert_eq!(ids, (0..1_500).collect::<Vec<u32>>(), "one outcome per request");
    assert!((128..=131).contains(&delivered), "{delivered}");
    let refused = (0..).take_while(|id| shard.request(request(0, 1, *id, 1_538)).is_ok()).count();
    assert_eq!(refused, REMOTE_RING, "a full ring returns the request");
}
