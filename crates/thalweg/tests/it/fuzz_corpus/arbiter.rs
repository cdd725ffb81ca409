//! Steps of endpoints and their arbiter: see `fuzz::arbiter` for the format.

use thalweg_realtime::arbiter::{Refused, Report};
use thalweg_wire::emulation_protocol::{
    Acknowledgement, Direction, Flow, Header, Request, RequestWriter, SchemeBytes, Sequence, Session,
};

use crate::fuzz;

/// Time passes, in units of 10 us.
fn pass(ticks: u8) -> Vec<u8> {
    vec![0, ticks]
}

/// The process is stopped for so many milliseconds.
fn stop(millis: u16) -> Vec<u8> {
    [&[1][..], &millis.to_be_bytes()].concat()
}

fn raw(host: u8, bytes: &[u8]) -> Vec<u8> {
    [&[2, host, bytes.len() as u8], bytes].concat()
}

fn sealed(host: u8, bytes: &[u8]) -> Vec<u8> {
    [&[3, host, bytes.len() as u8], bytes].concat()
}

/// A datagram of valid requests.
#[derive(Clone, Copy, Default)]
struct Requests {
    host: u8,
    /// 1: another endpoint; 2: another source.
    lies: u8,
    session: u8,
    sequence: u8,
    destination: u8,
    flow: u8,
    count: u8,
    base: u16,
    /// From the base.
    start: u8,
    /// 0 for the MTU.
    length: u16,
    remaining: u8,
}

impl Requests {
    fn step(self) -> Vec<u8> {
        let Requests { host, lies, session, sequence, destination, flow, count, .. } = self;
        let Requests { base, start, length, remaining, .. } = self;
        let head = [6, host, lies, session, sequence, destination, flow, count];
        [&head[..], &base.to_be_bytes(), &[start], &length.to_be_bytes(), &[0b10, remaining]].concat()
    }
}

/// A datagram written as such, with what `Requests` cannot have.
fn datagram(peer_session: u32, direction: Direction, acknowledged: u32) -> Vec<u8> {
    let header = Header {
        direction,
        wants_acknowledgement: true,
        endpoint: 0,
        session: Session::new(1).unwrap(),
        peer_session: Session::new(peer_session),
        sequence: Sequence(9),
        acknowledgement: Some(Acknowledgement { highest: Sequence(acknowledged), before: u32::MAX }),
    };
    let flow = Flow { source: 0, destination: 1, number: 1 };
    let request = Request { index: 70, length: 40, traffic_class: 0, custom: SchemeBytes::NONE };
    let mut buffer = [0; 100];
    let mut writer = RequestWriter::new(&mut buffer, &header).unwrap();
    if direction == Direction::ToArbiter {
        writer.push(&flow, 70, &request).unwrap();
    }
    let length = writer.finish();
    buffer[..length].to_vec()
}

pub(crate) fn steps() -> Vec<(&'static str, Vec<u8>)> {
    let first = Requests { destination: 3, count: 30, sequence: 1, ..Requests::default() };
    let of = |host, sequence| Requests { host, sequence, base: 40 * u16::from(sequence), ..first };
    let flood = (1..=100).flat_map(|sequence| Requests { count: 60, ..of(0, sequence) }.step());
    // Each flow is idle when the next one begins: its answers were not acknowledged for so long.
    let flow = |flow| [Requests { flow, ..of(0, flow + 1) }.step(), pass(10), stop(600)].concat();
    let flows = (0..8).flat_map(flow);
    vec![
        ("requests", [first.step(), pass(50)].concat()),
        ("hosts", [of(0, 1).step(), of(1, 1).step(), of(2, 1).step(), pass(20), of(1, 2).step()].concat()),
        ("repeated", [first.step(), first.step(), pass(1), of(0, 2).step(), first.step()].concat()),
        ("flood", flood.chain(of(1, 1).step()).chain(pass(100)).collect()),
        ("flows", flows.collect()),
        ("restart", [first.step(), Requests { session: 1, ..first }.step(), pass(9), first.step()].concat()),
        ("other-port", [first.step(), Requests { host: 4, session: 1, ..first }.step(), pass(9)].concat()),
        ("other-host", [of(1, 1).step(), of(5, 1).step(), stop(1_100), of(5, 2).step(), pass(9)].concat()),
        (
            "other-source",
            [Requests { lies: 2, ..first }.step(), Requests { lies: 1, ..first }.step()].concat(),
        ),
        (
            "long",
            [Requests { length: 1_501, ..first }.step(), Requests { length: 65_535, ..of(0, 2) }.step()]
                .concat(),
        ),
        ("short", [Requests { length: 1, remaining: 255, ..first }.step(), pass(9)].concat()),
        ("nobody", [Requests { destination: 5, ..first }.step(), pass(9)].concat()),
        (
            "jump",
            [first.step(), pass(1), Requests { base: 65_000, ..of(0, 2) }.step(), of(0, 3).step()].concat(),
        ),
        ("stopped", [first.step(), stop(10_000), of(0, 2).step(), pass(9)].concat()),
        ("link", [vec![4, 3], first.step(), pass(50), vec![5, 3], of(0, 2).step(), pass(50)].concat()),
        ("garbage", [raw(0, b"garbage"), raw(1, &[1; 60]), raw(2, &[]), raw(3, &[0xff; 255])].concat()),
        (
            "later-session",
            [first.step(), sealed(0, &datagram(11, Direction::ToArbiter, 0)), pass(9)].concat(),
        ),
        (
            "acknowledges-nothing",
            [first.step(), pass(9), sealed(0, &datagram(10, Direction::ToArbiter, 0x7fff_ffff))].concat(),
        ),
        (
            "acknowledges",
            [first.step(), pass(9), sealed(0, &datagram(10, Direction::ToArbiter, 1)), pass(9)].concat(),
        ),
        (
            "other-number",
            [of(1, 1).step(), stop(1_100), Requests { lies: 1, ..of(1, 2) }.step(), of(1, 3).step(), pass(9)]
                .concat(),
        ),
        ("unknown", Requests { host: 3, lies: 1, ..first }.step()),
        ("damaged", [first.step(), raw(0, &datagram(10, Direction::ToArbiter, 0)[..30]), pass(9)].concat()),
        ("wrong-way", [first.step(), sealed(0, &datagram(10, Direction::ToEndpoint, 1)), pass(9)].concat()),
    ]
}

/// SplitMix64 (Steele, Lea & Flood 2014).
fn random_bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    (0..length / 8 + 1).flat_map(|_| next().to_be_bytes()).take(length).collect()
}

/// All seeds together, and random steps, reach every counter.
#[test]
fn steps_reach_every_counter_of_the_arbiter() {
    let random = (0..40).map(|seed| random_bytes(seed, 1_500));
    let seeds = steps().into_iter().map(|(_, steps)| steps);
    let reports: Vec<Report> = seeds.chain(random).map(|steps| fuzz::arbiter::run(&steps)).collect();
    let sum = |of: &dyn Fn(&Report) -> u64| reports.iter().map(of).sum::<u64>();
    for reason in Refused::ALL {
        let refused = sum(&|report| report.packets().refused[reason as usize]);
        assert!(refused > 0, "{}", reason.name());
    }
    let packets = |of: fn(&Report) -> u64| sum(&of);
    let counts = [
        ("delivered", packets(|report| report.packets().delivered)),
        ("dropped", packets(|report| report.packets().dropped)),
        ("flooded", packets(|report| report.datagrams.flooded)),
        ("malformed", packets(|report| report.datagrams.malformed)),
        ("unknown_endpoint", packets(|report| report.datagrams.unknown_endpoint)),
        ("wrong_address", packets(|report| report.datagrams.wrong_address)),
        ("wrong_number", packets(|report| report.datagrams.wrong_number)),
        ("pauses", packets(|report| report.punctuality.pauses)),
    ];
    assert!(counts.iter().all(|(_, count)| *count > 0), "{counts:?}");
    let sessions = |of: fn(&thalweg_realtime::protocol::ArbiterCounters) -> u64| {
        sum(&|report| report.endpoints.iter().map(|one| of(&one.session)).sum())
    };
    let counts = [
        ("no_room", sessions(|one| one.no_room)),
        ("repeated_requests", sessions(|one| one.repeated_requests)),
        ("answers_repeated", sessions(|one| one.answers_repeated)),
        ("obsolete_answers", sessions(|one| one.obsolete_answers)),
        ("acknowledged", sessions(|one| one.acknowledged)),
        ("abandoned", sessions(|one| one.abandoned)),
        ("forgotten", sessions(|one| one.forgotten)),
        ("flows_evicted", sessions(|one| one.flows_evicted)),
        ("endpoint_restarts", sessions(|one| one.endpoint_restarts)),
        ("malformed", sessions(|one| one.datagrams.malformed)),
        ("misdirected", sessions(|one| one.datagrams.misdirected)),
        ("stale", sessions(|one| one.datagrams.stale)),
        ("duplicate", sessions(|one| one.datagrams.duplicate)),
        ("sessions_renewed", sessions(|one| one.datagrams.sessions_renewed)),
    ];
    assert!(counts.iter().all(|(_, count)| *count > 0), "{counts:?}");
}
