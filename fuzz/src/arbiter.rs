//! An arbiter of a real-time emulation, and endpoints that send it anything.
//!
//! The input is a list of steps. A step is a kind, one byte, and its arguments:
//!
//! | kind, modulo 8 | arguments | step |
//! |---|---|---|
//! | 0 | ticks, 1 byte | so many times 10 us pass |
//! | 1 | milliseconds, 2 bytes | so much time passes at once: the process was stopped |
//! | 2 | host, length, bytes | the host sends these bytes |
//! | 3 | host, length, bytes | the same with the right version and checksum |
//! | 4 | link | it fails |
//! | 5 | link | it is repaired |
//! | 6, 7 | host, 13 bytes | the host sends valid requests of one flow |
//!
//! If the input ends within a step, its missing bytes are 0.

use std::collections::HashMap;
use std::net::SocketAddr;

use thalweg_emulator::core::blueprint::Blueprint;
use thalweg_emulator::core::events::Event;
use thalweg_emulator::schemes::Scheme;
use thalweg_network::topology::shapes::rack;
use thalweg_network::{EndpointId, LinkSpec, Topology};
use thalweg_realtime::arbiter::{Arbiter, Options, Report};
use thalweg_wire::emulation_protocol::{
    Answer, Datagram, Direction, Flow, HEADER_LENGTH, Header, Request, RequestWriter, SchemeBytes, Sequence,
    Session, VERSION, checksum,
};
use thalweg_wire::{Nanos, Timestamp};

const ENDPOINTS: u32 = 4;
const HOSTS: u8 = 6;
const MTU: u16 = 1_500;

/// Steps of an input; the rest is ignored, so that an execution takes little time.
const MAX_STEPS: usize = 200;

/// Checks that the arbiter answers each request once and only requests, that its counters add up after each step, that
/// its tables stay within their limits, and that the network is empty in the end.
///
/// # Panics
/// When the property does not hold.
pub fn check(data: &[u8]) {
    run(data);
}

/// Does the same, and returns what the arbiter has counted.
///
/// # Panics
/// As [`check`].
pub fn run(data: &[u8]) -> Report {
    let mut world = World::new();
    let mut input = Input(data);
    for _ in 0..MAX_STEPS {
        if input.0.is_empty() {
            break;
        }
        world.step(&mut input);
        world.arbiter.check_invariants();
    }
    // What waits is emulated, and what is not acknowledged is given up.
    world.pass(2_000);
    for _ in 0..20 {
        world.now = world.now + Nanos::from_millis(100);
        world.turn();
    }
    world.arbiter.check_invariants();
    let report = world.arbiter.report(world.now);
    assert_eq!(report.in_flight, 0, "{report:?}");
    for one in &report.endpoints {
        let counters = &one.session;
        let ended = counters.acknowledged + counters.abandoned + counters.forgotten;
        assert_eq!(counters.requests, ended, "{one:?}");
    }
    report
}

/// The unread bytes.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, left) = self.0.split_at(length.min(self.0.len()));
        self.0 = left;
        taken
    }

    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    fn number(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// A length, and as many bytes.
    fn bytes(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte());
        self.take(length)
    }
}

struct World {
    now: Timestamp,
    topology: Topology,
    arbiter: Arbiter,
    /// Every packet that has an answer.
    answers: HashMap<Answered, Answer>,
}

/// A packet, and the sessions in which it was answered.
#[derive(PartialEq, Eq, Hash)]
struct Answered {
    endpoint: u16,
    session: Session,
    peer_session: Option<Session>,
    flow: Flow,
    index: u64,
}

fn address(host: u8) -> SocketAddr {
    // The last two have another port of the first host, and another host.
    let (host, port) = if host == 4 { (0, 6_000) } else { (host, 5_000) };
    ([10, 0, 0, host + 1], port).into()
}

impl World {
    fn new() -> World {
        let link = LinkSpec { delay: Nanos::from_micros(3), ..LinkSpec::default() };
        let topology = rack(ENDPOINTS, link).expect("a rack");
        let mut scheme = Scheme::default_of("droptail").expect("a scheme");
        if let Scheme::DropTail(config) = &mut scheme {
            config.buffer = 20;
        }
        let network = thalweg_emulator::network::build(&scheme, &Blueprint::new(&topology, MTU, 1));
        let mut options = Options { backlog: 8, max_in_flight: 64, ..Options::default() };
        (options.session.max_requests, options.session.max_flows) = (256, 4);
        let network = network.expect("a valid scheme");
        let session = Session::new(10).expect("not 0");
        let arbiter = Arbiter::new(options, network, MTU, Vec::new(), session).expect("valid options");
        World { now: Timestamp(1_000_000), topology, arbiter, answers: HashMap::new() }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.byte() % 8 {
            0 => {
                let ticks = input.byte();
                self.pass(ticks.into());
            }
            1 => {
                self.now = self.now + Nanos::from_millis(input.number().into());
                self.turn();
            }
            2 => {
                let host = input.byte();
                self.send(host, input.bytes());
            }
            3 => {
                let host = input.byte();
                let mut bytes = input.bytes().to_vec();
                seal(&mut bytes);
                self.send(host, &bytes);
            }
            kind @ (4 | 5) => {
                let endpoint = EndpointId(u16::from(input.byte()) % ENDPOINTS as u16);
                let link = self.topology.endpoint_link(endpoint);
                let event = if kind == 4 { Event::Fail(link) } else { Event::Repair(link) };
                // Refused if too many wait.
                let _ = self.arbiter.events().push(&event);
            }
            _ => {
                let host = input.byte();
                let bytes = requests(host, input);
                self.send(host, &bytes);
            }
        }
    }

    /// Time passes in steps of 10 us.
    fn pass(&mut self, ticks: u32) {
        for _ in 0..ticks {
            self.now = self.now + Nanos::from_micros(10);
            self.turn();
        }
    }

    fn send(&mut self, host: u8, bytes: &[u8]) {
        self.arbiter.receive(self.now, address(host % HOSTS), bytes);
    }

    fn turn(&mut self) {
        let World { now, arbiter, answers, .. } = self;
        let time = *now;
        arbiter.turn(&mut || time);
        let (mut sent, mut changed) = (0, None);
        arbiter.transmit(time, |_, bytes| {
            sent += 1;
            let datagram = Datagram::decode(bytes).expect("the arbiter writes valid datagrams");
            let Header { direction, endpoint, session, peer_session, .. } = datagram.header;
            assert_eq!(direction, Direction::ToEndpoint);
            for (flow, answer) in datagram.answers() {
                let packet = Answered { endpoint, session, peer_session, flow, index: answer.index };
                let known = *answers.entry(packet).or_insert(answer);
                if known != answer {
                    changed = Some((flow, known, answer));
                }
            }
        });
        assert!(sent < 10_000, "the arbiter does not come to rest");
        if let Some((flow, known, answer)) = changed {
            // A flow that was evicted may be emulated twice.
            let evicted: u64 =
                arbiter.report(time).endpoints.iter().map(|one| one.session.flows_evicted).sum();
            assert!(evicted > 0, "{flow:?}: {known:?}, then {answer:?}");
        }
    }
}

/// Gives bytes the right version and checksum.
fn seal(bytes: &mut [u8]) {
    if bytes.len() >= HEADER_LENGTH {
        bytes[0] = VERSION;
        let sum = checksum(bytes);
        bytes[24..28].copy_from_slice(&sum.to_be_bytes());
    }
}

/// A datagram of up to 64 requests: mostly of the host's endpoint, and of one flow.
fn requests(host: u8, input: &mut Input<'_>) -> Vec<u8> {
    let [lies, session, sequence, destination, number, count] = [(); 6].map(|()| input.byte());
    let (base, start, length, traffic_class) = (input.number(), input.byte(), input.number(), input.byte());
    let remaining = input.byte();
    // Of 16 datagrams, one names another endpoint, and one another source.
    let endpoint = u16::from(host % HOSTS % ENDPOINTS as u8);
    let header = Header {
        direction: Direction::ToArbiter,
        wants_acknowledgement: lies & 0x80 == 0,
        endpoint: if lies % 16 == 1 { endpoint + 1 } else { endpoint },
        session: Session::new(1 + u32::from(session % 4)).expect("not 0"),
        peer_session: Session::new(10),
        sequence: Sequence(sequence.into()),
        acknowledgement: None,
    };
    let source = if lies % 16 == 2 { endpoint + 1 } else { endpoint };
    let flow = Flow { source, destination: u16::from(destination % 6), number: u32::from(number % 8) };
    let custom = match remaining {
        0 => SchemeBytes::NONE,
        bytes => SchemeBytes::new(&[bytes; 4]).expect("4 bytes"),
    };
    let mut buffer = vec![0; 1_472];
    let mut writer = RequestWriter::new(&mut buffer, &header).expect("room for a header");
    for index in 0..u64::from(count % 64) {
        let index = u64::from(base) + u64::from(start) + index;
        let length = if length == 0 { MTU } else { length };
        let request = Request { index, length, traffic_class, custom };
        writer.push(&flow, base.into(), &request).expect("room for 64 requests");
    }
    let length = writer.finish();
    buffer.truncate(length);
    buffer
}
