use proptest::prelude::*;

use super::*;
use crate::schemes::tests::harness::{Bench, request};

/// `count` flows that have queues of their own among 64.
fn flows_apart(count: usize) -> Vec<u32> {
    let hash = FlowHash::over(64);
    let mut taken = 0u64;
    let is_apart = |flow: &u32| {
        let queue = 1 << hash.queue(request(0, *flow, 0, 64).packet.who());
        let is_new = taken & queue == 0;
        taken |= queue;
        is_new
    };
    (0..).filter(is_apart).take(count).collect()
}

proptest! {
    /// For any packet lengths: after the same number of turns, each queue has sent k quanta minus a deficit shorter
    /// than a packet, and none is ahead by more than a turn.
    #[test]
    fn backlogged_flows_differ_by_at_most_a_quantum_and_a_packet(
        quantum in 1_500u32..6_000,
        lengths in prop::collection::vec(prop::collection::vec(64u16..=1_500, 200), 2..8),
    ) {
        let config = DrrConfig { quantum, ..DrrConfig::default() };
        let mut bench = Bench::new(1, |route, ports| drr(route, ports, &config));
        let flows = flows_apart(lengths.len());
        for (flow, lengths) in flows.iter().zip(&lengths) {
            bench.arrive(lengths.iter().map(|&length| request(0, *flow, 0, length)));
        }
        let mut sent = vec![(0u32, 0u32); flows.len()];
        'backlogged: loop {
            for packet in bench.step_one() {
                let flow = flows.iter().position(|&flow| flow == packet.flow()).unwrap();
                sent[flow] = (sent[flow].0 + 1, sent[flow].1 + u32::from(packet.length()));
                let bytes = sent.iter().map(|sent| sent.1);
                let apart = bytes.clone().max().unwrap() - bytes.min().unwrap();
                prop_assert!(apart < quantum + 1_500, "{sent:?}");
                if sent[flow].0 == 200 {
                    break 'backlogged;
                }
            }
        }
    }
}

#[test]
fn unused_deficit_is_kept_only_while_backlogged() {
    let config = DrrConfig { quantum: 1_500, ..DrrConfig::default() };
    let mut bench = Bench::new(1, |route, ports| drr(route, ports, &config));
    let flow = flows_apart(1)[0];
    let deficit = |bench: &Bench<Drr<_>>| bench.router.schedule.rounds[0].deficits.iter().sum::<u32>();
    bench.arrive([request(0, flow, 0, 1_000), request(0, flow, 1, 1_500)]);
    bench.with_context(|router, context| {
        router.schedule.schedule(PortIndex(0), &mut router.store, context).map(|packet| packet.id())
    });
    assert_eq!(deficit(&bench), 500);
    bench.drain();
    assert_eq!(deficit(&bench), 0);
}

#[test]
fn a_packet_longer_than_the_quantum_waits_for_enough_turns() {
    let config = DrrConfig { quantum: 1_500, ..DrrConfig::default() };
    let mut bench = Bench::new(1, |route, ports| drr(route, ports, &config));
    let flows = flows_apart(2);
    bench.arrive([request(0, flows[0], 100, 4_000)]);
    bench.arrive((0..4).map(|id| request(0, flows[1], id, 1_500)));
    let order: Vec<u32> = bench.drain()[0].iter().map(|packet| packet.id()).collect();
    // Three turns each, in any order.
    let place = order.iter().position(|&id| id == 100).unwrap();
    assert!((2..=3).contains(&place), "{order:?}");
}

/// 6,400 flows over 64 queues: chi-squared with 63 degrees of freedom exceeds 140 with probability 1e-7. Consecutive
/// numbers, as workloads assign them.
#[test]
fn flows_are_hashed_evenly_to_queues() {
    let hash = FlowHash::over(64);
    let mut counts = [0f64; 64];
    for flow in 0..6_400 {
        counts[hash.queue(request(0, flow, 0, 64).packet.who())] += 1.0;
    }
    let chi_squared: f64 = counts.iter().map(|n| (n - 100.0) * (n - 100.0) / 100.0).sum();
    assert!(chi_squared < 140.0, "{counts:?}");
}
