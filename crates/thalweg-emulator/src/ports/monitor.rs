//! Monitor ports: what some ports of a router send is sent once more by another, which can carry less than all of
//! it (Planck, section 3.1). What its buffer has no room for is dropped in the router, and counted.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;
use thalweg_network::routing::ecmp;
use thalweg_network::{PortIndex, RouterId};
use thalweg_wire::{BitRate, Bytes};

use crate::packet::Packet;
use crate::ports::port::{Copied, Port};
use crate::ports::tally::Traffic;
use crate::ticks::{Delay, Pace, Ticks};

/// A monitor port as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// The router that it is at.
    pub router: RouterId,
    /// The output ports that are mirrored into it.
    pub ports: Vec<PortIndex>,
    /// Its rate.
    pub rate: BitRate,
    /// Bytes that may wait for it.
    pub buffer: Bytes,
}

/// A packet that a monitor port has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mirrored {
    /// The router.
    pub router: RouterId,
    /// The packet, as it left the port that was mirrored.
    pub packet: Packet,
    /// When its last byte left the monitor port.
    pub at: Ticks,
}

/// What a monitor port has sent and dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MonitorTally {
    /// What it has sent, or will have once what waits for it has left.
    pub sent: Traffic,
    /// What found no room.
    pub dropped: Traffic,
}

/// A monitor port at work. It is first in, first out, so that when a packet leaves is known as soon as it comes.
#[derive(Clone, Debug)]
pub(crate) struct MonitorPort {
    port: Port,
    patience: Ticks,
    dropped: Traffic,
    /// Of its own, so that a network with a monitor port does what it would do without.
    random: Xoshiro256PlusPlus,
}

impl MonitorPort {
    pub(crate) fn new(pace: Pace, patience: Ticks, random: Xoshiro256PlusPlus) -> Self {
        MonitorPort {
            port: Port::new(pace, Delay::default(), 0),
            patience,
            dropped: Traffic::default(),
            random,
        }
    }

    /// Sorts the copies of the slot that begins at `start`: by time while the port is idle; otherwise by port, in an
    /// order of ports drawn anew. In a full buffer the first copy gets the place, and ports that send at full rate keep
    /// their order in time for ever: the last would never be seen.
    pub(crate) fn order<C>(&mut self, copies: &mut [Copied<C>], start: Ticks) {
        if copies.len() > 1 && self.port.free > start {
            let draw = self.random.next_u64();
            copies.sort_by_key(|copy| ecmp::hash(draw, u64::from(copy.port.0)));
        } else {
            copies.sort_by_key(|copy| copy.at);
        }
    }

    /// Offers a packet at time `start`. Returns when it leaves, `None` if it finds no room.
    pub(crate) fn offer<C>(&mut self, packet: Packet<C>, router: RouterId, start: Ticks) -> Option<Mirrored> {
        if self.port.free > start + self.patience {
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
