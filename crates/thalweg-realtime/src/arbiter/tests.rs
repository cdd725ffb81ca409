mod faults;

use std::collections::HashMap;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thalweg_emulator::core::blueprint::Blueprint;
use thalweg_emulator::schemes::Scheme;
use thalweg_network::topology::shapes::rack;
use thalweg_network::{LinkSpec, Topology};
use thalweg_wire::BitRate;

use super::serve::{monotonic_clock, serve};
use super::*;
use crate::protocol::{
    Arbiter as Which, Decision, Endpoint, EndpointOptions, LinkOptions, PacketSlot, Submission,
};

const MTU: u16 = 1_500;

fn topology() -> Topology {
    rack(4, LinkSpec { rate: BitRate(10_000_000_000), delay: Nanos::from_micros(3), ..LinkSpec::default() })
        .unwrap()
}

fn scheme(name: &str) -> Scheme {
    let mut scheme = Scheme::default_of(name).unwrap();
    match &mut scheme {
        Scheme::DropTail(config) => config.buffer = 50,
        Scheme::Dctcp(config) => (config.buffer, config.threshold) = (100, 20),
        _ => unreachable!("not in these tests"),
    }
    scheme
}

fn network(scheme: &Scheme) -> Box<dyn Network> {
    thalweg_emulator::network::build(scheme, &Blueprint::new(&topology(), MTU, 1)).unwrap()
}

fn session(number: u32) -> Session {
    Session::new(number).unwrap()
}

/// Sends at once, so that requests and answers take no time.
const AT_ONCE: LinkOptions = LinkOptions {
    max_datagram: 1_472,
    batch: 8,
    batch_delay: Nanos::ZERO,
    acknowledgement_delay: Nanos::ZERO,
    initial_timeout: Nanos::from_millis(5),
    min_timeout: Nanos::from_micros(500),
    max_timeout: Nanos::from_millis(50),
};

fn arbiter(scheme: &Scheme, number: u32) -> Arbiter {
    let mut options = Options::default();
    options.session.link = AT_ONCE;
    Arbiter::new(options, network(scheme), MTU, Vec::new(), session(number)).unwrap()
}

fn address(endpoint: u16) -> SocketAddr {
    ([10, 0, 0, endpoint as u8 + 1], 5_000).into()
}

fn submission(source: u16, destination: u16, length: u16) -> Submission {
    let flow = Flow { source, destination, number: 1 };
    Submission { flow, length, traffic_class: 0b10, custom: SchemeBytes::NONE }
}

/// Endpoints and their arbiter in simulated time. Datagrams take no time.
struct World {
    now: Timestamp,
    arbiter: Arbiter,
    endpoints: Vec<Endpoint>,
    /// By endpoint and slot, the number of the packet.
    held: HashMap<(u16, PacketSlot), usize>,
    /// By packet, its decisions and their times.
    decisions: Vec<Vec<(Decision, Timestamp)>>,
    /// Endpoints that do not run.
    silent: Vec<u16>,
    /// Endpoints at another address.
    moved: Vec<u16>,
}

impl World {
    fn new(scheme: &Scheme) -> World {
        World {
            now: Timestamp(0),
            arbiter: arbiter(scheme, 10),
            endpoints: (0..4).map(|number| endpoint(number, 5, AT_ONCE)).collect(),
            held: HashMap::new(),
            decisions: Vec::new(),
            silent: Vec::new(),
            moved: Vec::new(),
        }
    }

    fn submit(&mut self, endpoint: u16, packet: &Submission) {
        let slot = self.endpoints[usize::from(endpoint)].submit(self.now, packet).unwrap();
        self.held.insert((endpoint, slot), self.decisions.len());
        self.decisions.push(Vec::new());
    }

    fn step(&mut self) {
        let World { now, arbiter, endpoints, held, decisions, silent, moved } = self;
        let mut buffer = [0; 1_472];
        let time = *now;
        let at = |number: u16| address(if moved.contains(&number) { number + 100 } else { number });
        let mut decide = |number: u16, slot, decision| {
            let packet = held.remove(&(number, slot)).expect("a packet is decided on once");
            decisions[packet].push((decision, time));
        };
        for (number, endpoint) in (0..).zip(endpoints.iter_mut()) {
            if silent.contains(&number) {
                continue;
            }
            endpoint.tick(time, |slot, decision| decide(number, slot, decision));
            while let Some(transmit) = endpoint.transmit(time, &mut buffer) {
                arbiter.receive(time, at(number), &buffer[..transmit.length]);
            }
        }
        arbiter.turn(&mut || time);
        arbiter.transmit(time, |to, bytes| {
            let Some(number) = (0..4).find(|number| at(*number) == to && !silent.contains(number)) else {
                return;
            };
            let endpoint = &mut endpoints[usize::from(number)];
            let _ = endpoint.receive(time, Which::Primary, bytes, |slot, decision| {
                decide(number, slot, decision);
            });
        });
        self.now = self.now + Nanos::from_micros(1);
    }

    fn run(&mut self, micros: u64) {
        (0..micros).for_each(|_| self.step());
    }
}

fn endpoint(number: u16, session_number: u32, link: LinkOptions) -> Endpoint {
    let options = EndpointOptions {
        endpoint: number,
        link,
        deadline: Nanos::from_secs(60),
        ..EndpointOptions::default()
    };
    Endpoint::new(options, session(session_number)).unwrap()
}

/// An answer whose delay does not matter.
fn is_answer(decision: Decision, expected: Verdict) -> bool {
    matches!(decision, Decision::Answered { verdict, .. } if verdict == expected)
}

/// The decision on each packet of a burst in virtual time, with its time.
fn in_virtual_time(
    network: &mut dyn Network,
    at: Timestamp,
    sources: &[(u16, u32)],
) -> Vec<(Decision, Timestamp)> {
    network.skip_to(network.clock().slot_at(at));
    let entered = network.now();
    let mut requests = Vec::new();
    for (source, packets) in sources {
        for _ in 0..*packets {
            let id = requests.len() as u32;
            let packet = Packet::new(EndpointId(*source), EndpointId(3), 1, id, MTU + FRAMING)
                .with_traffic_class(0b10);
            requests.push(thalweg_emulator::Request { packet, remaining: 0 });
        }
    }
    network.inject(&requests);
    let mut decisions = vec![None; requests.len()];
    let mut outcomes = Vec::new();
    while decisions.iter().any(Option::is_none) {
        network.advance(&mut outcomes);
        let time = network.clock().start_of(network.now());
        for outcome in outcomes.drain(..) {
            let verdict = match (outcome.fate, outcome.packet.traffic_class()) {
                (Fate::Dropped(..), _) => Verdict::Drop,
                (Fate::Delivered, 0b10) => Verdict::Send,
                (Fate::Delivered, _) => Verdict::SendMarked,
            };
            let emulated = network.clock().start_of(Slot(network.now().0 - entered.0));
            let emulated = EmulatedDelay::from_nanos(Nanos(emulated.0));
            decisions[outcome.packet.id() as usize] = Some((Decision::Answered { verdict, emulated }, time));
        }
    }
    decisions.into_iter().flatten().collect()
}

#[test]
fn decisions_and_their_times_are_those_of_virtual_time() {
    for (name, expected) in [("droptail", Verdict::Drop), ("dctcp", Verdict::SendMarked)] {
        let scheme = scheme(name);
        let mut world = World::new(&scheme);
        let mut oracle = network(&scheme);
        world.run(50);
        for burst in 0..4u32 {
            let (at, first) = (world.now, world.decisions.len());
            let sources = [(0, 60), (1, 40 + burst), (2, 30)];
            for (source, packets) in sources {
                (0..packets).for_each(|_| world.submit(source, &submission(source, 3, MTU)));
            }
            world.run(1_000);
            let virtual_time = in_virtual_time(&mut *oracle, at, &sources);
            assert!(virtual_time.iter().any(|(decision, _)| is_answer(*decision, expected)), "{name}");
            for (number, (decision, time)) in virtual_time.into_iter().enumerate() {
                // The next step of the world.
                let time = Timestamp(time.0.div_ceil(1_000) * 1_000);
                let decisions = &world.decisions[first + number];
                assert_eq!(decisions, &[(decision, time)], "{name}, burst {burst}, packet {number}");
            }
        }
        let report = world.arbiter.report(world.now);
        assert!(report.is_valid && report.punctuality.late_slots == 0, "{:?}", report.punctuality);
        assert!(
            report.punctuality.slots.abs_diff(network(&scheme).clock().slots_in(Nanos(world.now.0))) <= 2
        );
        let packets = report.packets();
        assert_eq!((packets.requests, packets.delivered + packets.dropped), (526, 526));
        assert_eq!((report.requests, report.answers, report.in_flight), (526, 526, 0));
        assert_eq!(report.drops.values().sum::<u64>(), packets.dropped);
        assert_eq!(packets.marked > 0, name == "dctcp");
        assert!(report.queues.iter().all(|(_, _, queue)| queue.samples() >= 3), "one a millisecond");
    }
}

#[test]
fn an_arbiter_or_endpoint_that_restarts_decides_once_on_every_packet() {
    let scheme = scheme("droptail");
    let mut world = World::new(&scheme);
    world.run(20);
    (0..40).for_each(|_| world.submit(0, &submission(0, 1, MTU)));
    (0..30).for_each(|_| world.submit(2, &submission(2, 3, MTU)));
    world.run(8);
    assert!(world.held.len() > 20, "in the middle: {} held", world.held.len());
    // A new process: it knows nothing, and its clock starts again.
    world.arbiter = arbiter(&scheme, 11);
    world.run(60_000);
    assert_eq!(world.held.len(), 0);
    assert!(world.decisions.iter().all(|decisions| decisions.len() == 1));
    let report = world.arbiter.report(world.now);
    assert!(report.requests > 20 && report.in_flight == 0, "{report:?}");

    // An endpoint that restarts while its packets are in the network, at another port of its host.
    (0..40).for_each(|_| world.submit(0, &submission(0, 1, MTU)));
    world.run(3);
    world.held.retain(|(number, _), _| *number != 0);
    world.endpoints[0] = endpoint(0, 6, AT_ONCE);
    let first = world.decisions.len();
    (0..40).for_each(|_| world.submit(0, &submission(0, 1, MTU)));
    world.run(60_000);
    assert!(world.decisions[first..].iter().all(|decisions| decisions.len() == 1));
    let report = world.arbiter.report(world.now);
    assert_eq!((report.in_flight, report.endpoints[0].session.endpoint_restarts), (0, 1));
    assert!(report.endpoints[0].session.obsolete_answers > 0);
}

/// Lets an endpoint write its datagrams, and hands them over from an address.
fn hand_over(arbiter: &mut Arbiter, endpoint: &mut Endpoint, now: Timestamp, from: SocketAddr) -> u32 {
    let mut buffer = [0; 1_472];
    let mut datagrams = 0;
    while let Some(transmit) = endpoint.transmit(now, &mut buffer) {
        arbiter.receive(now, from, &buffer[..transmit.length]);
        datagrams += 1;
    }
    datagrams
}

#[test]
fn liars_and_garbage_are_counted_and_the_rest_continues() {
    let mut world = World::new(&scheme("droptail"));
    world.run(10);
    let now = world.now;
    let hand = |arbiter: &mut Arbiter, number, session, from| {
        hand_over(arbiter, &mut endpoint(number, session, AT_ONCE), now, from)
    };
    world.arbiter.receive(now, address(0), b"garbage");
    world.arbiter.receive(now, address(0), &[]);
    assert_eq!(hand(&mut world.arbiter, 900, 1, address(9)), 1);
    // Another host says that it is endpoint 1, and endpoint 2 that it is endpoint 0.
    assert_eq!(hand(&mut world.arbiter, 1, 1, address(9)), 1);
    assert_eq!(hand(&mut world.arbiter, 0, 1, address(2)), 1);
    // Packets that cannot be emulated: of another source, to nobody, longer than the MTU.
    world.submit(0, &submission(1, 3, MTU));
    world.submit(0, &submission(0, 77, MTU));
    world.submit(0, &submission(0, 3, MTU + 1));
    world.submit(0, &submission(0, 3, MTU));
    world.run(100);
    // A packet that was not emulated has no emulated delay.
    let refused = Decision::Answered { verdict: Verdict::Drop, emulated: EmulatedDelay::ZERO };
    assert!(world.decisions[..3].iter().all(|decisions| decisions[0].0 == refused), "{:?}", world.decisions);
    assert!(is_answer(world.decisions[3][0].0, Verdict::Send), "{:?}", world.decisions);
    let report = world.arbiter.report(world.now);
    let DatagramTally { malformed, unknown_endpoint, wrong_address, wrong_number, flooded, .. } =
        report.datagrams;
    assert_eq!((malformed, unknown_endpoint, wrong_address, wrong_number, flooded), (2, 1, 1, 1, 0));
    assert_eq!(report.endpoints[0].packets.refused, [1, 1, 1, 0]);
    assert_eq!(report.endpoints[1].packets.wrong_address, 1);

    // An endpoint that has left makes place for another host.
    world.endpoints.truncate(1);
    world.run(1_100_000);
    let now = world.now;
    assert_eq!(hand_over(&mut world.arbiter, &mut endpoint(1, 1, AT_ONCE), now, address(9)), 1);
    assert_eq!(hand_over(&mut world.arbiter, &mut endpoint(0, 9, AT_ONCE), now, address(9)), 1);
    let report = world.arbiter.report(world.now);
    assert_eq!(report.endpoints[1].address, address(9));
    assert_eq!(report.endpoints[1].packets.joined, 2);
    assert_eq!(report.datagrams.wrong_number, 2, "an address has one number");
}

#[test]
fn an_endpoint_that_floods_does_not_take_the_share_of_others() {
    let mut arbiter = arbiter(&scheme("droptail"), 10);
    let mut now = Timestamp(1_000);
    let (mut flooder, mut other) = (endpoint(0, 5, AT_ONCE), endpoint(1, 5, AT_ONCE));
    // The flooder repeats a keep-alive 1,000 times before the other's first datagram.
    let mut buffer = [0; 1_472];
    let length = flooder.transmit(now, &mut buffer).unwrap().length;
    (0..1_000).for_each(|_| arbiter.receive(now, address(0), &buffer[..length]));
    other.submit(now, &submission(1, 2, MTU)).unwrap();
    hand_over(&mut arbiter, &mut other, now, address(1));
    arbiter.turn(&mut || now);
    let report = arbiter.report(now);
    assert_eq!(report.endpoints[1].packets.requests, 1, "in the first turn");
    assert_eq!(report.endpoints[0].packets.flooded, 1_000 - 64);
    assert_eq!(report.endpoints[0].session.datagrams.received, 1);
    assert_eq!(report.endpoints[0].session.datagrams.duplicate, 3, "4 datagrams a turn");
    for _ in 0..20 {
        now = now + Nanos::from_micros(1);
        arbiter.turn(&mut || now);
    }
    assert_eq!(arbiter.report(now).endpoints[0].session.datagrams.duplicate, 63);
}

#[test]
fn a_stopped_process_is_reported_and_its_packets_are_decided_on() {
    let mut world = World::new(&scheme("droptail"));
    world.run(20);
    (0..40).for_each(|_| world.submit(0, &submission(0, 1, MTU)));
    world.run(5);
    // SIGSTOP for 10 s in the middle of the packets.
    world.now = world.now + Nanos::from_secs(10);
    world.run(200);
    assert_eq!(world.held.len(), 0);
    // The pause is overhead: the network did not run.
    let longest = world.decisions.iter().map(|decisions| match decisions[0].0 {
        Decision::Answered { emulated, .. } => emulated.nanos(),
        Decision::Expired => unreachable!("the deadline is far"),
    });
    assert!(longest.max() < Some(Nanos::from_micros(100)), "{:?}", world.decisions);
    let report = world.arbiter.report(world.now);
    let skipped = network(&scheme("droptail")).clock().slots_in(Nanos::from_secs(10));
    assert!(!report.is_valid && report.punctuality.pauses == 1, "{:?}", report.punctuality);
    assert!(report.punctuality.skipped_slots.abs_diff(skipped) <= 2, "{:?}, {skipped}", report.punctuality);
    assert!(report.punctuality.worst >= Nanos(9_999_990_000));
}

#[test]
fn links_fail_and_are_repaired_while_the_network_runs() {
    let mut world = World::new(&scheme("droptail"));
    world.run(20);
    let link = topology().endpoint_link(EndpointId(1));
    let events = world.arbiter.events();
    for (event, expected) in [(Event::Fail(link), Verdict::Drop), (Event::Repair(link), Verdict::Send)] {
        events.push(&event).unwrap();
        world.run(1);
        world.submit(0, &submission(0, 1, MTU));
        world.run(100);
        assert!(is_answer(world.decisions.last().unwrap()[0].0, expected), "{event:?}");
    }
    let report = world.arbiter.report(world.now);
    assert_eq!(report.events, 2);
    assert_eq!(report.drops.keys().map(|(_, reason)| reason.name()).collect::<Vec<_>>(), ["link_down"]);
}

/// An endpoint with a socket, a primary and a secondary arbiter.
struct Host {
    endpoint: Endpoint,
    socket: BatchSocket,
    arbiters: [SocketAddr; 2],
    decided: HashMap<PacketSlot, u32>,
    decisions: u32,
}

impl Host {
    fn poll(&mut self, now: Timestamp) {
        let Host { endpoint, socket, arbiters, decided, decisions } = self;
        let mut decide = |slot: PacketSlot, decision: Decision| {
            assert!(matches!(decision, Decision::Answered { .. }), "{decision:?}");
            *decided.entry(slot).or_default() += 1;
            *decisions += 1;
        };
        socket
            .receive(|from, bytes| {
                let which = if from == arbiters[0] { Which::Primary } else { Which::Secondary };
                let _ = endpoint.receive(now, which, bytes, &mut decide);
            })
            .unwrap();
        endpoint.tick(now, decide);
        let mut buffer = [0; 1_472];
        while let Some(transmit) = endpoint.transmit(now, &mut buffer) {
            let to = match transmit.to {
                Which::Primary => arbiters[0],
                Which::Secondary => arbiters[1],
            };
            socket.send(to, &buffer[..transmit.length]);
        }
        socket.flush();
    }
}

#[test]
fn endpoints_over_udp_get_their_decisions_and_a_secondary_takes_over() {
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    let bind = || UdpSocket::bind(any).unwrap();
    let (primary, secondary, socket) = (bind(), bind(), BatchSocket::bind(any, 1_472).unwrap());
    let arbiters = [primary.local_addr().unwrap(), secondary.local_addr().unwrap()];
    let options =
        EndpointOptions { deadline: Nanos::from_secs(60), has_secondary: true, ..EndpointOptions::default() };
    let endpoint = Endpoint::new(options, session(5)).unwrap();
    let mut host = Host { endpoint, socket, arbiters, decided: HashMap::new(), decisions: 0 };
    let stops = [AtomicBool::new(false), AtomicBool::new(false)];
    let watchdog = Watchdog::new(arbiters[0], WatchdogOptions::default());
    let run = |socket: UdpSocket, number, watchdog, stop: &AtomicBool| {
        let mut socket = BatchSocket::new(socket, 1_472).unwrap();
        let mut arbiter =
            Arbiter::new(Options::default(), network(&scheme("droptail")), MTU, Vec::new(), session(number))
                .unwrap();
        serve(&mut arbiter, &mut socket, watchdog, &mut monotonic_clock(Instant::now()), None, stop).unwrap()
    };
    let [first, second] = std::thread::scope(|scope| {
        let first = scope.spawn(|| run(primary, 10, None, &stops[0]));
        let second = scope.spawn(|| run(secondary, 10, Some(watchdog), &stops[1]));
        let mut clock = monotonic_clock(Instant::now());
        let mut send = |host: &mut Host, packets: u32| {
            (0..packets).for_each(|_| {
                host.endpoint.submit(clock(), &submission(0, 1, MTU)).unwrap();
            });
            let end = host.decisions + packets;
            while host.decisions < end {
                host.poll(clock());
                let _ = host.socket.wait(Nanos::from_millis(1));
            }
        };
        let ask = |address| {
            let answers =
                std::iter::repeat_with(|| LiveStatus::ask(address, Duration::from_secs(1)).unwrap());
            answers.flatten().next().unwrap()
        };
        send(&mut host, 100);
        assert!(ask(arbiters[0]).is_active);
        stops[0].store(true, Ordering::Relaxed);
        let first = first.join().unwrap();
        send(&mut host, 100);
        let status = ask(arbiters[1]);
        assert!(status.is_active && status.endpoints == 1 && status.answers > 0, "{status:?}");
        stops[1].store(true, Ordering::Relaxed);
        [first, second.join().unwrap()]
    });
    assert_eq!(host.decisions, 200);
    assert_eq!(host.endpoint.counters().expired, 0);
    assert!(host.endpoint.counters().switches >= 1);
    assert!(second.took_over_at.is_some(), "{second:?}");
    assert!(first.requests + second.requests >= 200);
    assert!(second.answers > 0, "{second:?}");
}
