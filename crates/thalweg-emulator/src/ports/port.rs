//! The sending side of a link. A port sends packets back to back at its link's rate, and each arrives with its last
//! byte.

use thalweg_network::PortIndex;

use crate::packet::Packet;
use crate::ports::impairment::Impairment;
use crate::ports::lane::Lane;
use crate::ports::tally::Traffic;
use crate::slot::Slot;
use crate::ticks::{Delay, Lag, Pace, Ticks};

/// A port: when it is free, and where its link leads.
#[derive(Clone, Copy, Debug)]
#[repr(C)] // The counters apart, for side by side the compiler takes them for a vector, which costs more than it saves.
pub(crate) struct Port {
    /// When the packets so far will have left; [`NEVER`] while the link is down.
    pub(crate) free: Ticks,
    sent_packets: u64,
    pub(crate) pace: Pace,
    sent_bytes: u64,
    /// The propagation delay of the link.
    pub(crate) delay: Delay,
    /// The lane of the link.
    pub(crate) lane: u32,
    /// Whether sending takes more than the above: the port is mirrored, or its link impaired.
    pub(crate) is_special: bool,
    pub(crate) is_mirrored: bool,
}

/// The free time of a port whose link is down.
pub(crate) const NEVER: Ticks = Ticks(u64::MAX >> 1);

impl Port {
    /// An idle port.
    pub(crate) fn new(pace: Pace, delay: Delay, lane: u32) -> Self {
        Port {
            free: Ticks(0),
            sent_packets: 0,
            pace,
            sent_bytes: 0,
            delay,
            lane,
            is_special: false,
            is_mirrored: false,
        }
    }

    /// Sends `length` bytes when the port is free, but not before `start`. Returns when the last byte leaves.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, length: u16, start: Ticks) -> Ticks {
        self.free = self.free.max(start) + self.pace.span(length);
        self.sent_packets += 1;
        self.sent_bytes += u64::from(length);
        self.free
    }

    /// What the port has sent, including packets in its queue.
    pub(crate) fn sent(&self) -> Traffic {
        Traffic { packets: self.sent_packets, bytes: self.sent_bytes }
    }

    /// The slot that processes a packet at the other end and its lag, if it leaves at `finish`. The slot starts at
    /// `earliest` or later.
    #[inline(always)]
    pub(crate) fn arrival(&self, finish: Ticks, earliest: Ticks) -> (Slot, Lag) {
        self.delay.arrival(finish, earliest)
    }
}

/// The copy of a packet that a mirrored port has started to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copied<C> {
    pub(crate) port: PortIndex,
    pub(crate) packet: Packet<C>,
    /// When its first byte left the port.
    pub(crate) at: Ticks,
}

/// What the special ports of a router need.
pub(crate) struct Extras<C> {
    /// By port, the impairment of its link.
    pub(crate) impairments: Box<[Impairment]>,
    /// The packets that mirrored ports sent in this slot.
    pub(crate) copies: Vec<Copied<C>>,
    /// The packets lost on links in this slot.
    pub(crate) lost: Vec<(PortIndex, Packet<C>)>,
}

impl<C> Extras<C> {
    /// No port is mirrored, no link impaired.
    pub(crate) fn new(ports: usize) -> Self {
        let impairments = vec![Impairment::default(); ports].into_boxed_slice();
        Extras { impairments, copies: Vec::new(), lost: Vec::new() }
    }
}

/// The ports of a router in one slot.
pub struct Ports<'a, C> {
    pub(crate) ports: &'a mut [Port],
    pub(crate) lanes: &'a mut [Lane<C>],
    pub(crate) extras: &'a mut Extras<C>,
    /// The start of the slot.
    pub(crate) start: Ticks,
}

impl<C: Copy> Ports<'_, C> {
    /// The number of ports.
    pub fn count(&self) -> usize {
        self.ports.len()
    }

    /// Whether a port can start to send in this slot: its link is up, and earlier packets do not take all of it.
    #[inline(always)]
    pub fn is_free(&self, port: PortIndex) -> bool {
        self.ports[port.index()].free < self.start + Ticks::SLOT
    }

    /// Sends a packet as soon as it has arrived and the port is free. It arrives at the other end with its last byte
    /// and is processed there in a later slot.
    #[inline(always)]
    pub fn send(&mut self, port: PortIndex, packet: Packet<C>) {
        let by = &mut self.ports[port.index()];
        let arrived = self.start.before(packet.lag());
        let finish = by.transmit(packet.length(), arrived);
        if by.is_special {
            return self.send_specially(port, packet, finish);
        }
        let (slot, lag) = by.arrival(finish, self.start + Ticks::SLOT);
        self.lanes[by.lane as usize].send(slot, packet.with_lag(lag));
    }

    /// Sends a packet from a mirrored port or over an impaired link. The port has transmitted it. Apart from the common
    /// case, which keeps its registers.
    #[cold]
    #[inline(never)]
    fn send_specially(&mut self, port: PortIndex, packet: Packet<C>, finish: Ticks) {
        let by = &self.ports[port.index()];
        let Extras { impairments, copies, lost } = &mut *self.extras;
        if by.is_mirrored {
            let at = Ticks(finish.0 - by.pace.span(packet.length()).0);
            copies.push(Copied { port, packet, at });
        }
        match impairments[port.index()].arrival(by.delay, finish, self.start + Ticks::SLOT) {
            Some((slot, lag)) => self.lanes[by.lane as usize].send(slot, packet.with_lag(lag)),
            None => lost.push((port, packet)),
        }
    }
}
