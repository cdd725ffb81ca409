//! The sending side of a link: a port sends one packet after the other at its link's rate, and each arrives when
//! its last byte has come through.

use thalweg_network::PortIndex;

use crate::packet::Packet;
use crate::ports::lane::Lane;
use crate::ports::tally::Traffic;
use crate::ports::ticks::{Pace, Ticks};
use crate::slot::Slot;

/// One port: when it is free, and where its link leads.
#[derive(Clone, Copy, Debug)]
#[repr(C)] // The counters apart, for side by side the compiler takes them for a vector, which costs more than it saves.
pub(crate) struct Port {
    /// When the packets so far will have left it; [`NEVER`], while the link is down.
    pub(crate) free: Ticks,
    sent_packets: u64,
    pub(crate) pace: Pace,
    sent_bytes: u64,
    /// Propagation delay of the link, in slots.
    pub(crate) delay: u32,
    /// The lane that the link leads into.
    pub(crate) lane: u32,
    pub(crate) mirrored: bool,
}

/// When a port is free whose link is down.
pub(crate) const NEVER: Ticks = Ticks(u64::MAX >> 1);

impl Port {
    /// An idle port.
    pub(crate) fn new(pace: Pace, delay: u32, lane: u32) -> Self {
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

    /// The first slot that begins when a packet that leaves at `finish` has arrived at the other end.
    #[inline(always)]
    pub(crate) fn arrival(&self, finish: Ticks) -> Slot {
        finish.slot_after() + u64::from(self.delay)
    }
}

/// The ports of one router in one slot, ready to send.
pub struct Ports<'a, C> {
    pub(crate) ports: &'a mut [Port],
    pub(crate) lanes: &'a mut [Lane<C>],
    pub(crate) mirrored: &'a mut Vec<(PortIndex, Packet<C>)>,
    /// When the slot begins.
    pub(crate) start: Ticks,
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
        self.ports[port.index()].free < self.start + Ticks::SLOT
    }

    /// Sends a packet. It arrives at the other end with its last byte, by the beginning of a later slot.
    #[inline(always)]
    pub fn send(&mut self, port: PortIndex, packet: Packet<C>) {
        let by = &mut self.ports[port.index()];
        let finish = by.transmit(packet.length(), self.start);
        self.lanes[by.lane as usize].send(by.arrival(finish), packet);
        if by.mirrored {
            self.mirrored.push((port, packet));
        }
    }
}
