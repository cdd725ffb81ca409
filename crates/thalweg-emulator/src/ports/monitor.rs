//! Monitor ports: a router copies the output of some of its ports to another port, which may have a lower rate (Planck,
//! section 3.1). Copies that do not fit into its buffer are dropped and counted.

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

/// What a monitor port has accepted and dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MonitorTally {
    /// Packets accepted: sent, or still in the buffer.
    pub sent: Traffic,
    /// Packets dropped because the buffer was full.
    pub dropped: Traffic,
}

/// A monitor port. It is first in, first out, so the departure of a packet is known at its arrival.
#[derive(Clone, Debug)]
pub(crate) struct MonitorPort {
    port: Port,
    /// The buffer as a time: what it holds, at the port's rate.
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

    /// Offers the copies of the slot that starts at `start` and passes the sent ones to `sent`. A port that has been idle
    /// for a slot sends them in order of time. Otherwise they compete as if they had arrived together, by port in random
    /// order: the first copy gets the free space in a full buffer, and ports that send at full rate keep their times
    /// within the slot forever, so one of them would always get it.
    pub(crate) fn offer<C: Copy>(
        &mut self,
        copies: &mut Vec<Copied<C>>,
        router: RouterId,
        start: Ticks,
        mut sent: impl FnMut(Mirrored),
    ) {
        let idle = self.port.free + Ticks::SLOT <= start;
        if idle {
            copies.sort_by_key(|copy| copy.at);
        } else if copies.len() > 1 {
            let draw = self.random.next_u64();
            copies.sort_by_key(|copy| ecmp::hash(draw, u64::from(copy.port.0)));
        }
        for Copied { packet, at, .. } in copies.drain(..) {
            if self.port.free > start + self.max_wait {
                self.dropped += Traffic { packets: 1, bytes: u64::from(packet.length()) };
            } else {
                let at = self.port.transmit(packet.length(), if idle { at } else { start });
                sent(Mirrored { router, packet: packet.with_custom(()), at });
            }
        }
    }

    pub(crate) fn tally(&self) -> MonitorTally {
        MonitorTally { sent: self.port.sent(), dropped: self.dropped }
    }
}
