//! An endpoint, two arbiters and the network between them, in simulated time.
//!
//! The world keeps a ledger of all packets, and checks at every decision that it is the first on its packet and equals
//! the oracle's.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use thalweg_realtime::protocol::{
    Arbiter, ArbiterOptions, ArbiterSession, Command, Decision, Endpoint, EndpointOptions, PacketSlot,
    ReceiveError, ReleaseQueue, RequestId, Submission,
};
use thalweg_wire::emulation_protocol::{EmulatedDelay, Flow, Session, Verdict};
use thalweg_wire::{Nanos, Timestamp};

use crate::oracle;
use crate::random::Random;
use crate::wire::{Conditions, Delivery, Path, Wire};

/// Where a packet is, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The endpoint did not accept it.
    Refused,
    Held,
    Sent,
    Dropped,
    Expired,
    /// The endpoint restarted while it held the packet.
    Restarted,
}

/// An arbiter with its emulated network: every packet takes some time.
pub(crate) struct Node {
    /// None while it is down.
    pub(crate) session: Option<ArbiterSession>,
    /// It does nothing before.
    pub(crate) paused_until: Timestamp,
    number: u32,
    /// Packets in the emulated network.
    emulation: BinaryHeap<Reverse<(Timestamp, u64)>>,
    requests: Vec<(RequestId, Verdict, EmulatedDelay)>,
    /// All that this session has emulated.
    emulated: HashSet<(u32, Flow, u64)>,
}

pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) random: Random,
    pub(crate) wire: Wire,
    pub(crate) endpoint: Endpoint,
    endpoint_options: EndpointOptions,
    arbiter_options: ArbiterOptions,
    pub(crate) nodes: [Node; 2],
    pub(crate) packets: Vec<(Submission, Fate)>,
    /// The packet in each slot.
    held: Vec<Option<usize>>,
    /// The time until the answer, and what is added at random. None: the oracle's delay.
    pub(crate) emulation_ns: Option<(u64, u64)>,
    /// Packets that the endpoint sends later than it decides.
    pub(crate) releases: ReleaseQueue<usize>,
    /// Packets that it has sent, in order.
    pub(crate) released: Vec<(usize, Timestamp)>,
    /// When packets were submitted.
    pub(crate) submitted: Vec<Timestamp>,
    pub(crate) switches: u32,
    buffer: Vec<u8>,
    /// Bytes and number of datagrams, both ways.
    pub(crate) traffic: (u64, u64),
}

fn index(arbiter: Arbiter) -> usize {
    match arbiter {
        Arbiter::Primary => 0,
        Arbiter::Secondary => 1,
    }
}

pub(crate) const ARBITERS: [Arbiter; 2] = [Arbiter::Primary, Arbiter::Secondary];

impl Node {
    fn new(options: &ArbiterOptions, number: u32) -> Node {
        Node {
            session: Some(ArbiterSession::new(*options, Session::new(number).unwrap()).unwrap()),
            paused_until: Timestamp(0),
            number,
            emulation: BinaryHeap::new(),
            requests: Vec::new(),
            emulated: HashSet::new(),
        }
    }

    fn next_event(&self) -> Option<Timestamp> {
        let session = self.session.as_ref()?;
        let emulated = self.emulation.peek().map(|Reverse((at, _))| *at);
        let next = [session.next_event(), emulated].into_iter().flatten().min()?;
        Some(next.max(self.paused_until))
    }
}

impl World {
    pub(crate) fn new(
        seed: u64,
        conditions: Conditions,
        endpoint_options: EndpointOptions,
        arbiter_options: ArbiterOptions,
    ) -> World {
        World {
            now: Timestamp(1_000_000),
            random: Random::new(seed),
            wire: Wire::new(conditions),
            endpoint: Endpoint::new(endpoint_options, Session::new(100).unwrap()).unwrap(),
            endpoint_options,
            arbiter_options,
            nodes: [Node::new(&arbiter_options, 200), Node::new(&arbiter_options, 150)],
            packets: Vec::new(),
            held: vec![None; endpoint_options.max_packets as usize],
            emulation_ns: Some((20_000, 200_000)),
            releases: ReleaseQueue::new(None, 0),
            released: Vec::new(),
            submitted: Vec::new(),
            switches: 0,
            buffer: vec![0; 1_472],
            traffic: (0, 0),
        }
    }

    pub(crate) fn submit(&mut self, packet: Submission) {
        let id = self.packets.len();
        self.submitted.push(self.now);
        match self.endpoint.submit(self.now, &packet) {
            Ok(PacketSlot(slot)) => {
                assert_eq!(self.held[slot as usize].replace(id), None, "a slot with a packet is free");
                self.packets.push((packet, Fate::Held));
            }
            Err(_) => self.packets.push((packet, Fate::Refused)),
        }
    }

    /// Restarts the endpoint; its session is later by `step`.
    pub(crate) fn restart_endpoint(&mut self, step: i32) {
        for id in self.held.iter_mut().filter_map(Option::take) {
            self.packets[id].1 = Fate::Restarted;
        }
        let number = self.endpoint.session().number().wrapping_add_signed(step);
        self.endpoint = Endpoint::new(self.endpoint_options, Session::new(number).unwrap()).unwrap();
    }

    /// Restarts an arbiter; its session is later by `step`.
    pub(crate) fn restart_arbiter(&mut self, arbiter: Arbiter, step: i32) {
        let node = &mut self.nodes[index(arbiter)];
        let number = node.session.as_ref().map_or(node.number, |session| session.session().number());
        *node = Node::new(&self.arbiter_options, number.wrapping_add_signed(step));
    }

    pub(crate) fn stop_arbiter(&mut self, arbiter: Arbiter) {
        let node = &mut self.nodes[index(arbiter)];
        node.number = node.session.take().map_or(node.number, |session| session.session().number());
        node.emulation.clear();
    }

    pub(crate) fn held_packets(&self) -> u32 {
        self.endpoint.held_packets()
    }

    pub(crate) fn count(&self, fate: Fate) -> u64 {
        self.packets.iter().filter(|(_, ended)| *ended == fate).count() as u64
    }

    /// The time of the next event.
    pub(crate) fn next_event(&self) -> Timestamp {
        let nodes = self.nodes.iter().filter_map(Node::next_event);
        let others = [self.wire.next_arrival(), self.releases.next_release()];
        nodes
            .chain(others.into_iter().flatten())
            .fold(self.endpoint.next_event(), Timestamp::min)
            .max(self.now)
    }

    /// Does all that happens until `time`, and returns the number of steps.
    pub(crate) fn run_until(&mut self, time: Timestamp) -> u64 {
        let mut steps = 0;
        loop {
            let next = self.next_event();
            if next > time {
                break;
            }
            self.now = next;
            self.step();
            steps += 1;
            assert!(steps < 1_000_000, "the protocol does not come to rest");
        }
        self.now = self.now.max(time);
        steps
    }

    fn step(&mut self) {
        while let Some(delivery) = self.wire.arrived(self.now) {
            self.deliver(delivery);
        }
        self.emulate();
        self.run_endpoint();
        self.release();
        self.run_arbiters();
        assert!(self.endpoint.held_packets() <= self.endpoint_options.max_packets);
    }

    fn deliver(&mut self, delivery: Delivery) {
        let Delivery { path, bytes, is_damaged } = &delivery;
        let result = match *path {
            Path::From(arbiter) => self.deliver_to_endpoint(arbiter, bytes),
            Path::To(arbiter) => {
                let node = &self.nodes[index(arbiter)];
                if node.session.is_none() {
                    return;
                }
                if node.paused_until > self.now {
                    return self.wire.deliver_at(node.paused_until, delivery);
                }
                self.deliver_to_arbiter(arbiter, bytes)
            }
        };
        if *is_damaged {
            assert!(matches!(result, Err(ReceiveError::Malformed(_))), "damaged, but {result:?}");
            self.wire.damaged += 1;
        } else {
            assert!(
                !matches!(result, Err(ReceiveError::Malformed(_) | ReceiveError::Misdirected { .. })),
                "{result:?}"
            );
        }
    }

    fn deliver_to_endpoint(&mut self, from: Arbiter, bytes: &[u8]) -> Result<(), ReceiveError> {
        let World { now, packets, held, releases, released, submitted, .. } = self;
        self.endpoint.receive(*now, from, bytes, |slot, decision| {
            let id = decide(packets, held, slot, decision);
            if let Decision::Answered { verdict, emulated } = decision
                && verdict != Verdict::Drop
            {
                let ideal = submitted[id] + emulated.nanos();
                let sent = releases.push(*now, ideal, packets[id].0.flow, id);
                released.extend(sent.map(|sent| (sent.packet, *now)));
            }
        })
    }

    /// Sends the packets whose time has come.
    fn release(&mut self) {
        while let Some(sent) = self.releases.pop(self.now) {
            self.released.push((sent.packet, self.now));
        }
    }

    fn deliver_to_arbiter(&mut self, to: Arbiter, bytes: &[u8]) -> Result<(), ReceiveError> {
        let (random, now, emulation_ns) = (&mut self.random, self.now, self.emulation_ns);
        let Node { session, emulation, requests, emulated, .. } = &mut self.nodes[index(to)];
        let session = session.as_mut().expect("it is up");
        let evicted = session.counters().flows_evicted;
        let endpoint = thalweg_wire::emulation_protocol::Header::decode(bytes)
            .map_or(0, |header| header.session.number());
        let mut is_new = true;
        let result = session.receive(now, bytes, |id, flow, request| {
            let packet = Submission {
                flow: *flow,
                length: request.length,
                traffic_class: request.traffic_class,
                custom: request.custom,
            };
            is_new &= emulated.insert((endpoint, *flow, request.index));
            let emulated = oracle::emulated(&packet);
            let at = match emulation_ns {
                Some((least, added)) => Timestamp(now.0 + least + random.below(added + 1)),
                None => now + emulated.nanos(),
            };
            emulation.push(Reverse((at, requests.len() as u64)));
            requests.push((id, oracle::verdict(&packet), emulated));
        });
        assert!(is_new || evicted > 0, "a request was emulated twice");
        assert!(session.pending_requests() <= self.arbiter_options.max_requests);
        result
    }

    fn emulate(&mut self) {
        for node in &mut self.nodes {
            let Some(session) = node.session.as_mut().filter(|_| node.paused_until <= self.now) else {
                continue;
            };
            while let Some(Reverse((_, request))) =
                node.emulation.peek().copied().filter(|Reverse((at, _))| *at <= self.now)
            {
                node.emulation.pop();
                let (id, verdict, emulated) = node.requests[request as usize];
                // Obsolete if the endpoint has restarted.
                let _ = session.answer(self.now, id, verdict, emulated);
            }
        }
    }

    fn run_endpoint(&mut self) {
        let (packets, held) = (&mut self.packets, &mut self.held);
        let command = self.endpoint.tick(self.now, |slot, decision| {
            decide(packets, held, slot, decision);
        });
        if let Some(Command::SwitchTo(arbiter)) = command {
            assert_eq!(arbiter, self.endpoint.arbiter());
            self.switches += 1;
        }
        while let Some(transmit) = self.endpoint.transmit(self.now, &mut self.buffer) {
            let bytes = &self.buffer[..transmit.length];
            self.traffic = (self.traffic.0 + bytes.len() as u64, self.traffic.1 + 1);
            self.wire.send(self.now, Path::To(transmit.to), bytes, &mut self.random);
        }
    }

    fn run_arbiters(&mut self) {
        for (arbiter, node) in ARBITERS.into_iter().zip(&mut self.nodes) {
            let Some(session) = node.session.as_mut().filter(|_| node.paused_until <= self.now) else {
                continue;
            };
            session.tick(self.now);
            while let Some(length) = session.transmit(self.now, &mut self.buffer) {
                self.traffic = (self.traffic.0 + length as u64, self.traffic.1 + 1);
                self.wire.send(self.now, Path::From(arbiter), &self.buffer[..length], &mut self.random);
            }
        }
    }

    /// Pauses an arbiter.
    pub(crate) fn pause(&mut self, arbiter: Arbiter, time: Nanos) {
        self.nodes[index(arbiter)].paused_until = self.now + time;
    }
}

/// Checks a decision: the packet is held, so this is the first one, and an answer is that of the oracle. Returns the packet.
fn decide(
    packets: &mut [(Submission, Fate)],
    held: &mut [Option<usize>],
    slot: PacketSlot,
    decision: Decision,
) -> usize {
    let id = held[slot.0 as usize].take().expect("a decision on a packet that is not held");
    let (packet, fate) = &mut packets[id];
    assert_eq!(*fate, Fate::Held, "packet {id} has been decided before");
    *fate = match decision {
        Decision::Expired => Fate::Expired,
        Decision::Answered { verdict, emulated } => {
            let expected = (oracle::verdict(packet), oracle::emulated(packet));
            assert_eq!((verdict, emulated), expected, "packet {id}");
            match verdict {
                Verdict::Drop => Fate::Dropped,
                _ => Fate::Sent,
            }
        }
    };
    id
}
