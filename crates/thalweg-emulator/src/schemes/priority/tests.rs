use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::schemes::tests::harness::{Bench, request};

proptest! {
    /// A plain model: a list of packets, of which the first with the lowest number is sent.
    #[test]
    fn the_earliest_packet_of_the_most_urgent_flow_is_sent(
        queues in 1u8..=64,
        slots in prop::collection::vec(prop::collection::vec(0u8..64, 0..6), 1..40),
    ) {
        let config = PriorityConfig { queues, buffer: 3 };
        let mut bench = Bench::new(1, |route, ports| priority(route, ports, &config));
        let mut plain: VecDeque<(u8, u32)> = VecDeque::new();
        let mut id = 0;
        for dscps in slots {
            for dscp in dscps {
                id += 1;
                let mut request = request(0, 0, id, 1_500);
                request.packet = request.packet.with_traffic_class(dscp << 2);
                bench.arrive([request]);
                let queue = dscp.min(queues - 1);
                if plain.iter().filter(|waiting| waiting.0 == queue).count() < 3 {
                    plain.push_back((queue, id));
                }
            }
            let next = plain.iter().enumerate().min_by_key(|(_, waiting)| **waiting).map(|(place, _)| place);
            let expected = next.and_then(|place| plain.remove(place)).map(|(_, id)| id);
            let sent = bench.step_one();
            prop_assert_eq!(sent.first().map(|packet| packet.id()), expected);
        }
    }
}
