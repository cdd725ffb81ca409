//! A small, slow network for tests: a star with one FIFO per interface and output port, links of one packet per slot,
//! marks above a threshold, and scripted losses.

use std::collections::{BTreeSet, VecDeque};

use thalweg_network::{EndpointId, PortIndex, RouterId};
use thalweg_wire::BitRate;

use crate::fabric::Fabric;
use crate::outcome::{Fate, Outcome, Place, Reason, Request};
use crate::packet::{Ecn, Packet};
use crate::slot::{Slot, SlotClock};
use crate::ticks::Lag;

/// Bytes of a full-size packet on the wire, and of a slot.
const SLOT_BYTES: u32 = 1538;

/// The star.
pub(super) struct Star {
    now: Slot,
    interfaces: Vec<Queue>,
    ports: Vec<Queue>,
    /// Full-size packets that a port can queue, and the number from which it marks.
    pub(super) buffer: usize,
    pub(super) marking_threshold: usize,
    /// Slots from the interface to the port, and from the port to the destination.
    pub(super) delay: u64,
    on_links: VecDeque<(Slot, Packet)>,
    arriving: VecDeque<(Slot, Packet)>,
    /// Data packets to drop at their port, by order of arrival there.
    pub(super) losses: BTreeSet<u64>,
    /// Acknowledgements to drop likewise.
    pub(super) ack_losses: BTreeSet<u64>,
    seen: [u64; 2],
    /// Packets lost by script or overflow.
    pub(super) dropped: Vec<Packet>,
    pub(super) highest_queue: usize,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    packets: VecDeque<Packet>,
    credit: u32,
}

impl Queue {
    fn bytes(&self) -> u64 {
        self.packets.iter().map(|packet| u64::from(packet.length())).sum()
    }

    /// Sends the packets of a slot.
    fn drain(&mut self, mut out: impl FnMut(Packet)) {
        self.credit += SLOT_BYTES;
        while let Some(packet) = self.packets.front()
            && u32::from(packet.length()) <= self.credit
        {
            self.credit -= u32::from(packet.length());
            out(*packet);
            self.packets.pop_front();
        }
        if self.packets.is_empty() {
            self.credit = 0;
        }
    }
}

impl Star {
    /// A star with links of 10 Gbit/s, no losses, no marks, and ports for 1000 packets.
    pub(super) fn new(endpoints: usize) -> Star {
        Star {
            now: Slot(0),
            interfaces: vec![Queue::default(); endpoints],
            ports: vec![Queue::default(); endpoints],
            buffer: 1000,
            marking_threshold: usize::MAX,
            delay: 2,
            on_links: VecDeque::new(),
            arriving: VecDeque::new(),
            losses: BTreeSet::new(),
            ack_losses: BTreeSet::new(),
            seen: [0; 2],
            dropped: Vec::new(),
            highest_queue: 0,
        }
    }

    fn is_lost(&mut self, packet: &Packet) -> bool {
        let is_data = packet.length() > 118;
        let number = self.seen[usize::from(is_data)];
        self.seen[usize::from(is_data)] += 1;
        if is_data { self.losses.contains(&number) } else { self.ack_losses.contains(&number) }
    }

    fn enter_port(&mut self, mut packet: Packet, outcomes: &mut Vec<Outcome>) {
        let is_lost = self.is_lost(&packet);
        let port = &mut self.ports[packet.destination().index()];
        let waiting = port.packets.len();
        if is_lost || waiting >= self.buffer {
            let reason = if is_lost { Reason::Early } else { Reason::Full };
            let place = Place::Port(RouterId(0), PortIndex(packet.destination().0));
            self.dropped.push(packet);
            outcomes.push(Outcome { packet, fate: Fate::Dropped(place, reason) });
            return;
        }
        if waiting >= self.marking_threshold && packet.ecn() != Ecn::NotCapable {
            packet.mark();
        }
        self.highest_queue = self.highest_queue.max(waiting + 1);
        port.packets.push_back(packet);
    }
}

impl Fabric for Star {
    fn clock(&self) -> SlotClock {
        SlotClock { slot_bytes: SLOT_BYTES, rate: BitRate(10_000_000_000) }
    }

    fn now(&self) -> Slot {
        self.now
    }

    fn inject(&mut self, requests: &[Request]) {
        for Request { packet, .. } in requests {
            self.interfaces[packet.source().index()].packets.push_back(packet.with_lag(Lag::default()));
        }
    }

    fn backlog(&self, endpoint: EndpointId) -> u64 {
        self.interfaces[endpoint.index()].bytes()
    }

    fn advance(&mut self, outcomes: &mut Vec<Outcome>) {
        let now = self.now;
        while let Some((due, packet)) = self.on_links.front().copied()
            && due <= now
        {
            self.on_links.pop_front();
            self.enter_port(packet, outcomes);
        }
        while let Some((due, packet)) = self.arriving.front().copied()
            && due <= now
        {
            self.arriving.pop_front();
            outcomes.push(Outcome { packet, fate: Fate::Delivered });
        }
        let at_port = now + 1 + self.delay;
        let at_host = now + self.delay;
        // In random order: otherwise the first host's packets would take every place that a full port frees.
        let backwards = now.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 63 == 1;
        for index in 0..self.interfaces.len() {
            let index = if backwards { self.interfaces.len() - 1 - index } else { index };
            self.interfaces[index].drain(|packet| self.on_links.push_back((at_port, packet)));
        }
        for port in &mut self.ports {
            port.drain(|packet| self.arriving.push_back((at_host, packet)));
        }
        self.now = now + 1;
    }
}
