//! A network with counters around it: packets in, packets out, and drops by place.
//!
//! Packets without transport use the same network. Their outcomes are hidden from the hosts, which do not know them.

use std::collections::BTreeMap;

use thalweg_emulator::packet::MAX_ID;
use thalweg_emulator::{Fabric, Fate, Network, Outcome, Packet, Place, Reason, Request, Slot, SlotClock};
use thalweg_network::EndpointId;

/// The id of packets without transport, if there are hosts too. Hosts count ids from 0.
const OPEN_LOOP_ID: u32 = MAX_ID;

/// The bit that marks flows of packets without transport.
const OPEN_LOOP_FLOW: u32 = 1 << 31;

/// A network with counters.
pub(super) struct Watched {
    /// The network.
    pub(super) network: Box<dyn Network>,
    /// Whether there are both hosts and senders without transport.
    is_shared: bool,
    sent: u64,
    delivered: u64,
    dropped: u64,
    drops: BTreeMap<(Place, Reason), u64>,
}

impl Watched {
    pub(super) fn new(network: Box<dyn Network>, is_shared: bool) -> Watched {
        Watched { network, is_shared, sent: 0, delivered: 0, dropped: 0, drops: BTreeMap::new() }
    }

    /// Injects packets without transport, marked if there are hosts too.
    pub(super) fn inject_without_transport(&mut self, requests: &mut [Request]) {
        if self.is_shared {
            for request in requests.iter_mut() {
                request.packet = set_apart(&request.packet);
            }
        }
        self.inject(requests);
    }

    /// Runs slots up to `until` with packets without transport, in a network without hosts.
    pub(super) fn advance_open_loop(
        &mut self,
        until: Slot,
        next: &mut dyn FnMut(Slot, &mut Vec<Request>),
        outcomes: &mut Vec<Outcome>,
    ) {
        let before = outcomes.len();
        let sent = &mut self.sent;
        let mut counted = |slot, requests: &mut Vec<Request>| {
            next(slot, requests);
            *sent += requests.len() as u64;
        };
        self.network.advance_open_loop(until, &mut counted, outcomes);
        for outcome in &outcomes[before..] {
            match outcome.fate {
                Fate::Delivered => self.delivered += 1,
                Fate::Dropped(place, reason) => {
                    *self.drops.entry((place, reason)).or_default() += 1;
                    self.dropped += 1;
                }
            }
        }
    }

    /// Whether this is the flow of packets without transport, if there are hosts.
    pub(super) fn is_without_transport(&self, flow: u32) -> bool {
        self.is_shared && flow & OPEN_LOOP_FLOW != 0
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Packets dropped so far, by place and reason.
    pub(super) fn drops(&self) -> &BTreeMap<(Place, Reason), u64> {
        &self.drops
    }
}

fn set_apart(packet: &Packet) -> Packet {
    let flow = packet.flow() | OPEN_LOOP_FLOW;
    let apart = Packet::new(packet.source(), packet.destination(), flow, OPEN_LOOP_ID, packet.length());
    apart.with_traffic_class(packet.traffic_class()).with_address(packet.address())
}

impl Fabric for Watched {
    fn clock(&self) -> SlotClock {
        self.network.clock()
    }

    fn now(&self) -> Slot {
        self.network.now()
    }

    fn inject(&mut self, requests: &[Request]) {
        self.sent += requests.len() as u64;
        self.network.inject(requests);
    }

    fn backlog(&self, endpoint: EndpointId) -> u64 {
        self.network.backlog(endpoint)
    }

    fn advance(&mut self, outcomes: &mut Vec<Outcome>) {
        let before = outcomes.len();
        self.network.advance(outcomes);
        let new = &outcomes[before..];
        let mut dropped = 0;
        // Drops come first.
        for outcome in new {
            let Fate::Dropped(place, reason) = outcome.fate else { break };
            *self.drops.entry((place, reason)).or_default() += 1;
            dropped += 1;
        }
        self.dropped += dropped;
        self.delivered += new.len() as u64 - dropped;
        if self.is_shared {
            outcomes.retain(|outcome| outcome.packet.id() != OPEN_LOOP_ID);
        }
    }
}
