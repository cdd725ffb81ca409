//! The side of the arbiter: its session with one endpoint.

use thalweg_wire::Timestamp;
use thalweg_wire::emulation_protocol::{
    Answer, AnswerWriter, Datagram, Direction, EmulatedDelay, FLOW_WINDOW, Flow, HEADER_LENGTH, MAX_ANSWER,
    MAX_BLOCK_HEAD, Request, Session, Verdict,
};
use thiserror::Error;

use super::chains::Chains;
use super::channel::Channel;
use super::flows::FlowTable;
use super::outbox::Outbox;
use super::seen::Seen;
use super::{ArbiterCounters, ArbiterOptions, OptionsError, ReceiveError};

/// The chain of slots without a request.
const FREE: u32 = 0;
/// The chain of slots with a request.
const USED: u32 = 1;
const CHAINS: u32 = 2;

/// A request in emulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId {
    slot: u32,
    /// How often the slot has been used.
    generation: u32,
}

/// The request has been answered already, or is of an earlier session of the endpoint. The answer has no effect, and
/// is counted.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the request has been answered already, or the endpoint has restarted")]
pub struct ObsoleteRequest;

/// A request from its arrival to the acknowledgement of its answer.
#[derive(Clone, Copy)]
struct Slot {
    flow: u32,
    index: u64,
    generation: u32,
    /// The answer, and when it was given.
    answer: Option<(Verdict, EmulatedDelay, Timestamp)>,
}

/// The lowest index of a flow on which the endpoint has not decided, as far as it is known here.
type Base = u64;

/// The side of the arbiter: its session with one endpoint. The [module](super) explains how to drive it. An arbiter
/// has one for each endpoint, and finds it by the [header](thalweg_wire::emulation_protocol::Header::decode).
pub struct ArbiterSession {
    options: ArbiterOptions,
    channel: Channel,
    outbox: Outbox,
    requests: Box<[Slot]>,
    slots: Chains,
    flows: FlowTable<Base>,
    seen: Seen,
    /// Datagrams received or sent: marks of flows.
    datagrams: u64,
    /// The answers of the next datagram: rank of the flow, position, slot.
    batch: Vec<(u32, u32, u32)>,
    counters: ArbiterCounters,
}

impl ArbiterSession {
    /// A session with an endpoint that has not been heard. `session` is later than that of any earlier run of this
    /// arbiter, as that of [`Session::started_at`]. All memory is allocated here.
    ///
    /// # Errors
    /// The first invalid option.
    pub fn new(options: ArbiterOptions, session: Session) -> Result<ArbiterSession, OptionsError> {
        options.check()?;
        let ArbiterOptions { endpoint, link, max_requests, max_flows, .. } = options;
        Ok(ArbiterSession {
            channel: Channel::new(Direction::ToEndpoint, endpoint, session, &link),
            outbox: Outbox::new(max_requests, &link),
            requests: vec![Slot { flow: 0, index: 0, generation: 0, answer: None }; max_requests as usize]
                .into(),
            slots: Chains::full(max_requests, CHAINS),
            flows: FlowTable::new(max_flows),
            seen: Seen::new(max_flows),
            datagrams: 0,
            batch: Vec::with_capacity(link.max_datagram / MAX_ANSWER),
            counters: ArbiterCounters::default(),
            options,
        })
    }

    /// Takes a datagram of the endpoint. Calls `emulate` for each request that has not arrived before, in the
    /// endpoint's order within each flow.
    ///
    /// # Errors
    /// If the datagram is refused. That is counted, and normal after losses and restarts.
    pub fn receive(
        &mut self,
        now: Timestamp,
        bytes: &[u8],
        mut emulate: impl FnMut(RequestId, &Flow, &Request),
    ) -> Result<(), ReceiveError> {
        let datagram = self.accept(now, bytes)?;
        for (flow, base, request) in datagram.requests() {
            if let Some(id) = self.take(flow, base, request.index) {
                emulate(id, &flow, &request);
            }
        }
        if datagram.header.wants_acknowledgement {
            self.channel.acknowledge(now);
        }
        self.counters.datagrams.received += 1;
        Ok(())
    }

    /// Checks that the datagram is valid, of the current sessions, new, and that there is room for it.
    fn accept<'a>(&mut self, now: Timestamp, bytes: &'a [u8]) -> Result<Datagram<'a>, ReceiveError> {
        let counters = &mut self.counters.datagrams;
        let datagram = Datagram::decode(bytes).inspect_err(|_| counters.malformed += 1)?;
        let header = &datagram.header;
        if header.direction != Direction::ToArbiter || header.endpoint != self.options.endpoint {
            counters.misdirected += 1;
            return Err(ReceiveError::Misdirected { expected: self.options.endpoint });
        }
        match self.channel.peer_session() {
            Some(known) if known == header.session => {}
            Some(known) if !header.session.is_later_than(known) => {
                counters.stale += 1;
                // An endpoint whose clock was set back learns from the acknowledgement that it needs a later session.
                if header.wants_acknowledgement {
                    self.channel.acknowledge(now);
                }
                return Err(ReceiveError::Stale);
            }
            known => {
                self.counters.endpoint_restarts += u64::from(known.is_some());
                self.forget();
                self.channel.set_peer_session(Some(header.session));
            }
        }
        self.check_session(header.session, header.peer_session);
        if header.peer_session == Some(self.channel.session())
            && let Some(arrived) = &header.acknowledgement
        {
            let ArbiterSession { outbox, requests, slots, flows, counters, .. } = self;
            outbox.acknowledge(now, arrived, |slot| {
                counters.acknowledged += 1;
                release(requests, slots, flows, slot);
            });
        }
        if self.channel.is_duplicate(header.sequence) {
            self.counters.datagrams.duplicate += 1;
            // The acknowledgement may have been lost.
            if header.wants_acknowledgement {
                self.channel.acknowledge(now);
            }
            return Err(ReceiveError::Duplicate);
        }
        if !self.has_room(&datagram) {
            self.counters.no_room += 1;
            return Err(ReceiveError::NoRoom);
        }
        self.channel.arrived(header.sequence);
        Ok(datagram)
    }

    /// If the endpoint knows a later session of this arbiter, the clock was set back between them: takes an even
    /// later one.
    fn check_session(&mut self, endpoint: Session, known: Option<Session>) {
        if let Some(later) = known.filter(|known| known.is_later_than(self.channel.session())) {
            self.counters.datagrams.sessions_renewed += 1;
            self.forget();
            self.channel.set_session(later.next());
            self.channel.set_peer_session(Some(endpoint));
        }
    }

    /// Whether there are slots for all requests and flows of a datagram that have not arrived before. Its idle flows
    /// become the last to be evicted, so that its new flows do not evict them.
    fn has_room(&mut self, datagram: &Datagram<'_>) -> bool {
        self.datagrams += 1;
        let (mut new_requests, mut new_flows, mut idle) = (0, 0, 0);
        let mut previous = None;
        for (flow, _, request) in datagram.requests() {
            let is_next = previous.replace(flow) != Some(flow);
            let Some(slot) = self.flows.find(&flow) else {
                new_requests += 1;
                new_flows += u32::from(is_next);
                continue;
            };
            new_requests += u32::from(!self.has_seen(slot, request.index));
            let (_, is_new) = self.flows.mark(slot, self.datagrams, &mut 0);
            if is_new && self.flows.is_idle(slot) {
                self.flows.touch(slot);
                idle += 1;
            }
        }
        new_requests <= self.slots.length(FREE) && new_flows <= self.flows.room() - idle
    }

    /// Whether a request has arrived. Beyond the window that is known here, none has.
    fn has_seen(&self, flow: u32, index: u64) -> bool {
        match index.checked_sub(self.flows.get(flow).state) {
            None => true,
            Some(distance) => distance < FLOW_WINDOW && self.seen.contains(flow, index),
        }
    }

    /// Takes a request for which there is room, unless it has arrived before.
    fn take(&mut self, flow: Flow, base: u64, index: u64) -> Option<RequestId> {
        let flow = self.flow(flow, base);
        let known_base = self.flows.state_mut(flow);
        if base > *known_base {
            self.seen.advance(flow, *known_base, base);
            *known_base = base;
        }
        if self.has_seen(flow, index) {
            self.counters.repeated_requests += 1;
            return None;
        }
        self.seen.insert(flow, index);
        self.flows.hold(flow);
        self.counters.requests += 1;
        let slot = self.slots.first(FREE).expect("has_room has counted");
        self.slots.push_back(USED, slot);
        let Slot { generation, .. } = self.requests[slot as usize];
        self.requests[slot as usize] = Slot { flow, index, generation, answer: None };
        Some(RequestId { slot, generation })
    }

    /// The slot of a flow, which may be a new one.
    fn flow(&mut self, flow: Flow, base: u64) -> u32 {
        if let Some(slot) = self.flows.find(&flow) {
            return slot;
        }
        if self.flows.is_full() {
            self.flows.evict().expect("has_room has counted");
            self.counters.flows_evicted += 1;
        }
        let slot = self.flows.insert(flow, base);
        self.seen.reset(slot);
        slot
    }

    /// Forgets all requests and flows.
    fn forget(&mut self) {
        self.outbox.clear();
        while let Some(slot) = self.slots.first(USED) {
            self.counters.forgotten += 1;
            release(&mut self.requests, &mut self.slots, &mut self.flows, slot);
        }
        self.flows.clear();
    }

    /// Takes the answer of the emulation: what happened to the packet, and how long that took.
    ///
    /// # Errors
    /// If the request is unknown: answered already, or of an earlier session of the endpoint.
    pub fn answer(
        &mut self,
        now: Timestamp,
        id: RequestId,
        verdict: Verdict,
        emulated: EmulatedDelay,
    ) -> Result<(), ObsoleteRequest> {
        let request = &mut self.requests[id.slot as usize];
        if request.generation != id.generation || request.answer.is_some() {
            self.counters.obsolete_answers += 1;
            return Err(ObsoleteRequest);
        }
        request.answer = Some((verdict, emulated, now));
        self.outbox.add(now, id.slot);
        self.counters.answers += 1;
        Ok(())
    }

    /// Does what is due: repeats answers of lost datagrams, unless their lifetime has passed.
    pub fn tick(&mut self, now: Timestamp) {
        let ArbiterSession { outbox, requests, slots, flows, counters, .. } = self;
        let lifetime = self.options.answer_lifetime;
        counters.datagrams.timed_out += outbox.time_out(now, |slot| {
            let is_alive = requests[slot as usize].answer.is_some_and(|(.., since)| now <= since + lifetime);
            match is_alive {
                true => counters.answers_repeated += 1,
                false => {
                    counters.abandoned += 1;
                    release(requests, slots, flows, slot);
                }
            }
            is_alive
        });
    }

    /// Writes the next datagram to the start of `buffer`, which has at least [`LinkOptions::max_datagram`] bytes, and
    /// returns its length. None if nothing is to be sent now.
    ///
    /// # Panics
    /// If the buffer is shorter.
    ///
    /// [`LinkOptions::max_datagram`]: super::LinkOptions::max_datagram
    pub fn transmit(&mut self, now: Timestamp, buffer: &mut [u8]) -> Option<usize> {
        let is_due = |time: Option<Timestamp>| time.is_some_and(|time| time <= now);
        if !is_due(self.outbox.send_time()) && !is_due(self.channel.acknowledgement_time()) {
            return None;
        }
        self.select();
        let header = self.channel.header(!self.batch.is_empty());
        let buffer = &mut buffer[..self.options.link.max_datagram];
        let mut writer = AnswerWriter::new(buffer, &header).expect("a datagram is longer than its header");
        for (_, _, slot) in &self.batch {
            let Slot { flow, index, answer, .. } = self.requests[*slot as usize];
            let (verdict, emulated, _) = answer.expect("only answers are in the outbox");
            let answer = Answer { index, verdict, emulated };
            writer.push(&self.flows.get(flow).flow, &answer).expect("selected because it fits");
        }
        let length = writer.finish();
        if !self.batch.is_empty() {
            self.outbox.sent(now, header.sequence, self.batch.iter().map(|(_, _, slot)| *slot));
        }
        self.channel.sent();
        self.counters.datagrams.sent += 1;
        self.counters.datagrams.sent_bytes += length as u64;
        Some(length)
    }

    /// Selects the ready answers that fit into a datagram, the flows in the order of their oldest answer.
    fn select(&mut self) {
        self.batch.clear();
        if !self.outbox.has_room() {
            return;
        }
        self.datagrams += 1;
        let (mut room, mut flows) = (self.options.link.max_datagram - HEADER_LENGTH, 0);
        for slot in self.outbox.ready() {
            let Slot { flow, answer, .. } = &self.requests[slot as usize];
            let (rank, is_new) = self.flows.mark(*flow, self.datagrams, &mut flows);
            let head = if is_new { MAX_BLOCK_HEAD } else { 0 };
            let written = match answer {
                Some((Verdict::SendWith(bytes), ..)) => bytes.len(),
                _ => 0,
            };
            let Some(left) = room.checked_sub(head + MAX_ANSWER + written) else { break };
            room = left;
            self.batch.push((rank, self.batch.len() as u32, slot));
        }
        self.batch.sort_unstable();
    }

    /// The time of the next [`tick`](ArbiterSession::tick) and [`transmit`](ArbiterSession::transmit). It changes
    /// whenever an answer is given, a datagram arrives or is sent.
    pub fn next_event(&self) -> Option<Timestamp> {
        let times =
            [self.outbox.send_time(), self.outbox.timeout_time(), self.channel.acknowledgement_time()];
        times.into_iter().flatten().min()
    }

    /// The number of requests that are emulated or whose answer is not acknowledged yet.
    pub fn pending_requests(&self) -> u32 {
        self.slots.length(USED)
    }

    /// This arbiter's session.
    pub fn session(&self) -> Session {
        self.channel.session()
    }

    /// What has been counted.
    pub fn counters(&self) -> &ArbiterCounters {
        &self.counters
    }
}

/// Ends a request that is not in the outbox: its slot is free.
fn release(requests: &mut [Slot], slots: &mut Chains, flows: &mut FlowTable<Base>, slot: u32) {
    let request = &mut requests[slot as usize];
    request.generation = request.generation.wrapping_add(1);
    slots.push_back(FREE, slot);
    flows.release(request.flow);
}
