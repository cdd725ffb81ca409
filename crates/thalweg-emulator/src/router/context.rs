//! What a scheme may use beside its own state: the slot, chance, and where marks and drops are counted.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;
use thalweg_network::{PortIndex, RouterId};

use crate::outcome::{Dropped, Place, Reason};
use crate::packet::Packet;
use crate::ports::tally::Verdicts;
use crate::queues::port_set::PortSet;
use crate::slot::Slot;

/// One router in one slot, as its scheme sees it.
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

    /// Drops a packet that was to leave by `port`.
    #[inline]
    pub fn drop<C>(&mut self, packet: Packet<C>, port: PortIndex, reason: Reason) {
        self.verdicts[port.index()].dropped[reason as usize] += 1;
        self.dropped.push(Dropped {
            packet: packet.with_custom(()),
            place: Place::Port(self.router, port),
            reason,
        });
    }

    /// Drops a packet that no port leads on.
    pub fn drop_unrouted<C>(&mut self, packet: Packet<C>) {
        let place = Place::Router(self.router);
        self.dropped.push(Dropped { packet: packet.with_custom(()), place, reason: Reason::NoRoute });
    }

    /// Marks a packet that is to leave by `port`: congestion experienced (RFC 3168).
    #[inline]
    pub fn mark<C>(&mut self, packet: &mut Packet<C>, port: PortIndex) {
        self.verdicts[port.index()].marked += 1;
        packet.mark();
    }

    /// Marks a packet whose sender takes part in ECN. Of another, says that it cannot: `false`.
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

    /// A number drawn uniformly from [0, 1).
    #[inline]
    pub fn chance(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// 64 random bits. Each router has its own stream of them.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.random.next_u64()
    }
}
