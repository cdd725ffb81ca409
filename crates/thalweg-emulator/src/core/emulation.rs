//! A whole network on one core, behind the [`Fabric`] interface.

use thalweg_network::routing::{ForwardingTable, NextHops};
use thalweg_network::topology::Topology;
use thalweg_network::{EndpointId, LinkId, LinkState, PortIndex, RouterId};

use super::blueprint::{Blueprint, BlueprintError};
use super::redirection;
use super::shard::Shard;
use crate::fabric::{Fabric, Network};
use crate::outcome::{Dropped, Fate, Outcome, Request};
use crate::ports::monitor::{Mirrored, MonitorTally};
use crate::ports::queue_span::QueueSpan;
use crate::ports::tally::PortTally;
use crate::queues::backlog::Backlog;
use crate::redirection::{FlowDirection, QueueTallies, RedirectError, Redirected, Release};
use crate::router::classes::ClassCounts;
use crate::router::{Router, RouterPorts, Routing};
use crate::slot::{Slot, SlotClock};

/// A network whose routers all have the same type. Its owner runs it slot by slot.
pub struct Emulation<R: Router> {
    topology: Topology,
    links: LinkState,
    clock: SlotClock,
    shard: Shard<R>,
    dropped: Vec<Dropped>,
}

impl<R: Router> Emulation<R> {
    /// Builds the network. `make` builds each router from its routing and its ports.
    ///
    /// # Errors
    /// See [`BlueprintError`].
    pub fn new(
        blueprint: &Blueprint<'_>,
        make: impl FnMut(Routing, RouterPorts<'_>) -> R,
    ) -> Result<Self, BlueprintError> {
        Ok(Emulation {
            shard: blueprint.build(make)?,
            topology: blueprint.topology.clone(),
            links: LinkState::new(blueprint.topology),
            clock: blueprint.clock,
            dropped: Vec::new(),
        })
    }
}

impl<R: Router> Fabric for Emulation<R> {
    fn clock(&self) -> SlotClock {
        self.clock
    }

    fn now(&self) -> Slot {
        self.shard.now()
    }

    fn inject(&mut self, requests: &[Request]) {
        self.shard.inject(requests.iter().copied());
    }

    fn backlog(&self, endpoint: EndpointId) -> u64 {
        self.shard.interface_backlog(endpoint)
    }

    fn advance(&mut self, outcomes: &mut Vec<Outcome>) {
        self.shard.step();
        self.shard.take_dropped(&mut self.dropped);
        outcomes.extend(
            self.dropped.drain(..).map(|Dropped { packet, place, reason }| Outcome {
                packet,
                fate: Fate::Dropped(place, reason),
            }),
        );
        for batch in self.shard.delivered() {
            let delivered = |packet| Outcome { packet: R::prepare_to_send(packet), fate: Fate::Delivered };
            outcomes.extend(batch.iter().map(delivered));
        }
    }
}

impl<R: Router> Network for Emulation<R> {
    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn links(&self) -> &LinkState {
        &self.links
    }

    fn fail(&mut self, link: LinkId) {
        if self.links.fail(link) == Ok(true) {
            self.shard.fail(self.topology.links()[link.index()].ends);
        }
    }

    fn repair(&mut self, link: LinkId) {
        if self.links.repair(link) == Ok(true) {
            self.shard.repair(self.topology.links()[link.index()].ends);
        }
    }

    fn rewire(&mut self) {
        let next_hops = NextHops::new(&self.topology, &self.links);
        self.shard.rewire(&next_hops.expect("the network was built with as many"));
    }

    fn set_forwarding(&mut self, router: RouterId, table: Option<ForwardingTable>) {
        self.shard.router_mut(router).scheme.set_forwarding(table);
    }

    fn port_backlog(&self, router: RouterId, port: PortIndex) -> Backlog {
        self.shard.backlog(router, port)
    }

    fn watch_queue(&mut self, router: RouterId, port: PortIndex) {
        self.shard.watch_queue(router, port);
    }

    fn take_queue_span(&mut self, router: RouterId, port: PortIndex) -> QueueSpan {
        self.shard.take_queue_span(router, port)
    }

    fn take_classes(&mut self, router: RouterId, port: PortIndex, into: &mut Vec<ClassCounts>) {
        self.shard.take_classes(router, port, into);
    }

    fn port_tally(&self, router: RouterId, port: PortIndex) -> PortTally {
        self.shard.port_tally(router, port)
    }

    fn interface_tally(&self, endpoint: EndpointId) -> PortTally {
        self.shard.interface_tally(endpoint)
    }

    fn monitor_tally(&self, router: RouterId) -> Option<MonitorTally> {
        self.shard.monitor_tally(router)
    }

    fn take_mirrored(&mut self, into: &mut Vec<Mirrored>) {
        self.shard.take_mirrored(into);
    }

    fn redirect(&mut self, flow: FlowDirection) -> Result<(), RedirectError> {
        redirection::redirect(std::slice::from_mut(&mut self.shard), flow)
    }

    fn release(&mut self, flow: FlowDirection, if_packets: Option<u64>) -> Release {
        let first = (0, self.topology.router_of(flow.source));
        redirection::release(std::slice::from_mut(&mut self.shard), first, flow, if_packets)
    }

    fn redirected(&mut self, flow: FlowDirection) -> Option<Redirected> {
        redirection::redirected(&mut self.shard, self.topology.router_of(flow.source), flow)
    }

    fn queue_tallies(&mut self, router: RouterId, port: PortIndex) -> Option<QueueTallies> {
        redirection::queue_tallies(&mut self.shard, router, port)
    }

    fn skip_to(&mut self, next: Slot) {
        self.shard.skip_to(next);
    }

    fn in_flight(&self) -> u64 {
        self.shard.in_flight()
    }
}
