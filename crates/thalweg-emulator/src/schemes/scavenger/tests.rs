use proptest::prelude::*;

use super::*;
use crate::schemes::tests::harness::{Bench, request};

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
