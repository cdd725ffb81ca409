//! The interface of endpoints to a running network of any scheme.
//!
//! [`Endpoints`] are the endpoints of one shard. Before each slot they take the outcomes of their packets and send
//! requests. Outcomes appear at the shard of a packet's *source*, wherever the packet was dropped or delivered, since its
//! sender holds the packet (Ousterhout et al., "Flexplane", NSDI 2017, section 3.1). An implementation of the trait does not see the
//! scheme, other shards or the clock. [`EmulatedHosts`] are one implementation, [`RemoteEndpoints`](remote::RemoteEndpoints) another.
//!
//! **Outcomes between shards** go over a ring for each pair. A full ring does not lose outcomes: they wait at the
//! sender, at most as many as packets are in the network. In virtual time, shards wait for each other before each slot, so that
//! every outcome arrives in the slot after its packet left the network, as with one shard: the results are the same, and slow.
//! In real time nobody waits.
//!
//! **Cost.** Two indirect calls per slot and batch, none per packet.

pub mod entry_slots;
pub mod remote;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rtrb::{Consumer, Producer, RingBuffer};
use thalweg_network::{EndpointId, LinkId, PortIndex, RouterId};
use thalweg_wire::Nanos;

use crate::core::blueprint::{Blueprint, BlueprintError};
use crate::core::events::Event;
use crate::core::occupancy::{Occupancy, Sampler};
use crate::core::pacer::Punctuality;
use crate::core::parallel::{Backoff, Driver, Pace, Run};
use crate::core::shard::Shard;
use crate::fabric::Fabric;
use crate::hosts::Hosts;
use crate::network::ForScheme;
use crate::outcome::{Dropped, Fate, Outcome, Request};
use crate::ports::tally::PortTally;
use crate::router::{Router, RouterPorts, Routing};
use crate::schemes::{Own, Scheme};
use crate::slot::{Slot, SlotClock};
use crate::workloads::Workload;

/// A shard as its endpoints see it in one slot.
pub trait Attachment {
    /// The slot clock.
    fn clock(&self) -> SlotClock;

    /// The slot that is about to run.
    fn now(&self) -> Slot;

    /// The packets of this shard's endpoints that left the network by the start of this slot: first dropped, then delivered
    /// ones, then those of both kinds from other shards.
    fn outcomes(&self) -> &[Outcome];

    /// Hands packets to the network interfaces of their sources, in this order.
    ///
    /// # Panics
    /// If a source is not in this shard.
    fn inject(&mut self, requests: &[Request]);

    /// The number of bytes in the queue of the network interface of an endpoint of this shard.
    ///
    /// # Panics
    /// If the endpoint is not in this shard.
    fn backlog(&self, endpoint: EndpointId) -> u64;
}

/// The endpoints of one shard.
pub trait Endpoints: Send {
    /// Called before each slot.
    fn slot(&mut self, network: &mut dyn Attachment);
}

/// A run of a network with endpoints.
pub struct EndpointRun<'a> {
    /// The network.
    pub blueprint: &'a Blueprint<'a>,
    /// The scheme of all routers.
    pub scheme: &'a Scheme,
    /// The shard of each router.
    pub assignment: &'a [usize],
    /// Events, in order of slots.
    pub events: &'a [(Slot, Event)],
    /// The slot to stop before.
    pub until: Slot,
    /// The pace.
    pub pace: Pace<'a>,
    /// The time between two samples of queue lengths.
    pub sample_every: Nanos,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct NetworkReport {
    /// How well each shard kept time.
    pub punctuality: Vec<Punctuality>,
    /// By link between shards and sending port, the packets dropped because the ring was full.
    pub overloads: Vec<(LinkId, (RouterId, PortIndex), u64)>,
    /// Counters of all ports.
    pub ports: Vec<(RouterId, PortIndex, PortTally)>,
    /// Counters of the network interfaces of all endpoints.
    pub interfaces: Vec<(EndpointId, PortTally)>,
    /// Queue lengths of all ports.
    pub occupancy: Vec<(RouterId, PortIndex, Occupancy)>,
    /// Packets that neither arrived nor were dropped.
    pub in_flight: u64,
}

/// The assignment of `routers` to `shards`: neighbours in the order of a topology are often neighbours in the network.
pub fn assignment(routers: usize, shards: usize) -> Vec<usize> {
    let count = shards.clamp(1, routers.max(1));
    (0..routers).map(|router| router * count / routers).collect()
}

impl EndpointRun<'_> {
    /// Runs the network, each shard with its endpoints in a thread of its own. Each thread first calls `begin` with the number of
    /// its shard.
    ///
    /// # Errors
    /// If the network cannot be built, or the scheme is that of another program.
    ///
    /// # Panics
    /// If the numbers of shards and of `endpoints` differ.
    pub fn run<E: Endpoints>(
        &self,
        endpoints: &mut [E],
        begin: impl Fn(usize) + Sync,
    ) -> Result<NetworkReport, BlueprintError> {
        crate::network::check(self.scheme, self.blueprint)?;
        let of_another_program = |own: &Own| Err(BlueprintError::OwnScheme { scheme: own.name() });
        self.scheme.apply(RunScheme { run: self, endpoints, begin }).unwrap_or_else(of_another_program)
    }

    fn run_as<R: Router, E: Endpoints>(
        &self,
        endpoints: &mut [E],
        begin: impl Fn(usize) + Sync,
        make: impl Fn(Routing, RouterPorts<'_>) -> R,
    ) -> Result<NetworkReport, BlueprintError> {
        let (mut shards, crossings) = self.blueprint.build_sharded(self.assignment, make)?;
        assert_eq!(shards.len(), endpoints.len(), "endpoints for each shard");
        let mut drivers = self.drivers(endpoints, shards.len());
        let run = Run {
            topology: self.blueprint.topology,
            clock: self.blueprint.clock,
            crossings: &crossings,
            events: self.events,
            until: self.until,
            pace: self.pace,
        };
        let report = run.run(&mut shards, &mut drivers, begin);
        let overloads = crossings.iter().zip(report.overloads);
        let overloads = overloads.map(|(crossing, packets)| (crossing.link, crossing.sender, packets));
        let mut result = NetworkReport {
            punctuality: report.punctuality,
            overloads: overloads.collect(),
            in_flight: shards.iter().map(Shard::in_flight).sum(),
            ..NetworkReport::default()
        };
        let topology = self.blueprint.topology;
        for router in topology.router_ids() {
            let shard = &shards[self.assignment[router.index()]];
            let ports = (0..topology.ports(router) as u16).map(PortIndex);
            result.ports.extend(ports.map(|port| (router, port, shard.port_tally(router, port))));
            let tally = |endpoint| (endpoint, shard.interface_tally(endpoint));
            result.interfaces.extend(topology.rack(router).map(tally));
        }
        result.occupancy = drivers.into_iter().flat_map(|driver| driver.sampler.into_ports()).collect();
        Ok(result)
    }

    /// Connects the endpoints of each shard with those of all others.
    fn drivers<'e, E: Endpoints>(&self, endpoints: &'e mut [E], shards: usize) -> Vec<Attached<'e, E>> {
        let topology = self.blueprint.topology;
        let home = |endpoint| self.assignment[topology.router_of(endpoint).index()] as u32;
        let homes: Arc<[u32]> = topology.endpoint_ids().map(home).collect();
        let published: Arc<[AtomicU64]> = (0..shards).map(|_| AtomicU64::new(0)).collect();
        let mut producers: Vec<Vec<Option<OutcomeSender>>> = (0..shards).map(|_| Vec::new()).collect();
        let mut consumers: Vec<Vec<Consumer<Outcome>>> = (0..shards).map(|_| Vec::new()).collect();
        for (from, producers) in producers.iter_mut().enumerate() {
            for (to, consumers) in consumers.iter_mut().enumerate() {
                producers.push((from != to).then(|| {
                    let (ring, consumer) = RingBuffer::new(OUTCOME_RING);
                    consumers.push(consumer);
                    OutcomeSender { ring, waiting: VecDeque::new() }
                }));
            }
        }
        let every = self.blueprint.clock.slots_in(self.sample_every);
        let ports_of = |shard: usize| {
            let routers =
                topology.router_ids().filter(move |router| self.assignment[router.index()] == shard);
            routers.flat_map(|router| {
                (0..topology.ports(router) as u16).map(move |port| (router, PortIndex(port)))
            })
        };
        let parts = endpoints.iter_mut().zip(producers).zip(consumers).enumerate();
        parts
            .map(|(number, ((endpoints, outbound), inbound))| Attached {
                endpoints,
                number,
                clock: self.blueprint.clock,
                homes: Arc::clone(&homes),
                outcomes: Vec::new(),
                dropped: Vec::new(),
                outbound,
                inbound,
                is_virtual: matches!(self.pace, Pace::Virtual),
                published: Arc::clone(&published),
                sampler: Sampler::new(every, ports_of(number)),
            })
            .collect()
    }
}

/// The run for one scheme.
struct RunScheme<'a, E, B> {
    run: &'a EndpointRun<'a>,
    endpoints: &'a mut [E],
    begin: B,
}

impl<E: Endpoints, B: Fn(usize) + Sync> ForScheme for RunScheme<'_, E, B> {
    type Output = Result<NetworkReport, BlueprintError>;

    fn with<R: Router + 'static>(self, make: impl Fn(Routing, RouterPorts<'_>) -> R + Sync) -> Self::Output {
        self.run.run_as(self.endpoints, self.begin, make)
    }
}

/// Outcomes per ring.
const OUTCOME_RING: usize = 4_096;

/// The way to the endpoints of another shard.
struct OutcomeSender {
    ring: Producer<Outcome>,
    /// What did not fit.
    waiting: VecDeque<Outcome>,
}

impl OutcomeSender {
    fn send(&mut self, outcome: Outcome) {
        if !self.waiting.is_empty() {
            self.waiting.push_back(outcome);
        } else if let Err(rtrb::PushError::Full(outcome)) = self.ring.push(outcome) {
            self.waiting.push_back(outcome);
        }
    }

    /// Sends what waits. Returns whether nothing is left.
    fn flush(&mut self) -> bool {
        while let Some(&outcome) = self.waiting.front() {
            if self.ring.push(outcome).is_err() {
                return false;
            }
            self.waiting.pop_front();
        }
        true
    }
}

/// The endpoints of a shard, attached to it.
struct Attached<'e, E> {
    endpoints: &'e mut E,
    number: usize,
    clock: SlotClock,
    /// By endpoint, its shard.
    homes: Arc<[u32]>,
    /// The outcomes of this slot for the endpoints of this shard.
    outcomes: Vec<Outcome>,
    dropped: Vec<Dropped>,
    /// By shard.
    outbound: Vec<Option<OutcomeSender>>,
    /// By shard, without this one.
    inbound: Vec<Consumer<Outcome>>,
    is_virtual: bool,
    /// By shard, the slots whose outcomes it has sent. Only in virtual time.
    published: Arc<[AtomicU64]>,
    sampler: Sampler,
}

impl<E> Attached<'_, E> {
    fn sort(&mut self, outcome: Outcome) {
        match &mut self.outbound[self.homes[outcome.packet.source().index()] as usize] {
            None => self.outcomes.push(outcome),
            Some(sender) => sender.send(outcome),
        }
    }

    /// Collects all outcomes by the start of the current slot.
    fn collect<R: Router>(&mut self, shard: &mut Shard<R>) {
        self.outcomes.clear();
        let mut dropped = std::mem::take(&mut self.dropped);
        shard.take_dropped(&mut dropped);
        for Dropped { packet, place, reason } in dropped.drain(..) {
            self.sort(Outcome { packet, fate: Fate::Dropped(place, reason) });
        }
        self.dropped = dropped;
        for batch in shard.delivered() {
            for packet in batch {
                self.sort(Outcome { packet: R::prepare_to_send(packet), fate: Fate::Delivered });
            }
        }
        self.exchange(shard.now());
    }

    /// Sends outcomes to other shards and receives theirs.
    fn exchange(&mut self, now: Slot) {
        if self.inbound.is_empty() {
            return;
        }
        let mut backoff = Backoff::default();
        let mut is_published = false;
        loop {
            let is_sent = self.outbound.iter_mut().flatten().fold(true, |sent, sender| sender.flush() & sent);
            if self.is_virtual && is_sent && !is_published {
                self.published[self.number].fetch_max(now.0 + 1, Ordering::Release);
                is_published = true;
            }
            // Before the rings are read, so that all that was published is read.
            let are_all = !self.is_virtual
                || is_published && self.published.iter().all(|slots| slots.load(Ordering::Acquire) > now.0);
            let Attached { inbound, outcomes, .. } = self;
            for ring in inbound {
                while let Ok(outcome) = ring.pop() {
                    outcomes.push(outcome);
                }
            }
            if are_all {
                return;
            }
            backoff.wait();
        }
    }
}

impl<R: Router, E: Endpoints> Driver<R> for Attached<'_, E> {
    fn slot(&mut self, shard: &mut Shard<R>) {
        self.collect(shard);
        let now = shard.now();
        self.sampler.slot(now, |router, port| shard.backlog(router, port).packets);
        let Attached { endpoints, outcomes, clock, .. } = self;
        endpoints.slot(&mut AttachedShard { shard, outcomes, clock: *clock });
    }

    fn is_closed_loop(&self) -> bool {
        true
    }

    fn abort(&mut self) {
        self.published[self.number].store(u64::MAX, Ordering::Release);
    }
}

struct AttachedShard<'a, R: Router> {
    shard: &'a mut Shard<R>,
    outcomes: &'a [Outcome],
    clock: SlotClock,
}

impl<R: Router> Attachment for AttachedShard<'_, R> {
    fn clock(&self) -> SlotClock {
        self.clock
    }

    fn now(&self) -> Slot {
        self.shard.now()
    }

    fn outcomes(&self) -> &[Outcome] {
        self.outcomes
    }

    fn inject(&mut self, requests: &[Request]) {
        self.shard.inject(requests.iter().copied());
    }

    fn backlog(&self, endpoint: EndpointId) -> u64 {
        self.shard.interface_backlog(endpoint)
    }
}

/// Emulated hosts, for a network in one shard: a host's transport sees packets of both directions.
pub struct EmulatedHosts<W> {
    /// The hosts.
    pub hosts: Hosts,
    /// Their flows.
    pub workload: W,
}

impl<W: Workload + Send> Endpoints for EmulatedHosts<W> {
    fn slot(&mut self, network: &mut dyn Attachment) {
        // Hosts hand over packets after a slot, for the next one: in slot 0 there are none.
        if network.now() > Slot(0) {
            self.hosts.slot(&mut AdvancedFabric(network), &mut self.workload);
        }
    }
}

/// A network whose current slot has just begun, behind the interface of one that its hosts advance.
struct AdvancedFabric<'a>(&'a mut dyn Attachment);

impl Fabric for AdvancedFabric<'_> {
    fn clock(&self) -> SlotClock {
        self.0.clock()
    }

    fn now(&self) -> Slot {
        self.0.now()
    }

    fn inject(&mut self, requests: &[Request]) {
        self.0.inject(requests);
    }

    fn backlog(&self, endpoint: EndpointId) -> u64 {
        self.0.backlog(endpoint)
    }

    /// The slot has been run by the network.
    fn advance(&mut self, outcomes: &mut Vec<Outcome>) {
        outcomes.extend_from_slice(self.0.outcomes());
    }
}

#[cfg(test)]
mod tests;
