//! pFabric's switches (Alizadeh et al., "pFabric: minimal near-optimal datacenter transport", SIGCOMM 2013, section
//! 4.2): small buffers, in which the flow that has least left to send goes first.
//!
//! A packet's priority is what remained of its flow when it was sent. Of a full buffer the packet with the lowest
//! priority is dropped, be it the one that has just come; of equals, the latest. A port finds the packet with the highest
//! priority (of equals, the earliest) and sends the earliest packet of its flow, whose own priority may be lower: else the
//! first packets of a flow would starve while it comes to its end.
//!
//! Everything is found by looking at the whole buffer, as in the paper's hardware: a few dozen numbers side by side.

use thalweg_network::PortIndex;

use super::error::{SchemeError, Settings};
use crate::core::bank::Backlog;
use crate::core::context::Context;
use crate::core::port_set::PortSet;
use crate::fabric::{Reason, Request};
use crate::packet::Packet;
use crate::router::{Enqueue, Headers, OneQueue, Pattern, Schedule, Shape, Store};

/// What remains of a packet's flow, in bytes, this packet included: the less, the more urgent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Remaining;

impl Headers for Remaining {
    type Custom = u32;

    #[inline]
    fn prepare_request(request: &Request) -> u32 {
        request.remaining
    }
}

/// One small buffer a port, in order of arrival.
#[derive(Clone, Debug)]
pub struct SmallBuffers {
    /// Packets at each port.
    waiting: Box<[u32]>,
    /// Packet i of port p is number p * capacity + i, here and in `packets`.
    remaining: Box<[u32]>,
    packets: Box<[Packet<u32>]>,
    backlogged: PortSet,
    capacity: usize,
}

impl SmallBuffers {
    /// Empty buffers for `capacity` packets each.
    pub fn new(ports: usize, capacity: u32) -> Self {
        let capacity = capacity as usize;
        SmallBuffers {
            waiting: vec![0; ports].into_boxed_slice(),
            remaining: vec![0; ports * capacity].into_boxed_slice(),
            packets: vec![Packet::default(); ports * capacity].into_boxed_slice(),
            backlogged: PortSet::new(ports),
            capacity,
        }
    }

    /// What remains of the flows of a port's packets, in order of arrival.
    #[inline]
    pub fn remaining(&self, port: PortIndex) -> &[u32] {
        let base = port.index() * self.capacity;
        &self.remaining[base..][..self.waiting[port.index()] as usize]
    }

    /// A port's packets, in order of arrival.
    #[inline]
    pub fn packets(&self, port: PortIndex) -> &[Packet<u32>] {
        let base = port.index() * self.capacity;
        &self.packets[base..][..self.waiting[port.index()] as usize]
    }

    /// Adds a packet. Says whether there was room.
    #[inline]
    #[must_use = "what finds no room is dropped, and must be counted"]
    pub fn push(&mut self, port: PortIndex, packet: Packet<u32>) -> bool {
        let waiting = self.waiting[port.index()] as usize;
        let room = waiting < self.capacity;
        if room {
            let place = port.index() * self.capacity + waiting;
            self.remaining[place] = packet.custom;
            self.packets[place] = packet;
            self.waiting[port.index()] = waiting as u32 + 1;
            self.backlogged.insert(port);
        }
        room
    }

    /// Takes out packet `index` of a port; those after it move up.
    ///
    /// # Panics
    /// If there is no such packet.
    #[inline]
    pub fn remove(&mut self, port: PortIndex, index: usize) -> Packet<u32> {
        let base = port.index() * self.capacity;
        let waiting = self.waiting[port.index()] as usize;
        let packets = &mut self.packets[base..][..waiting];
        let packet = packets[index];
        if index + 1 < waiting {
            packets.copy_within(index + 1.., index);
            self.remaining[base..][..waiting].copy_within(index + 1.., index);
        }
        self.waiting[port.index()] = waiting as u32 - 1;
        self.backlogged.remove_if(port, waiting == 1);
        packet
    }
}

impl Store for SmallBuffers {
    #[inline]
    fn backlogged(&self) -> &PortSet {
        &self.backlogged
    }

    fn backlog(&self, port: PortIndex) -> Backlog {
        let packets = self.packets(port);
        let bytes = packets.iter().map(|packet| u64::from(packet.length())).sum();
        Backlog { packets: packets.len() as u32, bytes }
    }

    fn take_any(&mut self, port: PortIndex) -> Option<Packet> {
        self.backlogged.contains(port).then(|| self.remove(port, 0).with_custom(()))
    }
}

/// Where the smallest is, the first of equals.
#[inline]
fn first_least(values: &[u32]) -> Option<usize> {
    let least = *values.iter().min()?;
    values.iter().position(|&value| value == least)
}

/// Where the greatest is, the last of equals.
#[inline]
fn last_greatest(values: &[u32]) -> Option<usize> {
    let greatest = *values.iter().max()?;
    values.iter().rposition(|&value| value == greatest)
}

/// Drops the least urgent packet of a full buffer.
#[derive(Clone, Copy, Debug, Default)]
pub struct DropLowest;

impl Enqueue<u32, SmallBuffers> for DropLowest {
    #[inline]
    fn enqueue(
        &mut self,
        packet: Packet<u32>,
        port: PortIndex,
        _queue: usize,
        store: &mut SmallBuffers,
        context: &mut Context<'_>,
    ) {
        if store.push(port, packet) {
            return;
        }
        let remaining = store.remaining(port);
        match last_greatest(remaining).filter(|&lowest| remaining[lowest] > packet.custom) {
            Some(lowest) => {
                let displaced = store.remove(port, lowest);
                context.drop(displaced, port, Reason::Displaced);
                let _room = store.push(port, packet);
            }
            None => context.drop(packet, port, Reason::Full),
        }
    }
}

/// Sends the earliest packet of the most urgent flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct MostUrgentFlow;

impl Schedule<u32, SmallBuffers> for MostUrgentFlow {
    #[inline]
    fn schedule(
        &mut self,
        port: PortIndex,
        store: &mut SmallBuffers,
        _context: &mut Context<'_>,
    ) -> Option<Packet<u32>> {
        let highest = first_least(store.remaining(port))?;
        let packets = store.packets(port);
        let flow = packets[highest].who();
        let earliest = packets[..highest].iter().position(|packet| packet.who() == flow);
        Some(store.remove(port, earliest.unwrap_or(highest)))
    }
}

/// Settings of pFabric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PFabricConfig {
    /// Packets that a port has room for: about twice the bandwidth-delay product (pFabric, section 4.2). The paper's
    /// simulations have 36 kB, 24 full-size packets, for 10 Gbit/s and 14.6 us; 36 packets are that for 22 us.
    pub buffer: u32,
}

impl Default for PFabricConfig {
    fn default() -> Self {
        PFabricConfig { buffer: 36 }
    }
}

impl PFabricConfig {
    /// Looks at every setting.
    ///
    /// # Errors
    /// Names the first that is out of range.
    pub fn validate(&self) -> Result<(), SchemeError> {
        let holds = (1..=4_096).contains(&self.buffer);
        // Every packet of a buffer is looked at for every packet.
        Settings("pfabric").expect("buffer", self.buffer, holds, "1 to 4,096 packets")
    }
}

/// A pFabric router.
pub type PFabric<R> = Pattern<R, OneQueue, DropLowest, MostUrgentFlow, SmallBuffers, Remaining>;

/// Builds a pFabric router.
pub fn p_fabric<R>(route: R, shape: Shape<'_>, config: &PFabricConfig) -> PFabric<R> {
    let store = SmallBuffers::new(shape.ports(), config.buffer);
    Pattern {
        route,
        classify: OneQueue,
        enqueue: DropLowest,
        schedule: MostUrgentFlow,
        store,
        headers: Remaining,
    }
}

#[cfg(test)]
mod tests;
