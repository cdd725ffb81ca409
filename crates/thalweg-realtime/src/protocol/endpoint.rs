//! The side of the endpoint: it holds packets, requests decisions, and decides once on each packet.

use std::collections::HashMap;

use thalweg_wire::emulation_protocol::{
    Answer, Datagram, Direction, EmulatedDelay, FLOW_WINDOW, Flow, HEADER_LENGTH, MAX_BLOCK_HEAD,
    MAX_REQUEST, Request, RequestWriter, SchemeBytes, Sequence, Session, Verdict,
};
use thalweg_wire::{Nanos, Timestamp};
use thiserror::Error;

use super::chains::Chains;
use super::channel::Channel;
use super::flows::{Fixed, FlowTable};
use super::outbox::Outbox;
use super::{EndpointCounters, EndpointOptions, OptionsError, ReceiveError};

/// An arbiter is silent only after it has not answered this number of datagrams. So an endpoint that did not run for
/// some time does not blame the arbiter for it.
const MIN_PROBES: u32 = 3;

/// The chain of slots without a packet.
const FREE: u32 = 0;
/// The chain of packets that are held, oldest first.
const HELD: u32 = 1;
const CHAINS: u32 = 2;

/// One of the two arbiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arbiter {
    /// The first, which an endpoint uses when it starts.
    Primary,
    /// The other.
    Secondary,
}

impl Arbiter {
    /// The other arbiter.
    pub const fn other(self) -> Arbiter {
        match self {
            Arbiter::Primary => Arbiter::Secondary,
            Arbiter::Secondary => Arbiter::Primary,
        }
    }
}

/// The number of a packet while it is held, less than [`EndpointOptions::max_packets`]: a place for the packet
/// itself. It is free for another packet after the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketSlot(pub u32);

/// A packet to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Its flow.
    pub flow: Flow,
    /// Bytes from the IP header on.
    pub length: u16,
    /// The traffic class: DSCP in the six high bits, ECN in the two low ones.
    pub traffic_class: u8,
    /// What the scheme's `prepare_request` adds.
    pub custom: SchemeBytes,
}

/// Why a packet was not accepted. The caller drops it, or submits it later. Each is counted.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubmitError {
    /// As many packets are held as allowed.
    #[error("{limit} packets are held, the maximum")]
    Packets {
        /// The limit.
        limit: u32,
    },
    /// As many flows have packets that are held as allowed.
    #[error("{limit} flows have packets that are held, the maximum")]
    Flows {
        /// The limit.
        limit: u32,
    },
    /// The packet would be 4,096 indices after one that is held.
    #[error("a packet of the flow is held for longer than its window of 4,096 packets")]
    Window,
}

/// The decision on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The arbiter has answered: send the packet, or drop it.
    Answered {
        /// What happened to it in the emulated network.
        verdict: Verdict,
        /// How long that took.
        emulated: EmulatedDelay,
    },
    /// No answer came before the deadline: drop the packet.
    Expired,
}

/// What the caller should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// The arbiter in use is silent. From now on datagrams go to this one, first those with all packets that are held.
    SwitchTo(Arbiter),
}

/// A datagram to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// To which arbiter.
    pub to: Arbiter,
    /// Its length at the start of the buffer, in bytes.
    pub length: usize,
}

/// A packet that is held.
#[derive(Clone, Copy)]
struct Held {
    flow: u32,
    request: Request,
    submitted: Timestamp,
}

#[derive(Clone, Copy, Default)]
struct FlowState {
    /// The lowest index without a decision, or `next`.
    base: u64,
    /// The index of the next packet.
    next: u64,
}

/// The side of the endpoint. The [module](super) explains how to drive it.
pub struct Endpoint {
    options: EndpointOptions,
    channel: Channel,
    outbox: Outbox,
    held: Box<[Held]>,
    slots: Chains,
    /// The slot of each packet, by slot of its flow and index.
    by_index: HashMap<(u32, u64), u32, Fixed>,
    flows: FlowTable<FlowState>,
    /// The first index of new flows: no flow that was evicted had it.
    first_index: u64,
    arbiter: Arbiter,
    /// When the last datagram was sent that the arbiter has to acknowledge.
    probed_at: Option<Timestamp>,
    /// When the first such datagram was sent after the arbiter was last heard, and how many were.
    unanswered: Option<(Timestamp, u32)>,
    /// Datagrams with requests.
    datagrams: u64,
    /// The requests of the next datagram: rank of the flow, position, slot.
    batch: Vec<(u32, u32, u32)>,
    counters: EndpointCounters,
}

impl Endpoint {
    /// An endpoint without packets, which uses the primary arbiter. `session` is later than that of any earlier run of
    /// this endpoint, as that of [`Session::started_at`]. All memory is allocated here.
    ///
    /// # Errors
    /// The first invalid option.
    pub fn new(options: EndpointOptions, session: Session) -> Result<Endpoint, OptionsError> {
        options.check()?;
        let EndpointOptions { endpoint, link, max_packets, max_flows, .. } = options;
        let nothing = Request { index: 0, length: 0, traffic_class: 0, custom: SchemeBytes::NONE };
        Ok(Endpoint {
            channel: Channel::new(Direction::ToArbiter, endpoint, session, &link),
            outbox: Outbox::new(max_packets, &link),
            held: vec![Held { flow: 0, request: nothing, submitted: Timestamp(0) }; max_packets as usize]
                .into(),
            slots: Chains::full(max_packets, CHAINS),
            // A map that is at most half full never grows when entries come and go.
            by_index: HashMap::with_capacity_and_hasher(2 * max_packets as usize, Fixed::default()),
            flows: FlowTable::new(max_flows),
            first_index: 0,
            arbiter: Arbiter::Primary,
            probed_at: None,
            unanswered: None,
            datagrams: 0,
            batch: Vec::with_capacity(link.max_datagram / MAX_REQUEST),
            counters: EndpointCounters::default(),
            options,
        })
    }

    /// Takes a packet. The caller holds it under the slot until the decision.
    ///
    /// # Errors
    /// At a limit. Then the packet is not held.
    pub fn submit(&mut self, now: Timestamp, packet: &Submission) -> Result<PacketSlot, SubmitError> {
        if self.slots.is_empty(FREE) {
            self.counters.refused_packets += 1;
            return Err(SubmitError::Packets { limit: self.options.max_packets });
        }
        let flow = self.flow(packet.flow)?;
        let state = self.flows.state_mut(flow);
        if state.next - state.base >= FLOW_WINDOW {
            self.counters.refused_window += 1;
            return Err(SubmitError::Window);
        }
        let index = state.next;
        state.next += 1;
        self.flows.hold(flow);
        let slot = self.slots.first(FREE).expect("not empty");
        self.slots.push_back(HELD, slot);
        let Submission { length, traffic_class, custom, .. } = *packet;
        let request = Request { index, length, traffic_class, custom };
        self.held[slot as usize] = Held { flow, request, submitted: now };
        self.by_index.insert((flow, index), slot);
        self.outbox.add(now, slot);
        self.counters.submitted += 1;
        Ok(PacketSlot(slot))
    }

    /// The slot of a flow, which may be a new one.
    fn flow(&mut self, flow: Flow) -> Result<u32, SubmitError> {
        if let Some(slot) = self.flows.find(&flow) {
            return Ok(slot);
        }
        if self.flows.is_full() {
            let Some(evicted) = self.flows.evict() else {
                self.counters.refused_flows += 1;
                return Err(SubmitError::Flows { limit: self.options.max_flows });
            };
            self.counters.flows_evicted += 1;
            self.first_index = self.first_index.max(evicted.next);
        }
        Ok(self.flows.insert(flow, FlowState { base: self.first_index, next: self.first_index }))
    }

    /// Takes a datagram of an arbiter. Calls `decide` for each packet on which it decides, in the order of the answers.
    ///
    /// # Errors
    /// If the datagram is refused. That is counted, and normal after losses and restarts.
    pub fn receive(
        &mut self,
        now: Timestamp,
        from: Arbiter,
        bytes: &[u8],
        mut decide: impl FnMut(PacketSlot, Decision),
    ) -> Result<(), ReceiveError> {
        let datagram = self.accept(now, from, bytes)?;
        self.unanswered = None;
        if let Some(arrived) = &datagram.header.acknowledgement {
            // The requests have arrived; their answers decide.
            self.outbox.acknowledge(now, arrived, |_| ());
        }
        let mut previous = None;
        for (flow, answer) in datagram.answers() {
            let slot = match previous {
                Some((same, slot)) if same == flow => slot,
                _ => self.flows.find(&flow),
            };
            previous = Some((flow, slot));
            self.apply(slot, &answer, &mut decide);
        }
        if datagram.header.wants_acknowledgement {
            self.channel.acknowledge(now);
        }
        self.counters.datagrams.received += 1;
        Ok(())
    }

    /// Checks that the datagram is valid, of the current sessions, and new.
    fn accept<'a>(
        &mut self,
        now: Timestamp,
        from: Arbiter,
        bytes: &'a [u8],
    ) -> Result<Datagram<'a>, ReceiveError> {
        let counters = &mut self.counters.datagrams;
        let datagram = Datagram::decode(bytes).inspect_err(|_| counters.malformed += 1)?;
        let header = &datagram.header;
        if header.direction != Direction::ToEndpoint || header.endpoint != self.options.endpoint {
            counters.misdirected += 1;
            return Err(ReceiveError::Misdirected { expected: self.options.endpoint });
        }
        if from != self.arbiter || header.peer_session != Some(self.channel.session()) {
            counters.stale += 1;
            let later = header.peer_session.filter(|known| known.is_later_than(self.channel.session()));
            if let Some(later) = later.filter(|_| from == self.arbiter) {
                counters.sessions_renewed += 1;
                self.channel.set_session(later.next());
                self.request_all_again(now);
            }
            return Err(ReceiveError::Stale);
        }
        match self.channel.peer_session() {
            Some(known) if known == header.session => {}
            Some(known) if !header.session.is_later_than(known) => {
                counters.stale += 1;
                return Err(ReceiveError::Stale);
            }
            known => {
                self.channel.set_peer_session(Some(header.session));
                if known.is_some() {
                    self.counters.arbiter_restarts += 1;
                    self.request_all_again(now);
                }
            }
        }
        if self.channel.is_duplicate(header.sequence) {
            self.counters.datagrams.duplicate += 1;
            // The acknowledgement may have been lost.
            if header.wants_acknowledgement {
                self.channel.acknowledge(now);
            }
            return Err(ReceiveError::Duplicate);
        }
        self.channel.arrived(header.sequence);
        Ok(datagram)
    }

    fn apply(&mut self, flow: Option<u32>, answer: &Answer, decide: &mut impl FnMut(PacketSlot, Decision)) {
        let Answer { index, verdict, emulated } = *answer;
        let slot = flow.and_then(|flow| self.by_index.get(&(flow, index)));
        let Some(&slot) = slot else {
            self.counters.unmatched_answers += 1;
            return;
        };
        self.settle(slot);
        match verdict {
            Verdict::Drop => self.counters.dropped += 1,
            Verdict::Send | Verdict::SendMarked | Verdict::SendWith(_) => self.counters.sent += 1,
        }
        decide(PacketSlot(slot), Decision::Answered { verdict, emulated });
    }

    /// Ends a packet: its slot is free.
    fn settle(&mut self, slot: u32) {
        let Held { flow, request: Request { index, .. }, .. } = self.held[slot as usize];
        self.outbox.remove(slot);
        self.slots.push_back(FREE, slot);
        self.by_index.remove(&(flow, index));
        let FlowState { base, next } = self.flows.state_mut(flow);
        if index == *base {
            let undecided = (index + 1..*next).find(|index| self.by_index.contains_key(&(flow, *index)));
            *base = undecided.unwrap_or(*next);
        }
        self.flows.release(flow);
    }

    /// Sends all requests to an arbiter that knows none.
    fn request_all_again(&mut self, now: Timestamp) {
        self.counters.requests_repeated += u64::from(self.slots.length(HELD) - self.outbox.ready_count());
        let slots = &self.slots;
        let held = std::iter::successors(slots.first(HELD), |slot| slots.after(*slot));
        self.outbox.restart(now, held);
        self.probed_at = None;
    }

    /// Does what is due: drops packets whose deadline has passed, and calls `decide` for each; repeats requests of
    /// lost datagrams; replaces a silent arbiter. Hand over all datagrams that have arrived before, lest their sender
    /// seems silent.
    pub fn tick(&mut self, now: Timestamp, mut decide: impl FnMut(PacketSlot, Decision)) -> Option<Command> {
        while let Some(slot) = self.slots.first(HELD).filter(|slot| self.deadline_of(*slot) <= now) {
            self.settle(slot);
            self.counters.expired += 1;
            decide(PacketSlot(slot), Decision::Expired);
        }
        let mut repeated = 0;
        self.counters.datagrams.timed_out += self.outbox.time_out(now, |_| {
            repeated += 1;
            true
        });
        self.counters.requests_repeated += repeated;
        self.silence_time().filter(|time| *time <= now)?;
        self.arbiter = self.arbiter.other();
        self.counters.switches += 1;
        self.unanswered = None;
        self.channel.set_peer_session(None);
        self.request_all_again(now);
        Some(Command::SwitchTo(self.arbiter))
    }

    /// Writes the next datagram to the start of `buffer`, which has at least [`LinkOptions::max_datagram`] bytes.
    /// None if nothing is to be sent now.
    ///
    /// # Panics
    /// If the buffer is shorter.
    ///
    /// [`LinkOptions::max_datagram`]: super::LinkOptions::max_datagram
    pub fn transmit(&mut self, now: Timestamp, buffer: &mut [u8]) -> Option<Transmit> {
        let is_due = |time: Option<Timestamp>| time.is_some_and(|time| time <= now);
        let is_keep_alive = is_due(Some(self.keep_alive_time()));
        if !is_keep_alive && !is_due(self.outbox.send_time()) && !is_due(self.channel.acknowledgement_time())
        {
            return None;
        }
        self.select();
        let is_probe = is_keep_alive || !self.batch.is_empty();
        let sequence = self.channel.header(is_probe).sequence;
        let length = self.write(is_probe, &mut buffer[..self.options.link.max_datagram]);
        if is_probe {
            self.probed(now, sequence);
        }
        self.channel.sent();
        self.counters.datagrams.sent += 1;
        self.counters.datagrams.sent_bytes += length as u64;
        Some(Transmit { to: self.arbiter, length })
    }

    /// Selects the ready requests that fit into a datagram, the flows in the order of their oldest request.
    fn select(&mut self) {
        self.batch.clear();
        if !self.outbox.has_room() {
            return;
        }
        self.datagrams += 1;
        let (mut room, mut flows) = (self.options.link.max_datagram - HEADER_LENGTH, 0);
        for slot in self.outbox.ready() {
            let Held { flow, request, .. } = &self.held[slot as usize];
            let (rank, is_new) = self.flows.mark(*flow, self.datagrams, &mut flows);
            let head = if is_new { MAX_BLOCK_HEAD } else { 0 };
            let Some(left) = room.checked_sub(head + MAX_REQUEST + request.custom.len()) else { break };
            room = left;
            self.batch.push((rank, self.batch.len() as u32, slot));
        }
        self.batch.sort_unstable();
    }

    /// Writes the selected requests, and returns the length of the datagram.
    fn write(&self, wants_acknowledgement: bool, buffer: &mut [u8]) -> usize {
        let header = self.channel.header(wants_acknowledgement);
        let mut writer = RequestWriter::new(buffer, &header).expect("a datagram is longer than its header");
        for (_, _, slot) in &self.batch {
            let Held { flow, request, .. } = &self.held[*slot as usize];
            let flow = self.flows.get(*flow);
            writer.push(&flow.flow, flow.state.base, request).expect("selected because it fits");
        }
        writer.finish()
    }

    /// A datagram has been sent that the arbiter has to acknowledge.
    fn probed(&mut self, now: Timestamp, sequence: Sequence) {
        if self.outbox.has_room() {
            self.outbox.sent(now, sequence, self.batch.iter().map(|(_, _, slot)| *slot));
        }
        self.probed_at = Some(now);
        let (since, probes) = self.unanswered.unwrap_or((now, 0));
        self.unanswered = Some((since, probes.saturating_add(1)));
    }

    fn deadline_of(&self, slot: u32) -> Timestamp {
        self.held[slot as usize].submitted + self.options.deadline
    }

    /// A datagram is due to hear whether the arbiter lives. At once, if it has never been asked.
    fn keep_alive_time(&self) -> Timestamp {
        self.probed_at.map_or(Timestamp(0), |time| time + self.options.keep_alive)
    }

    /// The time at which the arbiter is replaced.
    fn silence_time(&self) -> Option<Timestamp> {
        let (since, probes) = self.unanswered?;
        (self.options.has_secondary && probes >= MIN_PROBES).then_some(since + self.options.silence)
    }

    /// The time of the next [`tick`](Endpoint::tick) and [`transmit`](Endpoint::transmit). It changes whenever a
    /// packet is submitted, a datagram arrives or is sent.
    pub fn next_event(&self) -> Timestamp {
        let deadline = self.slots.first(HELD).map(|slot| self.deadline_of(slot));
        let times = [
            deadline,
            self.outbox.send_time(),
            self.outbox.timeout_time(),
            self.channel.acknowledgement_time(),
            self.silence_time(),
        ];
        times.into_iter().flatten().fold(self.keep_alive_time(), Timestamp::min)
    }

    /// The number of packets that are held.
    pub fn held_packets(&self) -> u32 {
        self.slots.length(HELD)
    }

    /// The arbiter in use.
    pub fn arbiter(&self) -> Arbiter {
        self.arbiter
    }

    /// How long the arbiter in use has not answered.
    pub fn silence(&self, now: Timestamp) -> Nanos {
        self.unanswered.map_or(Nanos::ZERO, |(since, _)| now - since)
    }

    /// The smoothed round-trip time to the arbiter, from a datagram to its acknowledgement (RFC 6298); `None` before the first.
    pub fn round_trip(&self) -> Option<Nanos> {
        self.outbox.round_trip()
    }

    /// This endpoint's session.
    pub fn session(&self) -> Session {
        self.channel.session()
    }

    /// What has been counted.
    pub fn counters(&self) -> &EndpointCounters {
        &self.counters
    }
}
