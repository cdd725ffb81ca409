use super::*;
use crate::outcome::Request;
use crate::packet::Ecn;
use crate::schemes::tests::harness::{Bench, ByDestination, CLOCK, request};

fn bench(config: FqCodelConfig) -> Bench<FqCodel<ByDestination>> {
    Bench::new(1, |route, ports| fq_codel(route, ports, &config))
}

/// `count` packets of a flow. Ids start at 1,000 times the flow's number.
fn packets(flow: u32, count: u32, length: u16) -> impl Iterator<Item = Request> {
    (0..count).map(move |id| request(0, flow, 1_000 * flow + id, length))
}

/// These tests require that flows 1 to 5 have queues of their own.
#[test]
fn the_test_flows_have_different_queues() {
    let queue = |flow| FlowHash::over(1_024).queue(request(0, flow, 0, 64).packet.who());
    let mut queues: Vec<usize> = (1..=5).map(queue).collect();
    queues.sort_unstable();
    queues.dedup();
    assert_eq!(queues.len(), 5);
}

#[test]
fn a_new_flow_is_served_before_old_ones() {
    let mut bench = bench(FqCodelConfig { quantum: 1_500, ..FqCodelConfig::default() });
    bench.arrive(packets(1, 50, 1_500).chain(packets(2, 50, 1_500)));
    for _ in 0..10 {
        bench.step();
    }
    bench.arrive(packets(3, 1, 1_500));
    assert_eq!(bench.step_one()[0].flow(), 3);
    // But not forever: a flow that pauses and returns within a round waits among the old ones.
    bench.arrive(packets(3, 1, 1_500));
    assert_ne!(bench.step_one()[0].flow(), 3);
}

#[test]
fn an_emptied_flow_becomes_old() {
    let mut bench = bench(FqCodelConfig { quantum: 1_500, ..FqCodelConfig::default() });
    bench.arrive([1, 2, 4, 5].into_iter().flat_map(|flow| packets(flow, 50, 1_500)));
    for _ in 0..10 {
        bench.step();
    }
    bench.arrive(packets(3, 1, 100));
    assert_eq!(bench.step_one()[0].flow(), 3, "and in the rest of the slot somebody else");
    bench.arrive(packets(3, 1, 100));
    assert_ne!(bench.step_one()[0].flow(), 3);
}

#[test]
fn backlogged_flows_have_equal_shares_of_bytes() {
    let mut bench = bench(FqCodelConfig { quantum: 1_500, ..FqCodelConfig::default() });
    bench.arrive(packets(1, 900, 1_500).chain(packets(2, 900, 500)).chain(packets(3, 900, 100)));
    let mut bytes = [0u64; 4];
    for _ in 0..60 {
        for packet in bench.step_one() {
            bytes[packet.flow() as usize] += u64::from(packet.length());
        }
    }
    let (most, least) = (bytes[1..].iter().max().unwrap(), bytes[1..].iter().min().unwrap());
    assert!(most - least <= 1_500 + 1_500, "{bytes:?}");
}

#[test]
fn a_full_port_drops_half_of_its_longest_queue() {
    let mut bench = bench(FqCodelConfig { buffer: 40, ..FqCodelConfig::default() });
    bench.arrive(packets(1, 25, 1_500).chain(packets(2, 15, 1_500)));
    assert!(bench.dropped.is_empty());
    bench.arrive(packets(3, 1, 64));
    let ids: Vec<u32> = bench.dropped.iter().map(|dropped| dropped.packet.id()).collect();
    assert_eq!(ids, (1_000..1_013).collect::<Vec<_>>());
    assert!(bench.dropped.iter().all(|dropped| dropped.reason == Reason::Full));
    assert_eq!(bench.waiting(), 28);
}

#[test]
fn at_most_64_packets_are_dropped_at_once() {
    let mut bench = bench(FqCodelConfig { buffer: 400, ..FqCodelConfig::default() });
    bench.arrive(packets(1, 401, 1_500));
    assert_eq!((bench.dropped.len(), bench.waiting()), (64, 337));
}

/// One flow at twice the link's rate, for 20 intervals: CoDel marks if the sender uses ECN, otherwise drops.
#[test]
fn a_standing_queue_is_marked_or_dropped() {
    for (ecn, field) in [(true, Ecn::Capable0), (true, Ecn::NotCapable), (false, Ecn::Capable0)] {
        let mut bench = bench(FqCodelConfig { ecn, buffer: 32_768, ..FqCodelConfig::for_rate(CLOCK.rate) });
        for _ in 0..16_667 {
            bench.arrive(packets(1, 2, 1_500).map(|mut request| {
                request.packet = request.packet.with_traffic_class(field as u8);
                request
            }));
            bench.step();
        }
        let should_drop_or_mark = (bench.marked(), bench.dropped_for(Reason::Early));
        let (marks, drops) = should_drop_or_mark;
        // By the control law n drops take 1 + 1/sqrt(2) + ... + 1/sqrt(n) = 2 sqrt(n) - 1.46 intervals. Of the 20
        // intervals, the first has none, and a tenth of one passes until delays are long. 2 sqrt(103.6) - 1.46 = 18.9.
        assert!((101..=105).contains(&(marks + drops)), "{should_drop_or_mark:?}");
        assert_eq!(marks > 0, ecn && field == Ecn::Capable0);
        assert_eq!(drops > 0, marks == 0);
    }
}
