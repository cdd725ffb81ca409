//! Distributes what the monitor ports of a network send to consumers, one batch per port.

use thalweg_network::{Node, RouterId, Topology};
use thalweg_wire::{Batch, Source};

use super::MirrorSource;
use crate::fabric::Network;
use crate::hosts::segment::Segment;
use crate::ports::monitor::Mirrored;
use crate::slot::SlotClock;

/// A router without a port in the feed.
const NO_PORT: u16 = u16::MAX;

/// The monitor ports of a network. After each slot the feed [collects](MirrorFeed::collect) what they have sent. It
/// [delivers](MirrorFeed::deliver) that to consumers whenever they ask. It allocates nothing per packet.
#[derive(Debug)]
pub struct MirrorFeed<'a> {
    ports: Vec<(RouterId, MirrorSource<'a>)>,
    /// The index in `ports` of each router's port, or [`NO_PORT`].
    port_of: Vec<u16>,
    /// Reused in each slot.
    copies: Vec<Mirrored>,
}

impl<'a> MirrorFeed<'a> {
    /// The monitor ports of `routers`, each once, in a network of this topology and clock. Copies from other routers
    /// are ignored.
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

    /// Collects what monitor ports have sent since the last call, and returns the number of packets. `segment_of`
    /// returns the segment of a packet; it is called once per packet, in the order of sending. Call this after each
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

    /// Gives `consumer` what each port has sent since the last delivery, possibly nothing.
    pub fn deliver(&mut self, mut consumer: impl FnMut(RouterId, Batch<'_>)) {
        for (router, source) in &mut self.ports {
            if let Ok(Some(batch)) = source.next_batch() {
                consumer(*router, batch);
            }
        }
    }

    /// The same for a consumer that may fail. What it did not get is lost.
    ///
    /// # Errors
    /// The first error of the consumer.
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
