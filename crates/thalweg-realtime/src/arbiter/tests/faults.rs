//! Endpoints that lie, flood, join and leave, and an arbiter that stops.

use thalweg_wire::emulation_protocol::{
    Acknowledgement, Direction, FLOW_WINDOW, Header, RequestWriter, Sequence, checksum,
};

use super::*;
use crate::protocol::{ArbiterCounters, DatagramCounters};

/// An endpoint that writes its datagrams itself.
struct Liar {
    number: u16,
    header: Header,
}

impl Liar {
    fn new(number: u16) -> Liar {
        let header = Header {
            direction: Direction::ToArbiter,
            wants_acknowledgement: true,
            endpoint: number,
            session: session(5),
            peer_session: Some(session(10)),
            sequence: Sequence(0),
            acknowledgement: None,
        };
        Liar { number, header }
    }

    /// Sends requests of one flow.
    fn send(&mut self, world: &mut World, base: u64, requests: &[(u64, u16)]) {
        let bytes = self.datagram(base, requests);
        world.arbiter.receive(world.now, address(self.number), &bytes);
    }

    fn datagram(&mut self, base: u64, requests: &[(u64, u16)]) -> Vec<u8> {
        self.header.sequence = self.header.sequence.next();
        let flow = Flow { source: self.number, destination: 3, number: 1 };
        let mut buffer = [0; 1_472];
        let mut writer = RequestWriter::new(&mut buffer, &self.header).unwrap();
        for &(index, length) in requests {
            let request = Request { index, length, traffic_class: 0, custom: SchemeBytes::NONE };
            writer.push(&flow, base, &request).unwrap();
        }
        let length = writer.finish();
        buffer[..length].to_vec()
    }
}

/// A world whose first endpoint is a liar, and the session that it has at the end.
fn with_a_liar(lie: impl FnOnce(&mut Liar, &mut World)) -> (EndpointTally, ArbiterCounters) {
    let mut world = World::new(&scheme("droptail"));
    world.silent.push(0);
    world.run(10);
    let mut liar = Liar::new(0);
    liar.send(&mut world, 0, &[(0, MTU)]);
    lie(&mut liar, &mut world);
    // Another endpoint is served all the time.
    (0..20).for_each(|_| world.submit(1, &submission(1, 2, MTU)));
    world.run(200);
    world.arbiter.check_invariants();
    assert!(world.decisions.iter().all(|decisions| is_answer(decisions[0].0, Verdict::Send)));
    let report = world.arbiter.report(world.now);
    assert_eq!((report.in_flight, world.held.len()), (0, 0));
    (report.endpoints[0].packets, report.endpoints[0].session)
}

#[test]
fn an_endpoint_that_lies_harms_only_itself() {
    // Indices that it has used, and a base that jumps beyond all of them and back.
    let (packets, session) = with_a_liar(|liar, world| {
        liar.send(world, 0, &[(0, MTU), (1, MTU), (1, MTU), (0, MTU)]);
        liar.send(world, 1 << 60, &[(1 << 60, MTU), ((1 << 60) + FLOW_WINDOW - 1, MTU)]);
        liar.send(world, 2, &[(2, MTU), (3, MTU)]);
        liar.send(world, u64::MAX - 1, &[(u64::MAX - 1, MTU)]);
        liar.send(world, 0, &[(0, MTU)]);
    });
    assert_eq!((packets.requests, packets.delivered, session.repeated_requests), (5, 5, 6), "{session:?}");

    // Lengths that no packet has: the shortest occupies a link like the shortest frame.
    let (packets, _) = with_a_liar(|liar, world| {
        liar.send(world, 0, &[(1, 0), (2, 1), (3, MTU + 1), (4, u16::MAX)]);
    });
    assert_eq!((packets.delivered, packets.refused), (3, [0, 0, 2, 0]));

    // Acknowledgements of datagrams that were never sent, by which the arbiter would forget its answers.
    let (_, session) = with_a_liar(|liar, world| {
        world.run(50);
        liar.header.acknowledgement = Some(Acknowledgement { highest: Sequence(1 << 30), before: u32::MAX });
        liar.send(world, 0, &[(1, MTU)]);
    });
    assert_eq!((session.answers, session.acknowledged), (2, 0), "{session:?}");

    // A lengthened datagram, one that is cut, and an answer instead of requests.
    let (packets, session) = with_a_liar(|liar, world| {
        let from = address(0);
        let valid = liar.datagram(0, &[(1, MTU), (2, MTU)]);
        let mut longer = valid.clone();
        // The block has 255 entries, as it says.
        longer[32] = 255;
        let sum = checksum(&longer);
        longer[24..28].copy_from_slice(&sum.to_be_bytes());
        world.arbiter.receive(world.now, from, &longer);
        world.arbiter.receive(world.now, from, &valid[..valid.len() - 1]);
        liar.header.direction = Direction::ToEndpoint;
        let answer = liar.datagram(0, &[]);
        world.arbiter.receive(world.now, from, &answer);
    });
    let DatagramCounters { malformed, misdirected, .. } = session.datagrams;
    assert_eq!((packets.requests, malformed, misdirected), (1, 2, 1), "{session:?}");
}

#[test]
fn an_endpoint_that_floods_with_requests_does_not_delay_packets_of_others() {
    let decisions = |floods: bool| {
        let mut world = World::new(&scheme("droptail"));
        world.silent.push(0);
        world.run(10);
        let mut flooder = Liar::new(0);
        let mut index = 0;
        for _ in 0..100 {
            if floods {
                // 80 datagrams of 30 requests each 5 us: 600 times what its link carries.
                for _ in 0..80 {
                    let requests: Vec<(u64, u16)> = (index..index + 30).map(|index| (index, MTU)).collect();
                    flooder.send(&mut world, index, &requests);
                    index += 30;
                }
            }
            (0..3).for_each(|_| world.submit(1, &submission(1, 2, MTU)));
            world.run(5);
        }
        world.run(2_000);
        world.arbiter.check_invariants();
        (world.decisions.clone(), world.arbiter.report(world.now))
    };
    let ((alone, _), (beside, report)) = (decisions(false), decisions(true));
    assert!(alone.len() == 300 && alone.iter().all(|decisions| decisions.len() == 1));
    for (alone, beside) in alone.iter().zip(&beside) {
        let ((decision, time), (same, other)) = (alone[0], beside[0]);
        // In an empty network, a packet waits for the next timeslot; in a busy one, it enters the current one.
        let difference = Nanos(time.0.abs_diff(other.0));
        assert!(decision == same && difference < Nanos::from_micros(3), "{alone:?} alone, {beside:?}");
    }
    assert_eq!(alone.len(), beside.len());
    let flooder = &report.endpoints[0];
    assert!(flooder.packets.flooded > 5_000 && flooder.packets.dropped > 1_000, "{flooder:?}");
    assert_eq!(report.endpoints[1].packets.flooded, 0);
}

#[test]
fn endpoints_join_and_leave_while_others_send() {
    let mut world = World::new(&scheme("droptail"));
    world.run(10);
    // Endpoints 0 to 2 leave in turn, some in the middle of their packets, and come back after a while: with a later
    // session, and from another address if so long that the arbiter takes them for gone.
    for round in 0..12_u32 {
        let number = (round % 3) as u16;
        (0..10).for_each(|_| world.submit(number, &submission(number, 3, MTU)));
        (0..10).for_each(|_| world.submit(3, &submission(3, number, MTU)));
        world.run([2, 60][round as usize % 2]);
        world.held.retain(|(of, _), _| *of != number);
        world.silent.push(number);
        (0..10).for_each(|_| world.submit(3, &submission(3, (number + 1) % 3, MTU)));
        world.run(100);
        world.arbiter.check_invariants();
        // The endpoint that stays is decided on in any case.
        assert_eq!(world.held.len(), 0, "round {round}");
        if round % 4 == 3 {
            world.now = world.now + Nanos::from_millis(1_100);
            world.moved.push(number);
        }
        world.endpoints[usize::from(number)] = endpoint(number, 6 + round, AT_ONCE);
        world.silent.clear();
        world.run(10);
    }
    let report = world.arbiter.report(world.now);
    assert!(world.decisions.iter().all(|decisions| decisions.len() <= 1));
    let of_stayer = &report.endpoints[3].packets;
    assert_eq!((of_stayer.requests, of_stayer.delivered, of_stayer.joined), (240, 240, 1));
    let joined: u64 = report.endpoints.iter().map(|one| one.packets.joined).sum();
    assert_eq!(joined, 4 + world.moved.len() as u64, "{report:?}");
    let restarts: u64 = report.endpoints.iter().map(|one| one.session.endpoint_restarts).sum();
    assert_eq!(restarts, 12, "{report:?}");
}

/// Two endpoints of one host leave, and start again with each other's number.
#[test]
fn an_address_has_one_number_also_after_its_endpoint_has_left() {
    let mut arbiter = arbiter(&scheme("droptail"), 10);
    let mut now = Timestamp(1_000);
    let join = |arbiter: &mut Arbiter, number, at: u16, session_number, now| {
        hand_over(arbiter, &mut endpoint(number, session_number, AT_ONCE), now, address(at));
        arbiter.turn(&mut || now);
        arbiter.check_invariants();
    };
    join(&mut arbiter, 0, 0, 5, now);
    join(&mut arbiter, 1, 1, 5, now);
    now = now + Nanos::from_millis(1_100);
    join(&mut arbiter, 1, 0, 6, now);
    // The address is that of endpoint 1 now.
    join(&mut arbiter, 0, 0, 7, now);
    assert_eq!(arbiter.report(now).datagrams.wrong_number, 1);
    // Endpoint 0 moves, and endpoint 1 keeps its address.
    join(&mut arbiter, 0, 2, 8, now);
    join(&mut arbiter, 1, 0, 9, now);
    let report = arbiter.report(now);
    assert_eq!(report.datagrams.wrong_number, 1);
    let endpoints = report.endpoints.iter().map(|one| (one.address, one.packets.joined));
    assert_eq!(endpoints.collect::<Vec<_>>(), [(address(2), 2), (address(0), 2)]);
    assert_eq!(report.endpoints[1].session.endpoint_restarts, 2);
}
