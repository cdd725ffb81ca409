use proptest::prelude::*;

use super::*;
use crate::schemes::tests::harness::{Bench, request};

/// A plain model of a port: packets in order of arrival, as (remaining, flow, id).
#[derive(Default)]
struct Plain(Vec<(u32, u32, u32)>);

impl Plain {
    /// Returns the dropped packet if the buffer is full.
    fn arrive(&mut self, packet: (u32, u32, u32), buffer: usize) -> Option<u32> {
        self.0.push(packet);
        if self.0.len() <= buffer {
            return None;
        }
        // Among equals the latest, and the new one is the latest of all.
        let lowest = (0..self.0.len()).max_by_key(|&place| (self.0[place].0, place))?;
        Some(self.0.remove(lowest).2)
    }

    fn send(&mut self) -> Option<u32> {
        let &(_, flow, _) = self.0.iter().min_by_key(|packet| packet.0)?;
        let earliest = self.0.iter().position(|packet| packet.1 == flow)?;
        Some(self.0.remove(earliest).2)
    }
}

proptest! {
    #[test]
    fn the_lowest_priority_is_dropped_and_the_earliest_of_the_most_urgent_flow_is_sent(
        buffer in 1u32..40,
        slots in prop::collection::vec(prop::collection::vec((0u32..50, 0u32..5), 0..5), 1..80),
    ) {
        let mut bench = Bench::new(1, |route, ports| p_fabric(route, ports, &PFabricConfig { buffer }));
        let mut plain = Plain::default();
        let (mut id, mut dropped) = (0, Vec::new());
        for arrivals in slots {
            for (remaining, flow) in arrivals {
                id += 1;
                bench.arrive([Request { remaining, ..request(0, flow, id, 1_500) }]);
                dropped.extend(plain.arrive((remaining, flow, id), buffer as usize));
            }
            let sent = bench.step_one().first().map(|packet| packet.id());
            prop_assert_eq!(sent, plain.send());
        }
        let ids: Vec<u32> = bench.dropped.iter().map(|dropped| dropped.packet.id()).collect();
        prop_assert_eq!(ids, dropped);
    }
}

#[test]
fn arrival_numbers_survive_a_wrap() {
    let mut bench = Bench::new(1, |route, ports| p_fabric(route, ports, &PFabricConfig { buffer: 9 }));
    bench.arrive([request(0, 1, 1, 1_500)]);
    bench.router.store.levels[0].arrivals = u32::MAX - 2;
    bench.arrive((2..=6).map(|id| Request { remaining: 7, ..request(0, 1, id, 1_500) }));
    assert!(bench.router.store.levels[0].arrivals < 9);
    let ids: Vec<u32> = bench.drain()[0].iter().map(|packet| packet.id()).collect();
    assert_eq!(ids, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn pfabric_drop_reasons_are_displaced_and_full() {
    let mut bench = Bench::new(1, |route, ports| p_fabric(route, ports, &PFabricConfig { buffer: 2 }));
    let arrival = |id, remaining| Request { remaining, ..request(0, id, id, 1_500) };
    bench.arrive([arrival(1, 500), arrival(2, 300), arrival(3, 400), arrival(4, 400), arrival(5, 900)]);
    let drops: Vec<(u32, Reason)> =
        bench.dropped.iter().map(|drop| (drop.packet.id(), drop.reason)).collect();
    assert_eq!(drops, [(1, Reason::Displaced), (4, Reason::Full), (5, Reason::Full)]);
}
