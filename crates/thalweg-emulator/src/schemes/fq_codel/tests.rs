use super::*;
use crate::outcome::Request;
use crate::packet::Ecn;
use crate::schemes::tests::harness::{Bench, ByDestination, CLOCK, request};

fn bench(config: FqCodelConfig) -> Bench<FqCodel<ByDestination>> {
    Bench::new(1, |route, shape| fq_codel(route, shape, &config))
}

/// `count` packets of a flow; ids count on from 1,000 times the flow's number.
fn packets(flow: u32, count: u32, length: u16) -> impl Iterator<Item = Request> {
    (0..count).map(move |id| request(0, flow, 1_000 * flow + id, length))
}

/// Flows 1 to 5 have queues of their own, or else these tests are about something else.
#[test]
fn the_flows_of_these_tests_are_apart() {
    let queue = |flow| FlowHash::over(1_024).queue(request(0, flow, 0, 64).packet.who());
    let mut queues: Vec<usize> = (1..=5).map(queue).collect();
    queues.sort_unstable();
    queues.dedup();
    assert_eq!(queues.len(), 5);
}

#[test]
fn a_flow_that_was_silent_goes_before_those_that_wait() {
    let mut bench = bench(FqCodelConfig { quantum: 1_500, ..FqCodelConfig::default() });
    bench.arrive(packets(1, 50, 1_500).chain(packets(2, 50, 1_500)));
    for _ in 0..10 {
        bench.step();
    }
    bench.arrive(packets(3, 1, 1_500));
    assert_eq!(bench.step_one()[0].flow(), 3);
    // And not for ever: what is silent and comes again within a round waits for its turn among the old.
    bench.arrive(packets(3, 1, 1_500));
    assert_ne!(bench.step_one()[0].flow(), 3);
}

#[test]
fn a_flow_that_has_sent_all_it_had_is_old_even_if_it_may_send_more() {
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
fn a_full_port_drops_half_of_the_fattest_queue_from_its_head() {
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
fn no_more_than_64_are_dropped_at_once() {
    let mut bench = bench(FqCodelConfig { buffer: 400, ..FqCodelConfig::default() });
    bench.arrive(packets(1, 401, 1_500));
    assert_eq!((bench.dropped.len(), bench.waiting()), (64, 337));
}

/// One flow at twice the link's rate, for 20 intervals: CoDel strikes, by marks if the sender takes part.
#[test]
fn a_standing_queue_is_struck_by_marks_or_drops() {
    for (ecn, field) in [(true, Ecn::Capable0), (true, Ecn::NotCapable), (false, Ecn::Capable0)] {
        let mut bench = bench(FqCodelConfig { ecn, buffer: 32_768, ..FqCodelConfig::for_rate(CLOCK.rate) });
        for _ in 0..16_667 {
            bench.arrive(packets(1, 2, 1_500).map(|mut request| {
                request.packet = request.packet.with_traffic_class(field as u8);
                request
            }));
            bench.step();
        }
        let strikes = (bench.marked(), bench.dropped_for(Reason::Early));
        let (marks, drops) = strikes;
        // By the control law n strikes take 1 + 1/sqrt(2) + ... + 1/sqrt(n) = 2 sqrt(n) - 1.46 intervals: of the 20,
        // the first has none, and a tenth of one goes by until waits are long. 2 sqrt(103.6) - 1.46 = 18.9.
        assert!((101..=105).contains(&(marks + drops)), "{strikes:?}");
        assert_eq!(marks > 0, ecn && field == Ecn::Capable0);
        assert_eq!(drops > 0, marks == 0);
    }
}
