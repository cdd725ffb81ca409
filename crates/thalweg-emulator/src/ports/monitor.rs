//! Monitor ports: a router sends what some of its ports send once more through another port, which may have a lower
//! rate (Planck, section 3.1). Copies that do not fit into its buffer are dropped and counted.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;
use thalweg_network::routing::ecmp;
use thalweg_network::{PortIndex, RouterId};
use thalweg_wire::{BitRate, Bytes};

use crate::packet::Packet;
use crate::ports::port::{Copied, Port};
use crate::ports::tally::Traffic;
use crate::ticks::{Delay, Pace, Ticks};

/// The configuration of a monitor port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// Its router.
    pub router: RouterId,
    /// The output ports mirrored to it.
    pub ports: Vec<PortIndex>,
    /// Its rate.
    pub rate: BitRate,
    /// The size of its buffer in bytes.
    pub buffer: Bytes,
}

/// A packet that a monitor port has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mirrored {
    /// The router.
    pub router: RouterId,
    /// The packet, as it left the mirrored port.
    pub packet: Packet,
    /// When its last byte left the monitor port.
    pub at: Ticks,
}

/// What a monitor port has sent and dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MonitorTally {
    /// Packets sent, including those in the buffer.
    pub sent: Traffic,
    /// Packets dropped because the buffer was full.
    pub dropped: Traffic,
}

/// A monitor port. It is first in, first out, so the departure of a packet is known at its arrival.
#[derive(Clone, Debug)]
pub(crate) struct MonitorPort {
    port: Port,
    max_wait: Ticks,
    dropped: Traffic,
    /// Random numbers of its own, so that a monitor port does not change the rest of the network.
    random: Xoshiro256PlusPlus,
}

impl MonitorPort {
    pub(crate) fn new(pace: Pace, max_wait: Ticks, random: Xoshiro256PlusPlus) -> Self {
        MonitorPort {
            port: Port::new(pace, Delay::default(), 0),
            max_wait,
            dropped: Traffic::default(),
            random,
        }
    }

    /// Sorts the copies of the slot that starts at `start`: by time while the port is idle, otherwise by port, in
    /// random order. In a full buffer the first copy gets the place, and ports that send at full rate keep their order
    /// in time forever, so the last port would never be seen.
    pub(crate) fn order<C>(&mut self, copies: &mut [Copied<C>], start: Ticks) {
        if copies.len() > 1 && self.port.free > start {
            let draw = self.random.next_u64();
            copies.sort_by_key(|copy| ecmp::hash(draw, u64::from(copy.port.0)));
        } else {
            copies.sort_by_key(|copy| copy.at);
        }
    }

    /// Offers a packet at time `start`. Returns its departure, `None` if the buffer is full.
    pub(crate) fn offer<C>(&mut self, packet: Packet<C>, router: RouterId, start: Ticks) -> Option<Mirrored> {
        if self.port.free > start + self.max_wait {
            self.dropped += Traffic { packets: 1, bytes: u64::from(packet.length()) };
            return None;
        }
        let at = self.port.transmit(packet.length(), start);
        Some(Mirrored { router, packet: packet.with_custom(()), at })
    }

    pub(crate) fn tally(&self) -> MonitorTally {
        MonitorTally { sent: self.port.sent(), dropped: self.dropped }
    }
}
