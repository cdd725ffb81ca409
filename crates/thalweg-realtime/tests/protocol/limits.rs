//! What happens at each limit.

use thalweg_realtime::protocol::{
    Arbiter, ArbiterOptions, ArbiterSession, Command, Decision, Endpoint, EndpointOptions, LinkOptions,
    ObsoleteRequest, ReceiveError, RequestId, Submission, SubmitError,
};
use thalweg_wire::emulation_protocol::{
    Direction, EmulatedDelay, FLOW_WINDOW, Flow, Header, Request, RequestWriter, SchemeBytes, Sequence,
    Session, Verdict,
};
use thalweg_wire::{Nanos, Timestamp};

fn session(number: u32) -> Session {
    Session::new(number).unwrap()
}

fn packet(flow: u32) -> Submission {
    let flow = Flow { source: 0, destination: 1, number: flow };
    Submission { flow, length: 1_500, traffic_class: 0, custom: SchemeBytes::NONE }
}

const START: Timestamp = Timestamp(1_000_000_000);

/// Submits packets of one flow.
fn submit(endpoint: &mut Endpoint, now: Timestamp, packets: u32) {
    (0..packets).for_each(|_| assert!(endpoint.submit(now, &packet(0)).is_ok()));
}

/// All datagrams that are due.
fn datagrams(mut transmit: impl FnMut(&mut [u8]) -> Option<usize>) -> Vec<Vec<u8>> {
    let mut buffer = vec![0; 1_472];
    std::iter::from_fn(|| transmit(&mut buffer).map(|length| buffer[..length].to_vec())).collect()
}

fn requests(endpoint: &mut Endpoint, now: Timestamp) -> Vec<Vec<u8>> {
    datagrams(|buffer| endpoint.transmit(now, buffer).map(|transmit| transmit.length))
}

fn answers(arbiter: &mut ArbiterSession, now: Timestamp) -> Vec<Vec<u8>> {
    datagrams(|buffer| arbiter.transmit(now, buffer))
}

#[test]
fn an_endpoint_refuses_packets_and_flows_beyond_its_limits() {
    let options = EndpointOptions { max_packets: 3, max_flows: 2, ..EndpointOptions::default() };
    let mut endpoint = Endpoint::new(options, session(1)).unwrap();
    endpoint.submit(START, &packet(0)).unwrap();
    endpoint.submit(START, &packet(1)).unwrap();
    assert_eq!(endpoint.submit(START, &packet(2)), Err(SubmitError::Flows { limit: 2 }));
    endpoint.submit(START, &packet(1)).unwrap();
    assert_eq!(endpoint.submit(START, &packet(0)), Err(SubmitError::Packets { limit: 3 }));
    // At the deadline all are dropped, and both flows give way to others.
    let mut expired = 0;
    endpoint
        .tick(START + options.deadline, |_, decision| expired += u32::from(decision == Decision::Expired));
    assert_eq!(expired, 3);
    endpoint.submit(START, &packet(2)).unwrap();
    let counters = endpoint.counters();
    let counted =
        (counters.refused_flows, counters.refused_packets, counters.flows_evicted, counters.expired);
    assert_eq!(counted, (1, 1, 1, 3));
}

#[test]
fn a_flow_has_a_window() {
    let mut endpoint = Endpoint::new(EndpointOptions::default(), session(1)).unwrap();
    for _ in 0..FLOW_WINDOW {
        endpoint.submit(START, &packet(0)).unwrap();
    }
    assert_eq!(endpoint.submit(START, &packet(0)), Err(SubmitError::Window));
    endpoint.submit(START, &packet(1)).unwrap();
    assert_eq!(endpoint.counters().refused_window, 1);
}

/// A datagram without room is refused as a whole and is not acknowledged, so it comes again.
#[test]
fn an_arbiter_without_room_takes_requests_later() {
    let link = LinkOptions { max_datagram: 96, batch_delay: Nanos::ZERO, ..LinkOptions::default() };
    let mut endpoint =
        Endpoint::new(EndpointOptions { link, ..EndpointOptions::default() }, session(1)).unwrap();
    let options = ArbiterOptions { link, max_requests: 16, ..ArbiterOptions::default() };
    let mut arbiter = ArbiterSession::new(options, session(1)).unwrap();
    let mut now = START;
    let mut taken: Vec<RequestId> = Vec::new();
    submit(&mut endpoint, now, 16);
    for datagram in requests(&mut endpoint, now) {
        arbiter.receive(now, &datagram, |id, _, _| taken.push(id)).unwrap();
    }
    submit(&mut endpoint, now, 8);
    let refused = requests(&mut endpoint, now);
    for datagram in &refused {
        assert_eq!(arbiter.receive(now, datagram, |_, _, _| unreachable!()), Err(ReceiveError::NoRoom));
    }
    let counted = (arbiter.pending_requests(), arbiter.counters().no_room);
    assert_eq!((taken.len(), counted), (16, (16, refused.len() as u64)));
    taken.iter().for_each(|id| arbiter.answer(now, *id, Verdict::Send, EmulatedDelay::ZERO).unwrap());
    let mut sent = 0;
    for _ in 0..200 {
        now = now + Nanos::from_micros(200);
        endpoint.tick(now, |_, _| unreachable!("the deadline is far"));
        for datagram in requests(&mut endpoint, now) {
            let mut new = Vec::new();
            let _ = arbiter.receive(now, &datagram, |id, _, _| new.push(id));
            new.iter().for_each(|id| arbiter.answer(now, *id, Verdict::Send, EmulatedDelay::ZERO).unwrap());
        }
        arbiter.tick(now);
        for datagram in answers(&mut arbiter, now) {
            endpoint.receive(now, Arbiter::Primary, &datagram, |_, _| sent += 1).unwrap();
        }
    }
    assert_eq!((sent, endpoint.held_packets(), arbiter.pending_requests()), (24, 0, 0));
}

/// A flow's window has moved on by its length: the bit of an earlier request is not that of the new one.
#[test]
fn a_request_that_shares_a_bit_with_an_earlier_one_needs_room() {
    let link = LinkOptions { max_datagram: 96, ..LinkOptions::default() };
    let options = ArbiterOptions { link, max_requests: 16, ..ArbiterOptions::default() };
    let mut arbiter = ArbiterSession::new(options, session(1)).unwrap();
    let mut receive = |sequence, flow, base, indices: std::ops::Range<u64>| {
        let header = Header {
            direction: Direction::ToArbiter,
            wants_acknowledgement: true,
            endpoint: 0,
            session: session(1),
            peer_session: None,
            sequence: Sequence(sequence),
            acknowledgement: None,
        };
        let mut buffer = [0; 200];
        let mut writer = RequestWriter::new(&mut buffer, &header).unwrap();
        for index in indices {
            let request = Request { index, length: 1_500, traffic_class: 0, custom: SchemeBytes::NONE };
            writer.push(&packet(flow).flow, base, &request).unwrap();
        }
        let length = writer.finish();
        let mut taken = 0;
        arbiter.receive(START, &buffer[..length], |_, _, _| taken += 1).map(|()| taken)
    };
    assert_eq!(receive(1, 0, 0, 5..6), Ok(1));
    assert_eq!(receive(2, 1, 0, 0..15), Ok(15));
    let later = FLOW_WINDOW + 5;
    assert_eq!(receive(3, 0, later, later..later + 1), Err(ReceiveError::NoRoom));
}

#[test]
fn answers_to_an_earlier_session_or_twice_have_no_effect() {
    let mut endpoint = Endpoint::new(EndpointOptions::default(), session(1)).unwrap();
    let mut arbiter = ArbiterSession::new(ArbiterOptions::default(), session(1)).unwrap();
    let mut taken = Vec::new();
    let send = |endpoint: &mut Endpoint, arbiter: &mut ArbiterSession, taken: &mut Vec<RequestId>| {
        submit(endpoint, START, 8);
        for datagram in requests(endpoint, START) {
            arbiter.receive(START, &datagram, |id, _, _| taken.push(id)).unwrap();
        }
    };
    send(&mut endpoint, &mut arbiter, &mut taken);
    arbiter.answer(START, taken[0], Verdict::Send, EmulatedDelay::ZERO).unwrap();
    assert_eq!(arbiter.answer(START, taken[0], Verdict::Drop, EmulatedDelay::ZERO), Err(ObsoleteRequest));
    let mut restarted = Endpoint::new(EndpointOptions::default(), session(2)).unwrap();
    send(&mut restarted, &mut arbiter, &mut taken);
    assert_eq!(arbiter.answer(START, taken[1], Verdict::Drop, EmulatedDelay::ZERO), Err(ObsoleteRequest));
    arbiter.answer(START, taken[8], Verdict::Send, EmulatedDelay::ZERO).unwrap();
    let counters = arbiter.counters();
    assert_eq!((counters.forgotten, counters.obsolete_answers, counters.endpoint_restarts), (8, 2, 1));
}

/// An answer that nobody acknowledges is given up in the end.
#[test]
fn answers_to_a_dead_endpoint_are_abandoned() {
    let mut endpoint = Endpoint::new(EndpointOptions::default(), session(1)).unwrap();
    let mut arbiter = ArbiterSession::new(ArbiterOptions::default(), session(1)).unwrap();
    let mut taken = Vec::new();
    submit(&mut endpoint, START, 8);
    for datagram in requests(&mut endpoint, START) {
        arbiter.receive(START, &datagram, |id, _, _| taken.push(id)).unwrap();
    }
    taken.iter().for_each(|id| arbiter.answer(START, *id, Verdict::Send, EmulatedDelay::ZERO).unwrap());
    let mut sent = answers(&mut arbiter, START).len();
    while let Some(next) = arbiter.next_event() {
        arbiter.tick(next);
        sent += answers(&mut arbiter, next).len();
    }
    assert_eq!((arbiter.pending_requests(), arbiter.counters().abandoned), (0, 8));
    // 5, 10, 20, 40 ms, then every 50 ms until 500 ms.
    assert!((10..=15).contains(&sent), "{sent} datagrams");
}

#[test]
fn a_silent_arbiter_is_replaced_after_three_datagrams_and_the_silence() {
    let options = EndpointOptions { has_secondary: true, ..EndpointOptions::default() };
    let mut endpoint = Endpoint::new(options, session(1)).unwrap();
    endpoint.submit(START, &packet(0)).unwrap();
    let (mut now, mut switched) = (START, None);
    let mut first_of_secondary = None;
    let mut buffer = [0; 1_472];
    while first_of_secondary.is_none() {
        now = now.max(endpoint.next_event());
        if let Some(Command::SwitchTo(arbiter)) =
            endpoint.tick(now, |_, _| unreachable!("the deadline is far"))
        {
            switched = Some((arbiter, now - START));
        }
        while let Some(transmit) = endpoint.transmit(now, &mut buffer) {
            assert_eq!(transmit.to, endpoint.arbiter());
            if transmit.to == Arbiter::Secondary {
                let mut secondary = ArbiterSession::new(ArbiterOptions::default(), session(9)).unwrap();
                let mut indices = Vec::new();
                let datagram = &buffer[..transmit.length];
                secondary.receive(now, datagram, |_, _, request| indices.push(request.index)).unwrap();
                first_of_secondary.get_or_insert(indices);
            }
        }
    }
    assert_eq!(switched, Some((Arbiter::Secondary, options.silence)));
    assert_eq!(first_of_secondary, Some(vec![0]), "the packet that is held is requested again");
    // After a pause of the endpoint itself, one unanswered datagram is not enough.
    let mut paused = Endpoint::new(options, session(1)).unwrap();
    paused.transmit(START, &mut buffer).unwrap();
    assert_eq!(paused.tick(START + Nanos::from_secs(10), |_, _| unreachable!()), None);
}
