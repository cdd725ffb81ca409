//! The sending side of a link: a port sends one packet after the other at its link's rate, and each arrives when
//! its last byte has come through.

use thalweg_network::PortIndex;

use crate::packet::Packet;
use crate::ports::lane::Lane;
use crate::ports::tally::Traffic;
use crate::slot::Slot;
use crate::ticks::{Delay, Lag, Pace, Ticks};

/// One port: when it is free, and where its link leads.
#[derive(Clone, Copy, Debug)]
#[repr(C)] // The counters apart, for side by side the compiler takes them for a vector, which costs more than it saves.
pub(crate) struct Port {
    /// When the packets so far will have left it; [`NEVER`], while the link is down.
    pub(crate) free: Ticks,
    sent_packets: u64,
    pub(crate) pace: Pace,
    sent_bytes: u64,
    /// Propagation delay of the link.
    pub(crate) delay: Delay,
    /// The lane that the link leads into.
    pub(crate) lane: u32,
    pub(crate) mirrored: bool,
}

/// When a port is free whose link is down.
pub(crate) const NEVER: Ticks = Ticks(u64::MAX >> 1);

impl Port {
    /// An idle port.
    pub(crate) fn new(pace: Pace, delay: Delay, lane: u32) -> Self {
        Port { free: Ticks(0), sent_packets: 0, pace, sent_bytes: 0, delay, lane, mirrored: false }
    }

    /// Sends `length` bytes as soon as what was sent before has left, not before `start`. Says when the last of them leaves.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, length: u16, start: Ticks) -> Ticks {
        self.free = self.free.max(start) + self.pace.span(length);
        self.sent_packets += 1;
        self.sent_bytes += u64::from(length);
        self.free
    }

    /// What it has sent, or will have, once what waits for it has left.
    pub(crate) fn sent(&self) -> Traffic {
        Traffic { packets: self.sent_packets, bytes: self.sent_bytes }
    }

    /// When a packet that leaves at `finish` is processed at the other end: in which slot, `earliest` or later, and its lag.
    #[inline(always)]
    pub(crate) fn arrival(&self, finish: Ticks, earliest: Slot) -> (Slot, Lag) {
        self.delay.arrival(finish, earliest)
    }
}

/// The copy of a packet that a mirrored port has begun to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copied<C> {
    pub(crate) port: PortIndex,
    pub(crate) packet: Packet<C>,
    /// When its first byte left the port.
    pub(crate) at: Ticks,
}

/// The ports of one router in one slot, ready to send.
pub struct Ports<'a, C> {
    pub(crate) ports: &'a mut [Port],
    pub(crate) lanes: &'a mut [Lane<C>],
    pub(crate) mirrored: &'a mut Vec<Copied<C>>,
    /// The slot.
    pub(crate) now: Slot,
}

impl<C: Copy> Ports<'_, C> {
    /// Number of ports.
    pub fn count(&self) -> usize {
        self.ports.len()
    }

    /// Whether a port can begin to send a packet in this slot: its link is up, and the packets before do not take
    /// up all of it.
    #[inline(always)]
    pub fn is_free(&self, port: PortIndex) -> bool {
        self.ports[port.index()].free < Ticks::start_of(self.now + 1)
    }

    /// Sends a packet, from the time on at which it has arrived and the port is free. It arrives at the other end with its
    /// last byte and is processed there in a later slot.
    #[inline(always)]
    pub fn send(&mut self, port: PortIndex, packet: Packet<C>) {
        let by = &mut self.ports[port.index()];
        let free = by.free;
        let arrived = Ticks::start_of(self.now).before(packet.lag());
        let finish = by.transmit(packet.length(), arrived);
        let (slot, lag) = by.arrival(finish, self.now + 1);
        self.lanes[by.lane as usize].send(slot, packet.with_lag(lag));
        if by.mirrored {
            self.mirrored.push(Copied { port, packet, at: free.max(arrived) });
        }
    }
}
