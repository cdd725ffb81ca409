//! All packets have the same overhead, however far their endpoints are from the arbiter (Flexplane, section 3.4).

use std::collections::HashMap;

use thalweg_realtime::protocol::{ArbiterOptions, EndpointOptions, LinkOptions, ReleaseQueue, Submission};
use thalweg_wire::emulation_protocol::{Flow, SchemeBytes};
use thalweg_wire::{Nanos, Timestamp};

use crate::oracle;
use crate::random::Random;
use crate::wire::Conditions;
use crate::world::{Fate, World};

const PACKETS: u32 = 2_000;

/// Packets of an endpoint that is so far from the arbiter, one way, and what is added at random. The emulated network
/// takes the oracle's time for each.
fn run(delay_ns: u64, jitter_ns: u64, overhead: Option<Nanos>) -> World {
    let link = LinkOptions { batch_delay: Nanos::ZERO, ..LinkOptions::default() };
    let conditions =
        Conditions { lost_per_mille: 0, duplicated_per_mille: 0, damaged_per_mille: 0, delay_ns, jitter_ns };
    let endpoint = EndpointOptions { link, ..EndpointOptions::default() };
    let arbiter = ArbiterOptions { link, ..ArbiterOptions::default() };
    let mut world = World::new(7, conditions, endpoint, arbiter);
    world.emulation_ns = None;
    world.releases = ReleaseQueue::new(overhead, endpoint.max_packets);
    let mut random = Random::new(11);
    let mut submitted = 0;
    while submitted < PACKETS {
        let custom = SchemeBytes::new(&random.next().to_be_bytes()[..4]).unwrap();
        let flow = Flow { source: 0, destination: 1, number: random.below(200) as u32 };
        let packet = Submission { flow, length: 1_500, traffic_class: 0, custom };
        if oracle::emulated(&packet).nanos() > Nanos::from_millis(1) {
            continue;
        }
        world.submit(packet);
        submitted += 1;
        let next = Timestamp(world.now.0 + random.below(20_000));
        world.run_until(next);
    }
    world.run_until(world.now + Nanos::from_millis(50));
    let [sent, dropped] = [Fate::Sent, Fate::Dropped].map(|fate| world.count(fate));
    assert_eq!((sent, sent + dropped), (world.released.len() as u64, PACKETS.into()));
    world
}

/// The time from submission to release by packet, without the emulated delay.
fn overheads(world: &World) -> HashMap<usize, Nanos> {
    let of = |&(id, released): &(usize, Timestamp)| {
        let total = released - world.submitted[id];
        let emulated = oracle::emulated(&world.packets[id].0).nanos();
        (id, Nanos(total.0.checked_sub(emulated.0).expect("not earlier than in the emulated network")))
    };
    world.released.iter().map(of).collect()
}

/// The packets of each flow in the order of their release.
fn orders(world: &World) -> HashMap<Flow, Vec<usize>> {
    let mut orders: HashMap<Flow, Vec<usize>> = HashMap::new();
    for (id, _) in &world.released {
        orders.entry(world.packets[*id].0.flow).or_default().push(*id);
    }
    orders
}

#[test]
fn endpoints_near_and_far_from_the_arbiter_have_the_same_overhead() {
    // 10 us and 70 us one way, and up to 20 us of jitter in each direction.
    let [near, far] = [10_000, 70_000].map(|delay| run(delay, 20_000, None));
    let range = |world: &World| {
        let overheads = overheads(world);
        (overheads.values().min().copied().unwrap(), overheads.values().max().copied().unwrap())
    };
    let (near, far) = (range(&near), range(&far));
    assert!(near.0 >= Nanos(20_000) && near.1 <= Nanos(60_000), "{near:?}");
    assert!(far.0 >= Nanos(140_000) && far.1 <= Nanos(180_000), "{far:?}");

    let overhead = Nanos(200_000);
    let [near, far] = [10_000, 70_000].map(|delay| run(delay, 20_000, Some(overhead)));
    for world in [&near, &far] {
        assert_eq!(world.releases.counters(), Default::default());
        let early = overheads(world).values().filter(|one| **one < overhead).count();
        assert_eq!(early, 0);
        // A packet has more only if it waits for one of its flow that was answered before, but is due later: here, where
        // the delays of the emulated network are random, some flows are reordered by it.
        let more = overheads(world).values().filter(|one| **one > overhead).count();
        assert!(more < PACKETS as usize / 20, "{more}");
    }
    // Each packet spends the same time at both, but those that wait for others.
    let (one, other) = (overheads(&near), overheads(&far));
    let same = one.iter().filter(|(id, time)| other[*id] == **time).count();
    assert!(same > 19 * one.len() / 20, "{same} of {}", one.len());
}

#[test]
fn packets_above_the_overhead_are_released_at_once_counted_and_in_order() {
    let far = run(70_000, 20_000, Some(Nanos(150_000)));
    let without = run(70_000, 20_000, None);
    let counted = far.releases.counters();
    // 140 us to 180 us: at random, an eighth is below 150 us.
    let above = overheads(&without).values().filter(|one| **one > Nanos(150_000)).count() as u64;
    assert_eq!((counted.above_overhead, counted.released_early), (above, 0));
    assert!(above > 1_000, "{above}");
    assert_eq!(orders(&far), orders(&without), "the order of answers");
}
