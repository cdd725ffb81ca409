//! pFabric's switches (Alizadeh et al., "pFabric: minimal near-optimal datacenter transport", SIGCOMM 2013, section
//! 4.2): small buffers that serve the flow with the fewest remaining bytes first.
//!
//! The priority of a packet is the remaining size of its flow when it was sent. A full buffer drops the packet with the
//! lowest priority, possibly the new one; among equals, the latest. A port finds the packet with the highest priority
//! (among equals, the earliest) and sends the earliest packet of its flow, whose own priority may be lower. Otherwise
//! the first packets of a flow would starve until its end.
//!
//! Each operation scans the whole buffer, like the paper's hardware: a few dozen numbers side by side, four at a time
//! and without branches, because buffer lengths are unpredictable.

use std::hint::select_unpredictable;

use thalweg_network::PortIndex;

use super::error::{SchemeError, Settings};
use crate::outcome::{Reason, Request};
use crate::packet::Packet;
use crate::queues::backlog::Backlog;
use crate::queues::port_set::PortSet;
use crate::router::context::Context;
use crate::router::{Enqueue, Headers, OneQueue, Pattern, RouterPorts, Schedule, Store};

/// Remaining bytes of a packet's flow, including this packet. Fewer means more urgent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Remaining;

impl Headers for Remaining {
    type Custom = u32;

    #[inline]
    fn prepare_request(request: &Request) -> u32 {
        request.remaining
    }
}

/// Packets scanned together.
const GROUP: usize = 4;

/// An empty place: less urgent than any packet.
const VACANT: u64 = u64::MAX;

/// The state of one buffer.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    waiting: u32,
    /// The number of the next arrival since the buffer was empty.
    arrivals: u32,
}

/// One small, unordered buffer per port. Packets have arrival numbers.
#[derive(Clone, Debug)]
pub struct SmallBuffers {
    levels: Box<[Level]>,
    /// Remaining bytes (32 bits) and arrival number (32), from the high bits down. The smallest key is sent first, the
    /// largest is dropped first. Packet i of port p has the index p * stride + i, here and below. Empty places are
    /// [`VACANT`].
    keys: Box<[u64]>,
    /// [`Packet::who`].
    flows: Box<[u64]>,
    packets: Box<[Packet<u32>]>,
    backlogged: PortSet,
    capacity: u32,
    stride: usize,
}

impl SmallBuffers {
    /// Empty buffers for `capacity` packets each.
    pub fn new(ports: usize, capacity: u32) -> Self {
        let stride = (capacity as usize).next_multiple_of(GROUP);
        SmallBuffers {
            levels: vec![Level::default(); ports].into_boxed_slice(),
            keys: vec![VACANT; ports * stride].into_boxed_slice(),
            flows: vec![0; ports * stride].into_boxed_slice(),
            packets: vec![Packet::default(); ports * stride].into_boxed_slice(),
            backlogged: PortSet::new(ports),
            capacity,
            stride,
        }
    }

    /// Adds a packet. Returns whether there was room.
    #[inline]
    #[must_use = "what finds no room is dropped, and must be counted"]
    pub fn push(&mut self, port: PortIndex, packet: Packet<u32>) -> bool {
        let Level { waiting, arrivals } = self.levels[port.index()];
        let room = waiting < self.capacity;
        if room {
            let place = port.index() * self.stride + waiting as usize;
            self.keys[place] = u64::from(packet.custom) << 32 | u64::from(arrivals);
            self.flows[place] = packet.who();
            self.packets[place] = packet;
            self.levels[port.index()] = Level { waiting: waiting + 1, arrivals: arrivals + 1 };
            self.backlogged.insert(port);
            if arrivals == u32::MAX - 1 {
                self.renumber(port);
            }
        }
        room
    }

    /// Renumbers the arrivals at a port from 0, after four billion without an empty buffer.
    #[cold]
    fn renumber(&mut self, port: PortIndex) {
        let Level { waiting, arrivals } = &mut self.levels[port.index()];
        let keys = &mut self.keys[port.index() * self.stride..][..*waiting as usize];
        let before: Box<[u32]> = keys.iter().map(|&key| key as u32).collect();
        for key in keys {
            let earlier = before.iter().filter(|&&arrival| arrival < *key as u32).count();
            *key = *key >> 32 << 32 | earlier as u64;
        }
        *arrivals = *waiting;
    }

    /// Takes the earliest packet of the flow with the most urgent packet.
    #[inline]
    pub fn pop(&mut self, port: PortIndex) -> Option<Packet<u32>> {
        let groups = (self.levels[port.index()].waiting as usize).next_multiple_of(GROUP);
        let base = port.index() * self.stride;
        let keys = &self.keys[base..][..groups];
        let flows = &self.flows[base..][..groups];
        let flow = flows[first_least(keys.iter().copied())?];
        // Within the flow, the arrival number decides.
        let arrival = |(&key, &other)| select_unpredictable(other == flow, key & 0xffff_ffff, VACANT);
        let earliest = first_least(keys.iter().zip(flows).map(arrival))?;
        Some(self.remove(port, earliest))
    }

    /// Takes the least urgent packet, among equals the latest, if it is less urgent than one with `remaining` bytes.
    #[inline]
    pub fn displace(&mut self, port: PortIndex, remaining: u32) -> Option<Packet<u32>> {
        let waiting = self.levels[port.index()].waiting as usize;
        let keys = &self.keys[port.index() * self.stride..][..waiting];
        let lowest = *keys.iter().max()?;
        if lowest >> 32 <= u64::from(remaining) {
            return None;
        }
        let place = keys.iter().position(|&key| key == lowest)?;
        Some(self.remove(port, place))
    }

    /// Removes packet `index` of a port. The last packet moves to its place.
    #[inline]
    fn remove(&mut self, port: PortIndex, index: usize) -> Packet<u32> {
        let level = &mut self.levels[port.index()];
        level.waiting -= 1;
        level.arrivals = select_unpredictable(level.waiting == 0, 0, level.arrivals);
        self.backlogged.remove_if(port, level.waiting == 0);
        let base = port.index() * self.stride;
        let (place, last) = (base + index, base + level.waiting as usize);
        let packet = self.packets[place];
        self.packets[place] = self.packets[last];
        self.flows[place] = self.flows[last];
        self.keys[place] = self.keys[last];
        self.keys[last] = VACANT;
        packet
    }
}

/// The index of the smallest value, the first among equals. The number of values is a multiple of [`GROUP`].
#[inline]
fn first_least(values: impl Iterator<Item = u64>) -> Option<usize> {
    let least =
        values.enumerate().reduce(|least, next| select_unpredictable(next.1 < least.1, next, least))?;
    Some(least.0)
}

impl Store for SmallBuffers {
    #[inline]
    fn backlogged(&self) -> &PortSet {
        &self.backlogged
    }

    fn backlog(&self, port: PortIndex) -> Backlog {
        let waiting = self.levels[port.index()].waiting;
        let packets = &self.packets[port.index() * self.stride..][..waiting as usize];
        let bytes = packets.iter().map(|packet| u64::from(packet.length())).sum();
        Backlog { packets: waiting, bytes }
    }

    fn take_any(&mut self, port: PortIndex) -> Option<Packet> {
        self.pop(port).map(|packet| packet.with_custom(()))
    }
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
        match store.displace(port, packet.custom) {
            Some(displaced) => {
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
        store.pop(port)
    }
}

/// Settings of pFabric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PFabricConfig {
    /// The buffer of a port in packets: about twice the bandwidth-delay product (pFabric, section 4.2). The paper's
    /// simulations have 36 kB, 24 full-size packets, for 10 Gbit/s and 14.6 us. 36 packets are that for 22 us.
    pub buffer: u32,
}

impl Default for PFabricConfig {
    fn default() -> Self {
        PFabricConfig { buffer: 36 }
    }
}

impl PFabricConfig {
    /// Checks all settings.
    ///
    /// # Errors
    /// Names the first setting that is out of range.
    pub fn validate(&self) -> Result<(), SchemeError> {
        let holds = (1..=4_096).contains(&self.buffer);
        // Each packet scans the whole buffer.
        Settings("pfabric").expect("buffer", self.buffer, holds, "1 to 4,096 packets")
    }
}

/// A pFabric router.
pub type PFabric<R> = Pattern<R, OneQueue, DropLowest, MostUrgentFlow, SmallBuffers, Remaining>;

/// Builds a pFabric router.
pub fn p_fabric<R>(route: R, ports: RouterPorts<'_>, config: &PFabricConfig) -> PFabric<R> {
    let store = SmallBuffers::new(ports.ports(), config.buffer);
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
