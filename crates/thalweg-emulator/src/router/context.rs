//! What a scheme can use besides its own state: the slot, random numbers, and counters of marks and drops.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;
use thalweg_network::{PortIndex, RouterId};

use crate::outcome::{Dropped, Place, Reason};
use crate::packet::Packet;
use crate::ports::tally::Verdicts;
use crate::queues::port_set::PortSet;
use crate::slot::Slot;

/// One router in one slot, for its scheme.
pub struct Context<'a> {
    /// The slot.
    pub now: Slot,
    pub(crate) router: RouterId,
    pub(crate) random: &'a mut Xoshiro256PlusPlus,
    pub(crate) verdicts: &'a mut [Verdicts],
    pub(crate) down: &'a PortSet,
    pub(crate) any_down: bool,
    pub(crate) dropped: &'a mut Vec<Dropped>,
}

impl Context<'_> {
    /// The router.
    pub fn router(&self) -> RouterId {
        self.router
    }

    /// Drops a packet at `port`.
    #[inline]
    pub fn drop<C>(&mut self, packet: Packet<C>, port: PortIndex, reason: Reason) {
        self.verdicts[port.index()].dropped[reason as usize] += 1;
        self.dropped.push(Dropped {
            packet: packet.with_custom(()),
            place: Place::Port(self.router, port),
            reason,
        });
    }

    /// Drops a packet without a route.
    pub fn drop_unrouted<C>(&mut self, packet: Packet<C>) {
        let place = Place::Router(self.router);
        self.dropped.push(Dropped { packet: packet.with_custom(()), place, reason: Reason::NoRoute });
    }

    /// Marks a packet at `port`: congestion experienced (RFC 3168).
    #[inline]
    pub fn mark<C>(&mut self, packet: &mut Packet<C>, port: PortIndex) {
        self.verdicts[port.index()].marked += 1;
        packet.mark();
    }

    /// Marks a packet if its sender uses ECN. Returns whether it did.
    #[inline]
    #[must_use = "what cannot be marked may have to be dropped"]
    pub fn try_mark<C>(&mut self, packet: &mut Packet<C>, port: PortIndex) -> bool {
        let capable = packet.is_ecn_capable();
        if capable {
            self.mark(packet, port);
        }
        capable
    }

    /// Whether the link at `port` is down.
    #[inline]
    pub fn is_down(&self, port: PortIndex) -> bool {
        self.any_down && self.down.contains(port)
    }

    /// A uniform random number in [0, 1).
    #[inline]
    pub fn chance(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// 64 random bits. Each router has its own sequence.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.random.next_u64()
    }
}
