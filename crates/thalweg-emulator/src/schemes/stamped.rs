//! Packets with their arrival times, for schemes that control the delay.

use thalweg_network::PortIndex;

use crate::packet::Packet;
use crate::queues::backlog::{Backlog, Queued};
use crate::queues::fifos::Fifos;
use crate::queues::port_set::PortSet;
use crate::router::Store;
use crate::slot::Slot;

/// A packet and the slot in which it was queued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamped<C = ()> {
    /// The packet.
    pub packet: Packet<C>,
    /// The slot of its arrival.
    pub at: Slot,
}

impl<C> Stamped<C> {
    /// Its queueing delay at `now`, in slots.
    #[inline]
    pub fn sojourn(&self, now: Slot) -> u64 {
        now.0 - self.at.0
    }
}

impl<C: Copy + Default> Queued for Stamped<C> {
    #[inline]
    fn length(&self) -> u64 {
        u64::from(self.packet.length())
    }
}

impl<C: Copy + Default + Send> Store for Fifos<Stamped<C>> {
    #[inline(always)]
    fn backlogged(&self) -> &PortSet {
        Fifos::backlogged(self)
    }

    fn backlog(&self, port: PortIndex) -> Backlog {
        Fifos::backlog(self, port)
    }

    fn take_any(&mut self, port: PortIndex) -> Option<Packet> {
        self.pop(port).map(|stamped| stamped.packet.with_custom(()))
    }
}
