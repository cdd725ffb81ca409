//! Routers and their endpoints on one core. A shard runs slot by slot and does not know other cores: packets to them go
//! to outbound lanes, packets from them come from inbound lanes.

use std::cmp::Reverse;

use rand_xoshiro::Xoshiro256PlusPlus;
use thalweg_network::routing::{NextHops, ecmp};
use thalweg_network::{Attachment, EndpointId, Node, PortIndex, RouterId};

use crate::outcome::{Dropped, Place, Reason, Request};
use crate::packet::Packet;
use crate::ports::impairment::Impairment;
use crate::ports::lane::Lane;
use crate::ports::monitor::{Mirrored, MonitorPort, MonitorTally};
use crate::ports::port::{Extras, NEVER, Port, Ports};
use crate::ports::queue_span::{QueueSpan, WatchedQueue};
use crate::ports::tally::{PortTally, Verdicts};
use crate::queues::backlog::Backlog;
use crate::queues::port_set::PortSet;
use crate::router::Router;
use crate::router::classes::ClassCounts;
use crate::router::context::Context;
use crate::slot::Slot;
use crate::ticks::Ticks;

/// An endpoint's network interface. Its queue is implicit: packets leave in order and at known times, so they go into
/// the link's lane at once.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Interface {
    pub(crate) port: Port,
    /// The longest queueing time.
    pub(crate) max_wait: Ticks,
    pub(crate) up: bool,
}

/// A router: its scheme, its ports, and its lanes.
pub(crate) struct RouterState<R: Router> {
    pub(crate) id: RouterId,
    pub(crate) scheme: R,
    pub(crate) ports: Box<[Port]>,
    pub(crate) verdicts: Box<[Verdicts]>,
    pub(crate) down: PortSet,
    pub(crate) any_down: bool,
    /// Lanes into the router: first that of its endpoints, then those of its links by port.
    pub(crate) inbound: Box<[u32]>,
    /// The lanes with arrivals in this slot.
    pub(crate) busy: Vec<u32>,
    /// Until this slot, the rack's links take turns at random, because a packet was dropped recently.
    pub(crate) contended: Slot,
    /// The lane to its endpoints, if there are any.
    pub(crate) deliveries: Option<u32>,
    pub(crate) random: Xoshiro256PlusPlus,
    /// Whether it has special ports.
    pub(crate) has_extras: bool,
    pub(crate) extras: Extras<R::Custom>,
    pub(crate) monitor: Option<MonitorPort>,
}

/// Slots after a drop in which packets of a rack's endpoints are taken in random order. Otherwise an endpoint that
/// keeps its interface busy would always be first, since its packets wait in the lane for one slot longer. Without
/// drops, the order has no effect.
const CONTENTION: u64 = 64;

/// An endpoint of another shard.
pub(crate) const OTHER_SHARD: u32 = u32::MAX;

/// Some routers with their endpoints.
pub struct Shard<R: Router> {
    pub(crate) routers: Vec<RouterState<R>>,
    pub(crate) lanes: Vec<Lane<R::Custom>>,
    /// The index in `interfaces` of each endpoint; [`OTHER_SHARD`] for those of other shards.
    pub(crate) interface_index: Box<[u32]>,
    pub(crate) interfaces: Vec<Interface>,
    /// By interface.
    pub(crate) interface_verdicts: Vec<Verdicts>,
    /// By interface, the impairment of its link on the way to the router.
    pub(crate) interface_impairments: Vec<Impairment>,
    /// Ports whose queues are looked at once per slot, by router and port.
    pub(crate) watched: Vec<WatchedQueue>,
    pub(crate) now: Slot,
    pub(crate) dropped: Vec<Dropped>,
    pub(crate) mirrored: Vec<Mirrored>,
}

impl<R: Router> Shard<R> {
    /// The slot that [`step`](Shard::step) runs next.
    pub fn now(&self) -> Slot {
        self.now
    }

    /// Hands packets to the network interfaces of their sources, at the start of the slot minus their
    /// [lag](Packet::lag).
    ///
    /// # Panics
    /// If a source is not in this shard.
    #[inline(always)]
    pub fn inject(&mut self, requests: impl IntoIterator<Item = Request>) {
        let start = Ticks::start_of(self.now);
        for request in requests {
            let packet = request.packet.with_custom(R::prepare_request(&request));
            let index = self.interface_index[packet.source().index()];
            let interface = &mut self.interfaces[index as usize];
            if interface.port.free > start + interface.max_wait {
                self.refuse(packet.with_custom(()), index);
                continue;
            }
            let finish = interface.port.transmit(packet.length(), start.before(packet.lag()));
            if interface.port.is_special {
                self.inject_impaired(packet, finish, index);
                continue;
            }
            let (slot, lag) = interface.port.arrival(finish, start);
            self.lanes[interface.port.lane as usize].send(slot, packet.with_lag(lag));
        }
    }

    /// Sends a packet over the impaired link of an interface, which has transmitted it.
    #[cold]
    #[inline(never)]
    fn inject_impaired(&mut self, packet: Packet<R::Custom>, finish: Ticks, index: u32) {
        let start = Ticks::start_of(self.now);
        let port = &self.interfaces[index as usize].port;
        match self.interface_impairments[index as usize].arrival(port.delay, finish, start) {
            Some((slot, lag)) => self.lanes[port.lane as usize].send(slot, packet.with_lag(lag)),
            None => self.drop_at_interface(packet.with_custom(()), index, Reason::LinkLoss),
        }
    }

    /// Drops a packet because its interface is full or its link is down.
    #[cold]
    fn refuse(&mut self, packet: Packet, index: u32) {
        let up = self.interfaces[index as usize].up;
        self.drop_at_interface(packet, index, if up { Reason::Full } else { Reason::LinkDown });
    }

    fn drop_at_interface(&mut self, packet: Packet, index: u32, reason: Reason) {
        self.interface_verdicts[index as usize].dropped[reason as usize] += 1;
        self.dropped.push(Dropped { packet, place: Place::Endpoint(packet.source()), reason });
    }

    /// Runs one slot: routers process arrivals and send.
    pub fn step(&mut self) {
        let Shard { routers, lanes, now, dropped, mirrored, .. } = self;
        for state in routers.iter_mut() {
            if let Some(lane) = state.deliveries {
                // The endpoints had one slot to process these.
                lanes[lane as usize].arriving_mut(*now).clear();
            }
            state.receive(lanes, *now, dropped);
            state.send(lanes, *now, dropped);
            if state.has_extras {
                state.finish_special_ports(*now, dropped, mirrored);
            }
        }
        *now = *now + 1;
        if !self.watched.is_empty() {
            self.look_at_queues();
        }
    }

    /// Watches the queue of a port from now on, unless it is watched already.
    ///
    /// # Panics
    /// If the router is not in this shard, or counts by class and has packets queued there.
    pub(crate) fn watch_queue(&mut self, router: RouterId, port: PortIndex) {
        let index = self.routers.binary_search_by_key(&router, |state| state.id);
        let router = index.expect("the router is in this shard");
        if let Err(place) = self.watched_queue(router, port) {
            self.watched.insert(place, WatchedQueue { router, port, span: QueueSpan::default() });
            if let Some(classes) = self.routers[router].scheme.classes() {
                classes.watch(port);
            }
        }
    }

    /// Takes what was seen of a watched queue since the last call; nothing of others.
    pub(crate) fn take_queue_span(&mut self, router: RouterId, port: PortIndex) -> QueueSpan {
        let router = self.routers.partition_point(|state| state.id < router);
        match self.watched_queue(router, port) {
            Ok(place) => std::mem::take(&mut self.watched[place].span),
            Err(_) => QueueSpan::default(),
        }
    }

    /// Appends what the classes of a watched port did since the last call; nothing without counters by class.
    pub(crate) fn take_classes(&mut self, router: RouterId, port: PortIndex, into: &mut Vec<ClassCounts>) {
        if let Some(classes) = self.router_mut(router).scheme.classes() {
            classes.take(port, into);
        }
    }

    /// The place of a watched queue, or the place where it would be.
    fn watched_queue(&self, router: usize, port: PortIndex) -> Result<usize, usize> {
        self.watched.binary_search_by_key(&(router, port), |queue| (queue.router, queue.port))
    }

    #[cold]
    #[inline(never)]
    fn look_at_queues(&mut self) {
        for WatchedQueue { router, port, span } in &mut self.watched {
            let scheme = &mut self.routers[*router].scheme;
            span.add(scheme.backlog(*port));
            if let Some(classes) = scheme.classes() {
                classes.look(*port);
            }
        }
    }

    /// Continues with slot `next`, without the slots before it. Only for an empty network, whose state does not change by
    /// itself: schemes look at the time when they have a packet. Nothing if `next` is not later than [`now`](Shard::now).
    pub(crate) fn skip_to(&mut self, next: Slot) {
        if next <= self.now {
            return;
        }
        debug_assert_eq!(self.in_flight(), 0, "only the slots of an empty network can be skipped");
        for lane in self.routers.iter().filter_map(|state| state.deliveries) {
            self.lanes[lane as usize].arriving_mut(self.now).clear();
        }
        let skipped = next.0 - self.now.0;
        for WatchedQueue { router, port, span } in &mut self.watched {
            span.looks += skipped;
            if let Some(classes) = self.routers[*router].scheme.classes() {
                classes.skip(*port, skipped);
            }
        }
        self.now = next;
    }

    /// The packets delivered to endpoints by the start of slot [`now`](Shard::now), by rack.
    pub fn delivered(&self) -> impl Iterator<Item = &[Packet<R::Custom>]> {
        let arriving = |lane: u32| self.lanes[lane as usize].arriving(self.now);
        self.routers.iter().filter_map(move |state| state.deliveries.map(arriving))
    }

    /// Moves the packets dropped since the last call to `into`.
    pub fn take_dropped(&mut self, into: &mut Vec<Dropped>) {
        into.append(&mut self.dropped);
    }

    /// Moves the packets that monitor ports have sent since the last call to `into`, in order of time for each router.
    pub fn take_mirrored(&mut self, into: &mut Vec<Mirrored>) {
        into.append(&mut self.mirrored);
    }

    /// Counters of a router's port.
    ///
    /// # Panics
    /// If the router or port is not in this shard.
    pub fn port_tally(&self, router: RouterId, port: PortIndex) -> PortTally {
        let state = self.router(router);
        PortTally { sent: state.ports[port.index()].sent(), verdicts: state.verdicts[port.index()] }
    }

    /// Counters of an endpoint's network interface.
    ///
    /// # Panics
    /// If the endpoint is not in this shard.
    pub fn interface_tally(&self, endpoint: EndpointId) -> PortTally {
        let index = self.interface_index[endpoint.index()] as usize;
        let interface = &self.interfaces[index];
        PortTally { sent: interface.port.sent(), verdicts: self.interface_verdicts[index] }
    }

    /// Counters of a router's monitor port, if it has one.
    ///
    /// # Panics
    /// If the router is not in this shard.
    pub fn monitor_tally(&self, router: RouterId) -> Option<MonitorTally> {
        self.router(router).monitor.as_ref().map(MonitorPort::tally)
    }

    /// The queue of a router's port.
    ///
    /// # Panics
    /// If the router is not in this shard.
    pub fn backlog(&self, router: RouterId, port: PortIndex) -> Backlog {
        self.router(router).scheme.backlog(port)
    }

    /// Bytes in the queue of an endpoint's network interface, to the slot.
    #[inline]
    pub fn interface_backlog(&self, endpoint: EndpointId) -> u64 {
        let port = &self.interfaces[self.interface_index[endpoint.index()] as usize].port;
        let start = Ticks::start_of(self.now);
        port.pace.bytes_in(Ticks(port.free.0.saturating_sub(start.0)))
    }

    pub(crate) fn router(&self, id: RouterId) -> &RouterState<R> {
        let index = self.routers.partition_point(|state| state.id < id);
        self.routers.get(index).filter(|state| state.id == id).expect("the router is in this shard")
    }

    pub(crate) fn router_mut(&mut self, id: RouterId) -> &mut RouterState<R> {
        let index = self.routers.partition_point(|state| state.id < id);
        self.routers.get_mut(index).filter(|state| state.id == id).expect("the router is in this shard")
    }

    /// Packets in queues and on links of the shard, without those that [`delivered`](Shard::delivered) returns.
    pub fn in_flight(&self) -> u64 {
        let waiting = |state: &RouterState<R>| -> u64 {
            (0..state.ports.len())
                .map(|port| u64::from(state.scheme.backlog(PortIndex(port as u16)).packets))
                .sum()
        };
        let links: usize = self.lanes.iter().map(Lane::packets).sum();
        let arrived: usize = self.delivered().map(<[_]>::len).sum();
        self.routers.iter().map(waiting).sum::<u64>() + (links - arrived) as u64
    }
}

impl<R: Router> Shard<R> {
    /// Takes down the part of the link between `ends` that is in this shard, and drops the packets on it and in its
    /// queues.
    pub(crate) fn fail(&mut self, ends: [Attachment; 2]) {
        for (end, other) in [(ends[0], ends[1]), (ends[1], ends[0])] {
            match end.node {
                Node::Endpoint(endpoint) => self.fail_interface(endpoint),
                Node::Router(router) if self.has(router) => self.fail_port(router, end.port, other),
                Node::Router(_) => {}
            }
        }
    }

    /// Brings up the link between `ends` again.
    pub(crate) fn repair(&mut self, ends: [Attachment; 2]) {
        let now = self.now;
        for end in ends {
            match end.node {
                Node::Endpoint(endpoint) => {
                    if let Some(interface) =
                        self.interfaces.get_mut(self.interface_index[endpoint.index()] as usize)
                    {
                        interface.up = true;
                        interface.port.free = Ticks::start_of(now);
                    }
                }
                Node::Router(router) if self.has(router) => {
                    let state = self.router_mut(router);
                    state.ports[end.port.index()].free = Ticks::start_of(now);
                    state.down.remove_if(end.port, true);
                    state.any_down = state.down.iter().next().is_some();
                }
                Node::Router(_) => {}
            }
        }
    }

    /// Installs the shortest paths in all routers of this shard.
    pub(crate) fn rewire(&mut self, next_hops: &NextHops) {
        self.routers.iter_mut().for_each(|state| state.scheme.rewire(next_hops));
    }

    pub(crate) fn has(&self, router: RouterId) -> bool {
        self.routers.binary_search_by_key(&router, |state| state.id).is_ok()
    }

    fn fail_interface(&mut self, endpoint: EndpointId) {
        let Shard { interfaces, interface_verdicts, interface_index, lanes, dropped, now, .. } = self;
        let index = interface_index[endpoint.index()] as usize;
        let Some(interface) = interfaces.get_mut(index) else { return };
        interface.up = false;
        interface.port.free = NEVER;
        let verdicts = &mut interface_verdicts[index];
        lanes[interface.port.lane as usize].lose(
            *now,
            |packet| packet.source() == endpoint,
            |packet| {
                verdicts.dropped[Reason::LinkDown as usize] += 1;
                let place = Place::Endpoint(endpoint);
                dropped.push(Dropped { packet: packet.with_custom(()), place, reason: Reason::LinkDown });
            },
        );
    }

    fn fail_port(&mut self, router: RouterId, port: PortIndex, other: Attachment) {
        let index = self.routers.partition_point(|state| state.id < router);
        let Shard { routers, lanes, dropped, now, .. } = self;
        let state = &mut routers[index];
        state.ports[port.index()].free = NEVER;
        state.down.insert(port);
        state.any_down = true;
        let lane = &mut lanes[state.ports[port.index()].lane as usize];
        let (mut context, scheme) = state.context(*now, dropped);
        scheme.flush(port, &mut context);
        let on_link = |packet: &Packet<R::Custom>| match other.node {
            Node::Endpoint(endpoint) => packet.destination() == endpoint,
            Node::Router(_) => true,
        };
        lane.lose(*now, on_link, |packet| context.drop(packet, port, Reason::LinkDown));
    }
}

impl<R: Router> RouterState<R> {
    /// The scheme, and the context that it may use.
    fn context<'a>(&'a mut self, now: Slot, dropped: &'a mut Vec<Dropped>) -> (Context<'a>, &'a mut R) {
        let RouterState { id, scheme, verdicts, down, any_down, random, .. } = self;
        (Context { now, router: *id, random, verdicts, down, any_down: *any_down, dropped }, scheme)
    }

    /// Processes arrivals, lane by lane: in order of arrival while queues have room. In a full queue the first packet
    /// gets the place, and hosts that send at full rate keep their order in time forever, so the order is drawn anew in
    /// each slot.
    #[inline(never)]
    fn receive(&mut self, lanes: &mut [Lane<R::Custom>], now: Slot, dropped: &mut Vec<Dropped>) {
        let arrived = |&&lane: &&u32| !lanes[lane as usize].arriving(now).is_empty();
        let mut busy = std::mem::take(&mut self.busy);
        busy.clear();
        busy.extend(self.inbound.iter().filter(arrived));
        let (rack, contended) = (self.deliveries.map(|_| self.inbound[0]), now < self.contended);
        let losses = dropped.len();
        let (mut context, scheme) = self.context(now, dropped);
        for last in (1..busy.len()).rev() {
            let drawn = ((context.bits() >> 32) * (last as u64 + 1)) >> 32;
            busy.swap(last, drawn as usize);
        }
        let lag = |&lane: &u32| lanes[lane as usize].arriving(now)[0].lag();
        if !contended && !busy.is_sorted_by(|one, next| lag(one) >= lag(next)) {
            busy.sort_by_key(|lane| Reverse(lag(lane)));
        }
        for &lane in &busy {
            let arrived = lanes[lane as usize].arriving_mut(now);
            if Some(lane) == rack {
                if contended {
                    let draw = context.bits();
                    arrived.sort_by_key(|packet| ecmp::hash(draw, u64::from(packet.source().0)));
                } else if !in_order(arrived) {
                    arrived.sort_by_key(|packet| Reverse(packet.lag()));
                }
            }
            scheme.input(arrived, &mut context);
            arrived.clear();
        }
        if dropped.len() > losses {
            self.contended = now + CONTENTION;
        }
        self.busy = busy;
    }

    #[inline(never)]
    fn send(&mut self, lanes: &mut [Lane<R::Custom>], now: Slot, dropped: &mut Vec<Dropped>) {
        let RouterState { id, scheme, ports, verdicts, down, any_down, random, extras, .. } = self;
        let mut context = Context { now, router: *id, random, verdicts, down, any_down: *any_down, dropped };
        scheme.output(&mut Ports { ports, lanes, extras, start: Ticks::start_of(now) }, &mut context);
    }

    /// Drops the packets that were lost on links in this slot, and mirrors those of mirrored ports.
    #[inline(never)]
    fn finish_special_ports(&mut self, now: Slot, dropped: &mut Vec<Dropped>, mirrored: &mut Vec<Mirrored>) {
        if !self.extras.lost.is_empty() {
            let mut lost = std::mem::take(&mut self.extras.lost);
            let (mut context, _) = self.context(now, dropped);
            lost.drain(..).for_each(|(port, packet)| context.drop(packet, port, Reason::LinkLoss));
            self.extras.lost = lost;
        }
        if !self.extras.copies.is_empty() {
            self.mirror(Ticks::start_of(now), mirrored);
        }
    }

    fn mirror(&mut self, start: Ticks, mirrored: &mut Vec<Mirrored>) {
        if let Some(monitor) = &mut self.monitor {
            monitor.offer(&mut self.extras.copies, self.id, start, |copy| mirrored.push(copy));
        }
    }
}

/// Whether these packets are in order of arrival. It has no early exit, which would cost more than it saves.
fn in_order<C>(packets: &[Packet<C>]) -> bool {
    let pairs = packets.iter().zip(packets.iter().skip(1));
    pairs.fold(true, |sorted, (earlier, later)| sorted & (earlier.lag() >= later.lag()))
}
