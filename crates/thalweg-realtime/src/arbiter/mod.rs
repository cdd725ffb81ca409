//! The arbiter: emulates a network in real time, and decides on the packets that endpoints hold.
//!
//! ```text
//!   socket ─► Arbiter::receive ─► backlog of each endpoint ─► ArbiterSession ─► slots by the clock
//!   socket ◄─ Arbiter::transmit ◄──────────── answers ◄─ ArbiterSession ◄─ outcomes ─┘
//! ```
//!
//! Source: Ousterhout et al., *Flexplane* (NSDI 2017), sections 3.3, 3.4 and 4.
//!
//! **Guarantees.** Every request of a known endpoint gets one answer: what the emulated network did with its packet, or
//! *drop* if the packet cannot be emulated, which is counted ([`EndpointTally::refused`]). The answer says how long the packet was
//! in the network, by the clock of slots ([`EmulatedDelay`]). Datagrams that are malformed, of unknown endpoints or from other
//! addresses are counted and refused, and the rest continues.
//!
//! **Fairness.** Datagrams wait in a backlog of their endpoint. Each turn takes at most [`Options::datagrams_per_turn`] of each
//! endpoint, in turn, so an endpoint that floods fills its own backlog, and its further datagrams are dropped and counted.
//!
//! **Time.** The caller passes the time since the start of slot 0 from a monotonic clock; the module reads no clock, except
//! [`serve`](serve::serve). Slots follow it by the rules of [`thalweg_emulator::core::pacer`]. In the arbiter's thread, slots are skipped while no packet
//! is in the network, which has the same result, and the thread may sleep. Threads of their own never sleep ([`slots::shards`]).
//!
//! **Memory.** For each endpoint that has joined, that of its session and backlog; 36 bytes for each packet in the network; 32 MB for queue
//! lengths over time, if they are recorded.
//!
//! | module | contents |
//! |---|---|
//! | [`options`] | options |
//! | `peers` | endpoints, their addresses, sessions and backlogs |
//! | `ledger` | the requests of the packets in the network |
//! | [`slots`] | who runs the slots: the arbiter's thread, or others |
//! | [`queue_series`] | queue lengths of some ports over time |
//! | [`report`] | what is counted |
//! | [`watchdog`] | a secondary arbiter waits until the primary is silent |
//! | [`live_status`] | its state while it runs, for a tool that asks |
//! | [`socket`] | many datagrams per system call |
//! | [`serve`](mod@serve) | the thread that alternates between socket and slots |

mod ledger;
pub mod live_status;
pub mod options;
mod peers;
pub mod queue_series;
pub mod report;
pub mod serve;
pub mod slots;
pub mod socket;
pub mod watchdog;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use thalweg_emulator::core::events::{Event, EventQueue};
use thalweg_emulator::packet::{FRAMING, SHORTEST};
use thalweg_emulator::{Fate, Network, Outcome, Packet, Slot};
use thalweg_network::{EndpointId, PortIndex, RouterId};
use thalweg_wire::emulation_protocol::{EmulatedDelay, Flow, Request, SchemeBytes, Session, Verdict};
use thalweg_wire::{Nanos, Timestamp};

use crate::protocol::RequestId;
use ledger::{Entry, Ledger};
pub use live_status::LiveStatus;
pub use options::{Options, OptionsError};
use peers::Peers;
pub use report::{DatagramTally, EndpointReport, EndpointTally, Refused, Report};
use slots::Slots;
use slots::one_thread::OneThread;
pub use slots::shards::Shards;
pub use socket::BatchSocket;
pub use watchdog::{Watchdog, WatchdogOptions};

/// The time between looks for datagrams while the network is empty.
const IDLE_LOOK: Nanos = Nanos::from_millis(1);

/// An arbiter without a socket and without a clock.
pub struct Arbiter {
    options: Options,
    slots: Box<dyn Slots>,
    peers: Peers,
    ledger: Ledger,
    /// The number of endpoints in the topology.
    endpoints: usize,
    /// Requests for the next slot.
    requests: Vec<thalweg_emulator::Request>,
    /// Requests of the current datagram.
    arrived: Vec<(RequestId, Flow, Request)>,
    /// Bytes of the longest packet, framing included.
    longest: u16,
    report: Report,
}

impl Arbiter {
    /// An arbiter of the endpoints of `network`, whose packets have at most `mtu` bytes. `planned` are events in order of slots.
    /// `session` is later than that of any earlier run, as that of [`Session::started_at`].
    ///
    /// # Errors
    /// The first invalid option.
    pub fn new(
        options: Options,
        network: Box<dyn Network>,
        mtu: u16,
        planned: Vec<(Slot, Event)>,
        session: Session,
    ) -> Result<Arbiter, OptionsError> {
        options.check()?;
        let endpoints = network.topology().endpoints().len();
        let slots = OneThread::new(network, planned, &options);
        Ok(Arbiter::with(options, Box::new(slots), endpoints, mtu, session))
    }

    /// An arbiter whose network runs in threads of its own. See [`new`](Arbiter::new).
    ///
    /// # Errors
    /// The first invalid option.
    pub fn with_shards(
        options: Options,
        shards: Shards,
        mtu: u16,
        session: Session,
    ) -> Result<Arbiter, OptionsError> {
        options.check()?;
        let endpoints = shards.endpoints();
        Ok(Arbiter::with(options, Box::new(shards), endpoints, mtu, session))
    }

    fn with(
        options: Options,
        slots: Box<dyn Slots>,
        endpoints: usize,
        mtu: u16,
        session: Session,
    ) -> Arbiter {
        Arbiter {
            slots,
            peers: Peers::new(&options, endpoints, session),
            ledger: Ledger::new(options.max_in_flight),
            endpoints,
            requests: Vec::new(),
            arrived: Vec::new(),
            longest: mtu.saturating_add(FRAMING),
            report: Report::default(),
            options,
        }
    }

    /// Keeps the queue lengths of `ports` over time for the report: the latest [`MAX_SAMPLES`](queue_series::MAX_SAMPLES). Returns
    /// false if the network runs in threads of its own, which do not keep them.
    pub fn record_queues(&mut self, ports: Vec<(RouterId, PortIndex)>) -> bool {
        self.slots.record_queues(ports)
    }

    /// The queue of events that the network takes at the start of its next slot: failures, repairs, new tables.
    pub fn events(&self) -> Arc<EventQueue> {
        self.slots.events()
    }

    /// The options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Takes a datagram. It is processed in a later [`turn`](Arbiter::turn).
    pub fn receive(&mut self, now: Timestamp, from: SocketAddr, bytes: &[u8]) {
        self.peers.receive(now, from, bytes);
    }

    /// Processes some datagrams of each endpoint, and runs the slots that are due. Returns whether a slot has just run, so that the next one
    /// is not due yet. `clock` returns the time since the start of slot 0.
    pub fn turn(&mut self, clock: &mut dyn FnMut() -> Timestamp) -> bool {
        self.process(clock());
        let Arbiter { slots, requests, ledger, peers, report, .. } = self;
        slots.turn(clock, requests, &mut |now, outcome, in_network| {
            let entry = ledger.remove(outcome.packet.id());
            leave(peers, report, &entry, now, outcome, EmulatedDelay::from_nanos(in_network));
        })
    }

    /// Takes the requests of up to [`Options::datagrams_per_turn`] datagrams of each endpoint.
    fn process(&mut self, now: Timestamp) {
        for _ in 0..self.peers.waiting() {
            let Some((endpoint, mut backlog)) = self.peers.next_turn() else { break };
            for _ in 0..self.options.datagrams_per_turn {
                let Some(bytes) = backlog.pop_front() else { break };
                self.datagram(now, endpoint, &bytes);
                self.peers.recycle(bytes);
            }
            self.peers.end_turn(endpoint, backlog);
        }
    }

    fn datagram(&mut self, now: Timestamp, endpoint: u16, bytes: &[u8]) {
        let Arbiter { peers, arrived, .. } = self;
        let Some(peer) = peers.get(endpoint) else { return };
        arrived.clear();
        // Refused datagrams are counted by the session.
        let _ = peer.session.receive(now, bytes, |id, flow, request| arrived.push((id, *flow, *request)));
        let mut arrived = std::mem::take(arrived);
        for (id, flow, request) in arrived.drain(..) {
            self.request(now, endpoint, id, &flow, &request);
        }
        self.arrived = arrived;
    }

    /// Emulates a packet, or refuses it.
    fn request(&mut self, now: Timestamp, endpoint: u16, id: RequestId, flow: &Flow, request: &Request) {
        self.report.requests += 1;
        let tally = self.peers.tally(endpoint);
        tally.requests += 1;
        let length = request.length.saturating_add(FRAMING).max(SHORTEST);
        let refused = match () {
            () if flow.source != endpoint => Some(Refused::Source),
            () if usize::from(flow.destination) >= self.endpoints => Some(Refused::Destination),
            () if length > self.longest => Some(Refused::Length),
            () => None,
        };
        let entry = Entry { endpoint, id, traffic_class: request.traffic_class };
        let number = match refused {
            Some(refused) => Err(refused),
            None => self.ledger.insert(entry).ok_or(Refused::Full),
        };
        match number {
            Ok(number) => {
                let (source, destination) = (EndpointId(flow.source), EndpointId(flow.destination));
                let packet = Packet::new(source, destination, flow.number, number, length)
                    .with_traffic_class(request.traffic_class);
                let remaining = remaining(&request.custom, length);
                self.requests.push(thalweg_emulator::Request { packet, remaining });
            }
            Err(refused) => {
                let tally = self.peers.tally(endpoint);
                tally.refused[refused as usize] += 1;
                let Arbiter { peers, report, .. } = self;
                answer(peers, report, &entry, now, Verdict::Drop, EmulatedDelay::ZERO);
            }
        }
    }

    /// Sends what is due: answers, repeated answers and acknowledgements. `send` gets the address of the endpoint.
    pub fn transmit(&mut self, now: Timestamp, send: impl FnMut(SocketAddr, &[u8])) {
        self.peers.transmit(now, send);
    }

    /// The time of the next [`turn`](Arbiter::turn) and [`transmit`](Arbiter::transmit), if no datagram arrives before.
    pub fn next_event(&self, now: Timestamp) -> Timestamp {
        let slot = match self.is_busy() {
            true => self.slots.next_turn(now),
            false => now + IDLE_LOOK,
        };
        let slot = if self.peers.waiting() > 0 { now } else { slot };
        self.peers.next_event().map_or(slot, |event| event.min(slot))
    }

    /// Whether packets are in the network, so that slots have to start on time.
    pub fn is_busy(&self) -> bool {
        !self.ledger.is_empty()
    }

    /// Whether the network has ended by itself, because a thread failed.
    pub fn has_failed(&self) -> bool {
        self.slots.has_failed()
    }

    /// Ends the network. No turn follows.
    pub fn end(&mut self) {
        self.slots.end();
    }

    /// The state at `now`. `is_active` says whether it decides on packets.
    pub fn live_status(&self, now: Timestamp, is_active: bool) -> LiveStatus {
        let punctuality = self.slots.punctuality();
        LiveStatus {
            is_active,
            is_valid: punctuality.is_valid(&self.options.pace),
            slots: punctuality.slots,
            late_slots: punctuality.late_slots,
            skipped_slots: punctuality.skipped_slots,
            worst: punctuality.worst,
            requests: self.report.requests,
            answers: self.report.answers,
            endpoints: self.peers.present(now) as u64,
        }
    }

    /// Checks that every request was answered once or its packet is in the network, that counters add up, and that tables are within
    /// their limits. For tests.
    ///
    /// # Panics
    /// If that does not hold.
    pub fn check_invariants(&self) {
        let mut in_network: HashMap<u16, u64> = HashMap::new();
        self.ledger.endpoints().for_each(|endpoint| *in_network.entry(endpoint).or_default() += 1);
        assert_eq!(in_network.values().sum::<u64>(), u64::from(self.ledger.len()));
        assert!(self.ledger.len() <= self.ledger.limit());
        assert!(self.requests.len() <= self.ledger.len() as usize);
        self.peers.check_invariants(&in_network);
        let endpoints = self.peers.report();
        let sum = |of: fn(&EndpointReport) -> u64| endpoints.iter().map(of).sum::<u64>();
        assert_eq!(self.report.requests, sum(|one| one.packets.requests));
        assert_eq!(self.report.answers, sum(|one| one.session.answers));
        assert_eq!(self.report.drops.values().sum::<u64>(), sum(|one| one.packets.dropped));
    }

    /// What has been counted until `now`.
    pub fn report(&self, now: Timestamp) -> Report {
        let mut report = Report {
            duration: Nanos(now.0),
            in_flight: self.ledger.len().into(),
            datagrams: self.peers.datagrams,
            endpoints: self.peers.report(),
            ..self.report.clone()
        };
        self.slots.report(&mut report);
        report.is_valid = report.punctuality.is_valid(&self.options.pace);
        report
    }
}

/// A packet has left the network.
fn leave(
    peers: &mut Peers,
    report: &mut Report,
    entry: &Entry,
    now: Timestamp,
    outcome: &Outcome,
    emulated: EmulatedDelay,
) {
    let tally = peers.tally(entry.endpoint);
    let verdict = match outcome.fate {
        Fate::Dropped(place, reason) => {
            tally.dropped += 1;
            *report.drops.entry((place, reason)).or_default() += 1;
            Verdict::Drop
        }
        Fate::Delivered => {
            tally.delivered += 1;
            let verdict = verdict(entry.traffic_class, outcome.packet.traffic_class());
            let is_marked = verdict != Verdict::Send && outcome.packet.traffic_class() & 0b11 == 0b11;
            tally.marked += u64::from(is_marked);
            verdict
        }
    };
    answer(peers, report, entry, now, verdict, emulated);
}

/// Answers a request.
fn answer(
    peers: &mut Peers,
    report: &mut Report,
    entry: &Entry,
    now: Timestamp,
    verdict: Verdict,
    emulated: EmulatedDelay,
) {
    if let Some(peer) = peers.get(entry.endpoint)
        && peer.session.answer(now, entry.id, verdict, emulated).is_ok()
    {
        report.answers += 1;
    }
}

/// The bytes of the flow that are not acknowledged yet: the scheme bytes of a request are four, big-endian, or none.
fn remaining(custom: &SchemeBytes, length: u16) -> u32 {
    match custom.as_slice().first_chunk() {
        Some(bytes) => u32::from_be_bytes(*bytes),
        None => length.into(),
    }
}

/// The answer for a packet that was sent with one traffic class and delivered with another. The scheme bytes of an answer
/// are the new traffic class.
fn verdict(sent: u8, delivered: u8) -> Verdict {
    match delivered {
        same if same == sent => Verdict::Send,
        marked if marked == sent | 0b11 => Verdict::SendMarked,
        other => Verdict::SendWith(SchemeBytes::new(&[other]).expect("one byte fits")),
    }
}

#[cfg(test)]
mod tests;
