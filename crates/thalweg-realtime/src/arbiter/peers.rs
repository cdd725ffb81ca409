//! The endpoints of an arbiter: their addresses, sessions and backlogs.
//!
//! An endpoint joins with its first valid datagram, and its number belongs to that address. Datagrams with the number from
//! other addresses are refused, until the endpoint has been silent for [`Options::leave_after`]. A restarted endpoint may have
//! another port: the same IP address with a later session joins at once. An address has one number at a time.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use thalweg_wire::Timestamp;
use thalweg_wire::emulation_protocol::{Datagram, Direction, Header, Session};

use super::Options;
use super::report::{DatagramTally, EndpointReport, EndpointTally};
use crate::protocol::{ArbiterOptions, ArbiterSession};

/// An endpoint that has joined.
pub(super) struct Peer {
    pub(super) session: ArbiterSession,
    address: SocketAddr,
    /// Whether the address is still its own: after it has left, another endpoint may take it.
    has_address: bool,
    /// The latest session of the endpoint.
    endpoint_session: Session,
    heard_at: Timestamp,
    backlog: VecDeque<Vec<u8>>,
    /// Whether it is in the line of endpoints with a backlog.
    is_in_line: bool,
    tally: EndpointTally,
}

/// All endpoints.
pub(super) struct Peers {
    options: Options,
    session: Session,
    /// By number; none before it has joined.
    peers: Vec<Option<Box<Peer>>>,
    /// The numbers of endpoints that have joined.
    joined: Vec<u16>,
    /// By address. An endpoint that has left may have lost its address to another.
    numbers: HashMap<SocketAddr, u16>,
    /// Endpoints with a backlog, in the order of their turns.
    line: VecDeque<u16>,
    /// Buffers that are not in use.
    buffers: Vec<Vec<u8>>,
    /// Where a datagram is written.
    buffer: Box<[u8]>,
    pub(super) datagrams: DatagramTally,
}

/// Buffers that are kept.
const BUFFERS: usize = 4_096;

impl Peers {
    pub(super) fn new(options: &Options, endpoints: usize, session: Session) -> Peers {
        Peers {
            options: *options,
            session,
            peers: (0..endpoints).map(|_| None).collect(),
            joined: Vec::new(),
            numbers: HashMap::new(),
            line: VecDeque::new(),
            buffers: Vec::new(),
            buffer: vec![0; options.session.link.max_datagram].into(),
            datagrams: DatagramTally::default(),
        }
    }

    /// Appends a datagram to the backlog of its endpoint.
    pub(super) fn receive(&mut self, now: Timestamp, from: SocketAddr, bytes: &[u8]) {
        self.datagrams.received += 1;
        let Ok(header) = Header::decode(bytes) else {
            self.datagrams.malformed += 1;
            return;
        };
        let number = header.endpoint;
        if usize::from(number) >= self.peers.len() {
            self.datagrams.unknown_endpoint += 1;
            return;
        }
        let is_known = self.peers[usize::from(number)]
            .as_ref()
            .is_some_and(|peer| peer.has_address && peer.address == from);
        if !is_known && !self.join(now, from, &header, bytes) {
            return;
        }
        let Some(peer) = &mut self.peers[usize::from(number)] else { return };
        peer.heard_at = now;
        if header.session.is_later_than(peer.endpoint_session) {
            peer.endpoint_session = header.session;
        }
        if peer.backlog.len() >= self.options.backlog {
            self.datagrams.flooded += 1;
            peer.tally.flooded += 1;
            return;
        }
        let mut buffer = self.buffers.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        peer.backlog.push_back(buffer);
        if !peer.is_in_line {
            peer.is_in_line = true;
            self.line.push_back(number);
        }
    }

    /// Whether the sender of a datagram from an address that is new for the endpoint may join as it.
    fn join(&mut self, now: Timestamp, from: SocketAddr, header: &Header, bytes: &[u8]) -> bool {
        // An endpoint whose datagram is damaged might join under a wrong number.
        if header.direction != Direction::ToArbiter || Datagram::decode(bytes).is_err() {
            self.datagrams.malformed += 1;
            return false;
        }
        let number = header.endpoint;
        let has_left = |peer: &Peer| now > peer.heard_at + self.options.leave_after;
        if let Some(&other) = self.numbers.get(&from)
            && self.peers[usize::from(other)].as_ref().is_some_and(|peer| !has_left(peer))
        {
            self.datagrams.wrong_number += 1;
            return false;
        }
        if let Some(peer) = &mut self.peers[usize::from(number)] {
            let is_restart =
                peer.address.ip() == from.ip() && header.session.is_later_than(peer.endpoint_session);
            if !is_restart && !has_left(peer) {
                self.datagrams.wrong_address += 1;
                peer.tally.wrong_address += 1;
                return false;
            }
            if peer.has_address {
                self.numbers.remove(&peer.address);
            }
            (peer.address, peer.has_address) = (from, true);
            peer.tally.joined += 1;
        } else {
            let options = ArbiterOptions { endpoint: number, ..self.options.session };
            let peer = Peer {
                session: ArbiterSession::new(options, self.session).expect("the options have been checked"),
                address: from,
                has_address: true,
                endpoint_session: header.session,
                heard_at: now,
                backlog: VecDeque::new(),
                is_in_line: false,
                tally: EndpointTally { joined: 1, ..EndpointTally::default() },
            };
            self.peers[usize::from(number)] = Some(Box::new(peer));
            self.joined.push(number);
        }
        // The endpoint that had the address has left.
        if let Some(former) = self.numbers.insert(from, number)
            && former != number
            && let Some(peer) = &mut self.peers[usize::from(former)]
        {
            peer.has_address = false;
        }
        true
    }

    /// The number of endpoints that have not left.
    pub(super) fn present(&self, now: Timestamp) -> usize {
        let joined = self.joined.iter().filter_map(|number| self.peers[usize::from(*number)].as_ref());
        joined.filter(|peer| now <= peer.heard_at + self.options.leave_after).count()
    }

    /// The number of endpoints with a backlog.
    pub(super) fn waiting(&self) -> usize {
        self.line.len()
    }

    /// The next endpoint with a backlog, and its backlog, until [`end_turn`](Peers::end_turn).
    pub(super) fn next_turn(&mut self) -> Option<(u16, VecDeque<Vec<u8>>)> {
        let number = self.line.pop_front()?;
        let peer = self.get(number)?;
        Some((number, std::mem::take(&mut peer.backlog)))
    }

    /// Returns the backlog of an endpoint. What is left waits for its next turn.
    pub(super) fn end_turn(&mut self, number: u16, backlog: VecDeque<Vec<u8>>) {
        let is_empty = backlog.is_empty();
        if let Some(peer) = self.get(number) {
            peer.backlog = backlog;
            peer.is_in_line = !is_empty;
        }
        if !is_empty {
            self.line.push_back(number);
        }
    }

    /// Keeps a buffer for another datagram.
    pub(super) fn recycle(&mut self, buffer: Vec<u8>) {
        if self.buffers.len() < BUFFERS {
            self.buffers.push(buffer);
        }
    }

    pub(super) fn get(&mut self, number: u16) -> Option<&mut Peer> {
        self.peers[usize::from(number)].as_deref_mut()
    }

    /// The counters of an endpoint that has joined.
    pub(super) fn tally(&mut self, number: u16) -> &mut EndpointTally {
        &mut self.get(number).expect("its request has arrived").tally
    }

    pub(super) fn transmit(&mut self, now: Timestamp, mut send: impl FnMut(SocketAddr, &[u8])) {
        let Peers { peers, joined, buffer, .. } = self;
        for number in joined.iter() {
            let Some(peer) = &mut peers[usize::from(*number)] else { continue };
            if peer.session.next_event().is_none_or(|event| event > now) {
                continue;
            }
            peer.session.tick(now);
            while let Some(length) = peer.session.transmit(now, buffer) {
                if peer.has_address {
                    send(peer.address, &buffer[..length]);
                }
            }
        }
    }

    pub(super) fn next_event(&self) -> Option<Timestamp> {
        let joined = self.joined.iter().filter_map(|number| self.peers[usize::from(*number)].as_ref());
        joined.filter_map(|peer| peer.session.next_event()).min()
    }

    /// Checks that tables agree with each other and with the counters. `in_network` has the packets of each endpoint that are in the network.
    ///
    /// # Panics
    /// If they do not.
    pub(super) fn check_invariants(&self, in_network: &HashMap<u16, u64>) {
        let Options { backlog, session, .. } = self.options;
        let mut decided_on = 0;
        for (number, peer) in (0..).zip(&self.peers) {
            let Some(peer) = peer else {
                assert!(
                    !in_network.contains_key(&number),
                    "packets of endpoint {number}, which never joined"
                );
                continue;
            };
            assert!(
                peer.backlog.len() <= backlog,
                "endpoint {number} has a backlog of {}",
                peer.backlog.len()
            );
            assert_eq!(peer.is_in_line, !peer.backlog.is_empty(), "endpoint {number}");
            let (tally, counters) = (&peer.tally, peer.session.counters());
            // Each request was answered, or is in the network; answered once, or its session has ended.
            let answered = tally.delivered + tally.dropped + tally.refused.iter().sum::<u64>();
            let waiting = in_network.get(&number).copied().unwrap_or(0);
            assert_eq!(tally.requests, answered + waiting, "endpoint {number}: {tally:?}");
            assert_eq!(tally.requests, counters.requests, "endpoint {number}: {counters:?}");
            assert_eq!(
                answered,
                counters.answers + counters.obsolete_answers,
                "endpoint {number}: {counters:?}"
            );
            let ended = counters.acknowledged + counters.abandoned + counters.forgotten;
            let pending = peer.session.pending_requests();
            assert_eq!(counters.requests, ended + u64::from(pending), "endpoint {number}: {counters:?}");
            assert!(pending <= session.max_requests, "endpoint {number}: {pending} requests");
            let datagrams = &counters.datagrams;
            decided_on += datagrams.received + datagrams.malformed + datagrams.misdirected + datagrams.stale;
            decided_on += datagrams.duplicate + counters.no_room + peer.backlog.len() as u64;
        }
        let DatagramTally { received, malformed, unknown_endpoint, wrong_address, wrong_number, flooded } =
            self.datagrams;
        let refused = malformed + unknown_endpoint + wrong_address + wrong_number + flooded;
        assert_eq!(received, refused + decided_on, "{:?}", self.datagrams);
        let owner = |number: u16| self.peers[usize::from(number)].as_ref().map(|peer| peer.address);
        let is_owned = |(address, number): (&SocketAddr, &u16)| owner(*number) == Some(*address);
        assert!(self.numbers.iter().all(is_owned), "{:?}", self.numbers);
        let owners = self.peers.iter().flatten().filter(|peer| peer.has_address).count();
        assert_eq!(owners, self.numbers.len(), "{:?}", self.numbers);
        assert!(self.numbers.len() <= self.joined.len());
        let in_line = self.peers.iter().flatten().filter(|peer| peer.is_in_line).count();
        assert_eq!(self.line.len(), in_line, "each endpoint with a backlog is in the line once");
        assert!(self.buffers.len() <= BUFFERS);
    }

    pub(super) fn report(&self) -> Vec<EndpointReport> {
        let joined = (0..).zip(&self.peers).filter_map(|(number, peer)| Some((number, peer.as_ref()?)));
        joined
            .map(|(endpoint, peer)| EndpointReport {
                endpoint,
                address: peer.address,
                packets: peer.tally,
                session: *peer.session.counters(),
            })
            .collect()
    }
}
