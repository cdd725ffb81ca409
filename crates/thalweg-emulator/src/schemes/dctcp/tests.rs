use super::*;
use crate::outcome::Request;
use crate::packet::Ecn;
use crate::schemes::tests::harness::{Bench, request};

fn arrival(id: u32, ecn: Ecn) -> Request {
    let request = request(0, 0, id, 1_500);
    Request { packet: request.packet.with_traffic_class(ecn as u8), ..request }
}

#[test]
fn packets_are_marked_from_the_threshold_on() {
    let mut bench =
        Bench::new(1, |route, ports| dctcp(route, ports, &DctcpConfig { threshold: 3, buffer: 6 }));
    bench.arrive((0..8).map(|id| arrival(id, Ecn::Capable0)));
    let marks: Vec<bool> = bench.drain()[0].iter().map(|packet| packet.ecn() == Ecn::Experienced).collect();
    assert_eq!(marks, [false, false, false, true, true, true]);
    assert_eq!(bench.dropped_for(Reason::Full), 2);
    assert_eq!(bench.marked(), 3, "what is dropped is not marked");
}

#[test]
fn packets_without_ecn_pass_unmarked() {
    let mut bench =
        Bench::new(1, |route, ports| dctcp(route, ports, &DctcpConfig { threshold: 0, buffer: 6 }));
    bench.arrive((0..6).map(|id| arrival(id, Ecn::NotCapable)));
    assert!(bench.drain()[0].iter().all(|packet| packet.ecn() == Ecn::NotCapable));
    assert!(bench.dropped.is_empty());
}
