use proptest::prelude::*;
use thalweg_network::EndpointId;

use super::*;
use crate::redirection::MAX_REDIRECTED;
use crate::router::Router as _;
use crate::schemes::tests::harness::{Bench, request};
use crate::slot::Slot;

/// Numbered packets: in the scavenger queue, and their length.
fn bench(config: ScavengerConfig, packets: &[(bool, u16)]) -> Bench<Scavenger<impl crate::router::Route>> {
    let mut bench = Bench::new(1, |route, ports| scavenger(route, ports, &config));
    bench.arrive(packets.iter().zip(0u32..).map(|(&(is_scavenger, length), id)| {
        let mut request = request(0, 0, id, length);
        request.packet = request.packet.with_traffic_class(u8::from(is_scavenger) << 2);
        request
    }));
    bench
}

#[test]
fn strict_priority_serves_the_scavenger_only_when_the_primary_is_empty() {
    let packets = [(true, 1_500), (false, 1_500), (true, 1_500), (false, 1_500), (true, 1_500)];
    let sent: Vec<u32> =
        bench(ScavengerConfig::default(), &packets).drain()[0].iter().map(|packet| packet.id()).collect();
    assert_eq!(sent, [1, 3, 0, 2, 4]);
}

#[test]
fn each_queue_drops_by_its_own_bytes() {
    let config =
        ScavengerConfig { primary_buffer: 3_000, scavenger_buffer: 1_600, ..ScavengerConfig::default() };
    let packets = [(false, 1_500), (false, 1_400), (false, 200), (false, 100), (true, 1_538), (true, 100)];
    let bench = bench(config, &packets);
    let dropped: Vec<u32> = bench.dropped.iter().map(|dropped| dropped.packet.id()).collect();
    assert_eq!(dropped, [2, 5]);
    assert_eq!(bench.dropped_for(Reason::Full), 2);
}

proptest! {
    /// While both queues are backlogged, the scavenger gets its share, give or take a longest packet of each queue.
    #[test]
    fn backlogged_queues_share_the_link(
        share in 0.0f64..=1.0,
        packets in prop::collection::vec((any::<bool>(), 64u16..=1_500), 100..400),
    ) {
        let config = ScavengerConfig { scavenger_share: share, ..ScavengerConfig::default() };
        let mut bench = bench(config, &packets);
        let left = |queue: bool| packets.iter().filter(|packet| packet.0 == queue).count();
        let (mut left, mut sent) = ([left(false), left(true)], [0.0f64; 2]);
        while left[0] > 1 && left[1] > 1 {
            for packet in bench.step_one() {
                let queue = usize::from(packet.dscp() == LOWER_EFFORT);
                left[queue] -= 1;
                sent[queue] += f64::from(packet.length());
                if left[0] > 0 && left[1] > 0 {
                    let due = share * (sent[0] + sent[1]);
                    prop_assert!((sent[1] - due).abs() <= 3_001.0, "{sent:?} {due}");
                }
            }
        }
    }
}

/// The direction of the flow of [`request`].
fn direction(port: u16, flow: u32) -> FlowDirection {
    FlowDirection { source: EndpointId(9), destination: EndpointId(port), flow }
}

#[test]
fn packets_of_a_redirected_flow_leave_by_the_scavenger_queue_and_are_counted() {
    let config = ScavengerConfig { scavenger_buffer: 3_200, ..ScavengerConfig::default() };
    let mut bench = Bench::new(1, |route, ports| scavenger(route, ports, &config));
    // Flow 7 is redirected, the packets of flow 8 are not. Flow 9 is of lower effort.
    let flow = direction(0, 7);
    let router = |bench: &mut Bench<_>| -> QueueTallies {
        let tally = bench.tally(0);
        let router: &mut Scavenger<_> = &mut bench.router;
        router.redirector().unwrap().queues(PortIndex(0), &tally)
    };
    bench.arrive([request(0, 7, 0, 1_500)]);
    let redirector = bench.router.redirector().unwrap();
    assert_eq!((redirector.redirected(flow), redirector.has_queued(flow)), (None, false), "it is primary");
    redirector.redirect(flow).unwrap();
    bench.now = Slot(5);
    let packets = [(7, 1, 1_000), (8, 2, 1_500), (7, 3, 600), (8, 4, 1_500), (9, 5, 1_500), (7, 6, 900)];
    bench.arrive(packets.map(|(flow, id, length)| {
        let mut request = request(0, flow, id, length);
        request.packet = request.packet.with_traffic_class(if flow == 9 { LOWER_EFFORT << 2 } else { 0 });
        request
    }));
    let redirector = bench.router.redirector().unwrap();
    assert!(redirector.has_queued(flow) && !redirector.has_queued(direction(0, 8)));
    redirector.redirect(flow).unwrap();
    let expected = Redirected {
        traffic: Traffic { packets: 3, bytes: 2_500 },
        first: Some(crate::ticks::Ticks::start_of(Slot(5))),
    };
    assert_eq!(redirector.redirected(flow), Some(expected), "a second redirection changes nothing");
    let queues = router(&mut bench);
    assert_eq!(queues.primary.backlog, Backlog { packets: 3, bytes: 4_500 });
    assert_eq!(queues.scavenger.backlog, Backlog { packets: 3, bytes: 3_100 });
    assert_eq!((queues.primary.dropped, queues.scavenger.dropped), (0, 1), "the last packet of flow 7");

    let sent: Vec<u32> = bench.drain()[0].iter().map(|packet| packet.id()).collect();
    assert_eq!(sent, [0, 2, 4, 1, 3, 5]);
    let queues = router(&mut bench);
    assert_eq!(queues.primary.sent, Traffic { packets: 3, bytes: 4_500 });
    assert_eq!(queues.scavenger.sent, Traffic { packets: 3, bytes: 3_100 });
    assert_eq!((queues.primary.backlog, queues.scavenger.backlog), Default::default());

    let redirector = bench.router.redirector().unwrap();
    assert!(!redirector.has_queued(flow));
    redirector.release(flow);
    assert_eq!(redirector.redirected(flow), None);
    bench.arrive([request(0, 7, 7, 1_500)]);
    assert_eq!(router(&mut bench).primary.backlog.packets, 1);
}

#[test]
fn redirected_flows_are_bounded() {
    let config = ScavengerConfig { primary_buffer: 2_000, scavenger_buffer: 2_000, scavenger_share: 0.0 };
    let mut bench = Bench::new(1, |route, ports| scavenger(route, ports, &config));
    let redirector = bench.router.redirector().unwrap();
    for flow in 0..MAX_REDIRECTED as u32 {
        redirector.redirect(direction(0, flow)).unwrap();
    }
    assert_eq!(redirector.redirect(direction(1, 0)), Err(RedirectError::Full));
    assert_eq!(redirector.redirect(direction(0, 3)), Ok(()), "it is redirected already");
    redirector.release(direction(0, 5));
    assert_eq!(redirector.redirect(direction(1, 0)), Ok(()));
}
