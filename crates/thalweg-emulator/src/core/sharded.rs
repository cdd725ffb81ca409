//! A whole network on several cores, behind the [`Network`] interface.
//!
//! Cores run many slots at a time: [`advance_open_loop`](Network::advance_open_loop) takes packets that do not depend on outcomes. Between two such
//! calls, and in [`advance`](Fabric::advance), the network equals that of one core, to the packet.

use std::collections::VecDeque;

use thalweg_network::routing::{ForwardingTable, NextHops};
use thalweg_network::topology::Topology;
use thalweg_network::{EndpointId, LinkId, LinkState, PortIndex, RouterId};

use super::blueprint::{Blueprint, BlueprintError, Crossing};
use super::parallel::{Driver, Pace, Run, lose_arrived};
use super::redirection;
use super::shard::Shard;
use crate::fabric::{Fabric, Network};
use crate::outcome::{Dropped, Fate, Outcome, Request};
use crate::packet::Packet;
use crate::ports::monitor::{Mirrored, MonitorTally};
use crate::ports::queue_span::QueueSpan;
use crate::ports::tally::PortTally;
use crate::queues::backlog::Backlog;
use crate::redirection::{FlowDirection, QueueTallies, RedirectError, Redirected, Release};
use crate::router::classes::ClassCounts;
use crate::router::{Router, RouterPorts, Routing};
use crate::slot::{Slot, SlotClock};

/// A network whose routers all have the same type, on several cores.
pub struct ShardedEmulation<R: Router> {
    topology: Topology,
    links: LinkState,
    clock: SlotClock,
    shards: Vec<Shard<R>>,
    crossings: Vec<Crossing>,
    /// By router, its shard.
    assignment: Vec<usize>,
    /// By shard, requests for the next slot.
    waiting: Vec<VecDeque<(Slot, Request)>>,
    requests: Vec<Request>,
}

impl<R: Router> ShardedEmulation<R> {
    /// Builds the network in this many shards, or in as many as it has routers if that is less. `make` builds each router from its
    /// routing and its ports.
    ///
    /// # Errors
    /// See [`BlueprintError`].
    pub fn new(
        blueprint: &Blueprint<'_>,
        shards: usize,
        make: impl FnMut(Routing, RouterPorts<'_>) -> R,
    ) -> Result<Self, BlueprintError> {
        let routers = blueprint.topology.routers().len();
        let count = shards.clamp(1, routers.max(1));
        // Neighbours in the order of a topology are often neighbours in the network.
        let assignment: Vec<usize> = (0..routers).map(|router| router * count / routers).collect();
        let (shards, crossings) = blueprint.build_sharded(&assignment, make)?;
        Ok(ShardedEmulation {
            topology: blueprint.topology.clone(),
            links: LinkState::new(blueprint.topology),
            clock: blueprint.clock,
            waiting: shards.iter().map(|_| VecDeque::new()).collect(),
            shards,
            crossings,
            assignment,
            requests: Vec::new(),
        })
    }

    fn shard_of(&self, router: RouterId) -> usize {
        self.assignment[router.index()]
    }

    fn enqueue(&mut self, slot: Slot, requests: &[Request]) {
        for request in requests {
            let shard = self.shard_of(self.topology.router_of(request.packet.source()));
            self.waiting[shard].push_back((slot, *request));
        }
    }

    /// Runs slots up to `until` with the packets that wait.
    fn run(&mut self, until: Slot, outcomes: &mut Vec<Outcome>) {
        let start = self.now();
        let mut drivers: Vec<OpenLoop> =
            self.waiting.iter_mut().map(|waiting| OpenLoop::new(start, std::mem::take(waiting))).collect();
        let run = Run {
            topology: &self.topology,
            clock: self.clock,
            crossings: &self.crossings,
            events: &[],
            until,
            pace: Pace::Virtual,
        };
        run.run(&mut self.shards, &mut drivers, |_| ());
        for (driver, shard) in drivers.iter_mut().zip(&mut self.shards) {
            driver.take(shard);
            let dropped = driver.dropped.drain(..);
            outcomes.extend(dropped.map(|Dropped { packet, place, reason }| Outcome {
                packet,
                fate: Fate::Dropped(place, reason),
            }));
        }
        let delivered = drivers.iter_mut().flat_map(|driver| driver.delivered.drain(..));
        outcomes.extend(delivered.map(|packet| Outcome { packet, fate: Fate::Delivered }));
    }
}

/// Injects packets that do not depend on outcomes.
struct OpenLoop {
    /// The first slot, whose deliveries an earlier run has taken.
    start: Slot,
    waiting: VecDeque<(Slot, Request)>,
    delivered: Vec<Packet>,
    dropped: Vec<Dropped>,
}

impl OpenLoop {
    fn new(start: Slot, waiting: VecDeque<(Slot, Request)>) -> OpenLoop {
        OpenLoop { start, waiting, delivered: Vec::new(), dropped: Vec::new() }
    }

    /// Takes the packets that left the shard by the start of its current slot.
    fn take<R: Router>(&mut self, shard: &mut Shard<R>) {
        if shard.now() > self.start {
            let delivered = shard.delivered().flatten();
            self.delivered.extend(delivered.map(R::prepare_to_send));
        }
        shard.take_dropped(&mut self.dropped);
    }
}

impl<R: Router> Driver<R> for OpenLoop {
    fn slot(&mut self, shard: &mut Shard<R>) {
        self.take(shard);
        let now = shard.now();
        while let Some(&(slot, request)) = self.waiting.front()
            && slot <= now
        {
            self.waiting.pop_front();
            shard.inject([request]);
        }
    }
}

impl<R: Router> Fabric for ShardedEmulation<R> {
    fn clock(&self) -> SlotClock {
        self.clock
    }

    fn now(&self) -> Slot {
        self.shards.first().map_or(Slot(0), Shard::now)
    }

    fn inject(&mut self, requests: &[Request]) {
        self.enqueue(self.now(), requests);
    }

    fn backlog(&self, endpoint: EndpointId) -> u64 {
        self.shards[self.shard_of(self.topology.router_of(endpoint))].interface_backlog(endpoint)
    }

    fn advance(&mut self, outcomes: &mut Vec<Outcome>) {
        self.run(self.now() + 1, outcomes);
    }
}

impl<R: Router> Network for ShardedEmulation<R> {
    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn links(&self) -> &LinkState {
        &self.links
    }

    fn fail(&mut self, link: LinkId) {
        if self.links.fail(link) == Ok(true) {
            let ends = self.topology.links()[link.index()].ends;
            self.shards.iter_mut().for_each(|shard| shard.fail(ends));
            for crossing in self.crossings.iter().filter(|crossing| crossing.link == link) {
                lose_arrived(&mut self.shards, crossing);
            }
        }
    }

    fn repair(&mut self, link: LinkId) {
        if self.links.repair(link) == Ok(true) {
            let ends = self.topology.links()[link.index()].ends;
            self.shards.iter_mut().for_each(|shard| shard.repair(ends));
        }
    }

    fn rewire(&mut self) {
        let next_hops = NextHops::new(&self.topology, &self.links);
        let next_hops = next_hops.expect("the network was built with as many");
        self.shards.iter_mut().for_each(|shard| shard.rewire(&next_hops));
    }

    fn set_forwarding(&mut self, router: RouterId, table: Option<ForwardingTable>) {
        let shard = self.shard_of(router);
        self.shards[shard].router_mut(router).scheme.set_forwarding(table);
    }

    fn port_backlog(&self, router: RouterId, port: PortIndex) -> Backlog {
        self.shards[self.shard_of(router)].backlog(router, port)
    }

    fn watch_queue(&mut self, router: RouterId, port: PortIndex) {
        let shard = self.shard_of(router);
        self.shards[shard].watch_queue(router, port);
    }

    fn take_queue_span(&mut self, router: RouterId, port: PortIndex) -> QueueSpan {
        let shard = self.shard_of(router);
        self.shards[shard].take_queue_span(router, port)
    }

    fn take_classes(&mut self, router: RouterId, port: PortIndex, into: &mut Vec<ClassCounts>) {
        let shard = self.shard_of(router);
        self.shards[shard].take_classes(router, port, into);
    }

    fn port_tally(&self, router: RouterId, port: PortIndex) -> PortTally {
        self.shards[self.shard_of(router)].port_tally(router, port)
    }

    fn interface_tally(&self, endpoint: EndpointId) -> PortTally {
        self.shards[self.shard_of(self.topology.router_of(endpoint))].interface_tally(endpoint)
    }

    fn monitor_tally(&self, router: RouterId) -> Option<MonitorTally> {
        self.shards[self.shard_of(router)].monitor_tally(router)
    }

    fn take_mirrored(&mut self, into: &mut Vec<Mirrored>) {
        self.shards.iter_mut().for_each(|shard| shard.take_mirrored(into));
    }

    fn redirect(&mut self, flow: FlowDirection) -> Result<(), RedirectError> {
        redirection::redirect(&mut self.shards, flow)
    }

    fn release(&mut self, flow: FlowDirection, if_packets: Option<u64>) -> Release {
        let router = self.topology.router_of(flow.source);
        let shard = self.shard_of(router);
        redirection::release(&mut self.shards, (shard, router), flow, if_packets)
    }

    fn redirected(&mut self, flow: FlowDirection) -> Option<Redirected> {
        let router = self.topology.router_of(flow.source);
        let shard = self.shard_of(router);
        redirection::redirected(&mut self.shards[shard], router, flow)
    }

    fn queue_tallies(&mut self, router: RouterId, port: PortIndex) -> Option<QueueTallies> {
        let shard = self.shard_of(router);
        redirection::queue_tallies(&mut self.shards[shard], router, port)
    }

    fn in_flight(&self) -> u64 {
        self.shards.iter().map(Shard::in_flight).sum()
    }

    fn advance_open_loop(
        &mut self,
        until: Slot,
        next: &mut dyn FnMut(Slot, &mut Vec<Request>),
        outcomes: &mut Vec<Outcome>,
    ) {
        let mut requests = std::mem::take(&mut self.requests);
        let mut slot = self.now();
        while slot < until {
            requests.clear();
            next(slot, &mut requests);
            self.enqueue(slot, &requests);
            slot = slot + 1;
        }
        self.requests = requests;
        self.run(until, outcomes);
    }
}
