//! What the monitor ports of a network send, as one batch a port for whoever wants it.

use thalweg_network::{Node, RouterId, Topology};
use thalweg_wire::{Batch, Source};

use super::MirrorSource;
use crate::fabric::Network;
use crate::hosts::segment::Segment;
use crate::ports::monitor::Mirrored;
use crate::slot::SlotClock;

/// A router without a port in the feed.
const NO_PORT: u16 = u16::MAX;

/// The monitor ports of a network. After each slot the feed [collects](MirrorFeed::collect) what they have sent; as often as its
/// consumers like it [delivers](MirrorFeed::deliver) this to them. Nothing is allocated for a packet.
#[derive(Debug)]
pub struct MirrorFeed<'a> {
    ports: Vec<(RouterId, MirrorSource<'a>)>,
    /// By router, where in `ports` its port is, or [`NO_PORT`].
    port_of: Vec<u16>,
    /// Kept from slot to slot.
    copies: Vec<Mirrored>,
}

impl<'a> MirrorFeed<'a> {
    /// The monitor ports of these `routers`, each once, in a network of this topology and clock. What other routers mirror is
    /// left out.
    ///
    /// # Panics
    /// If there is no such router.
    pub fn new(
        topology: &'a Topology,
        clock: SlotClock,
        routers: impl IntoIterator<Item = RouterId>,
    ) -> MirrorFeed<'a> {
        let source = |router| MirrorSource::new(topology, clock, topology.name(Node::Router(router)));
        let ports: Vec<_> = routers.into_iter().map(|router| (router, source(router))).collect();
        let mut port_of = vec![NO_PORT; topology.routers().len()];
        for (port, (router, _)) in (0..).zip(&ports) {
            port_of[router.index()] = port;
        }
        MirrorFeed { ports, port_of, copies: Vec::new() }
    }

    /// Takes what monitor ports have sent since the last call, and says how many packets that is. `segment_of` says what a packet
    /// stands for; it is asked once for each packet, in the order in which routers sent them. To be called after each
    /// slot, while hosts still know their segments.
    pub fn collect<'s>(
        &mut self,
        network: &mut dyn Network,
        mut segment_of: impl FnMut(&Mirrored) -> Option<&'s Segment>,
    ) -> usize {
        let MirrorFeed { ports, port_of, copies } = self;
        network.take_mirrored(copies);
        let mut taken = 0;
        for copy in copies.drain(..) {
            let port = usize::from(port_of[copy.router.index()]);
            if let Some((_, source)) = ports.get_mut(port) {
                source.push(&copy, segment_of(&copy));
                taken += 1;
            }
        }
        taken
    }

    /// Gives `consumer` what each port has sent since the last delivery, which may be nothing.
    pub fn deliver(&mut self, mut consumer: impl FnMut(RouterId, Batch<'_>)) {
        for (router, source) in &mut self.ports {
            if let Ok(Some(batch)) = source.next_batch() {
                consumer(*router, batch);
            }
        }
    }

    /// The same for a consumer that may fail; what it did not get is lost.
    ///
    /// # Errors
    /// The consumer's first.
    pub fn try_deliver<E>(
        &mut self,
        mut consumer: impl FnMut(RouterId, Batch<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut result = Ok(());
        self.deliver(|router, batch| {
            if result.is_ok() {
                result = consumer(router, batch);
            }
        });
        result
    }

    /// A router's port as a packet source, if it is in the feed.
    pub fn source(&mut self, router: RouterId) -> Option<&mut MirrorSource<'a>> {
        let port = usize::from(*self.port_of.get(router.index())?);
        self.ports.get_mut(port).map(|(_, source)| source)
    }
}
