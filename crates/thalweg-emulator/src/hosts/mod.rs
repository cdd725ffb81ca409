//! Hosts in virtual time. They use the core's [`Fabric`] interface, start the flows of a [`Workload`], and carry them
//! by TCP or pFabric's transport.
//!
//! **A timeslot.** The network advances. After the host's stack delay, receivers and senders process the packets that
//! arrived. Timers fire, flows start, and each host hands segments to its network interface while the interface's queue
//! is short. The network takes them at the start of the next slot.
//!
//! **Guarantee.** Time is the slot's time, and nothing is random: the same workload over the same network gives the
//! same segments. Every packet handed over is delivered, dropped (counted by reason) or in flight
//! ([`Hosts::check_invariants`]).
//!
//! **Cost.** O(1) amortised per segment, without allocation once tables have grown to the number of concurrent flows
//! and segments. Idle hosts and flows cost nothing.

use thalweg_network::EndpointId;
use thalweg_wire::Timestamp;

use crate::fabric::Fabric;
use crate::outcome::{Fate, Outcome, Request};
use crate::packet::{Ecn, Packet};
use crate::slot::{Slot, SlotClock};
use crate::ticks::Lag;
use crate::workloads::{FlowStart, Workload};

mod arrivals;
pub mod config;
mod connection;
mod interface;
mod neighbours;
mod observer;
pub mod p_fabric;
pub mod segment;
pub mod statistics;
pub mod tcp;
mod timer;

pub use config::{HostConfig, HostConfigError, Transport};
pub use observer::{Observation, PathDelay, Reading};
pub use p_fabric::PFabricConfig;
pub use segment::{Segment, Segments};
pub use statistics::{CompletedFlow, FlowStatus, Totals};
pub use tcp::{AckPolicy, Algorithm, RtoConfig, TcpConfig};

use arrivals::{Arrival, Arrivals};
use connection::{Connection, Connections, NEVER};
use interface::{InLine, Interface, Interfaces};
use neighbours::Neighbours;
use observer::Observer;
use segment::{Ack, Data};
use timer::{End, Entry, Timers};

/// All hosts of a network.
#[derive(Clone, Debug)]
pub struct Hosts {
    config: HostConfig,
    clock: SlotClock,
    connections: Connections,
    interfaces: Interfaces,
    neighbours: Neighbours,
    segments: Segments,
    timers: Timers,
    arrivals: Arrivals,
    totals: Totals,
    completed: Vec<CompletedFlow>,
    /// Observes chosen flows, if any are asked for.
    observer: Option<Observer>,
    /// Buffers that are reused in each slot.
    outcomes: Vec<Outcome>,
    requests: Vec<Request>,
}

impl Hosts {
    /// Hosts at endpoints 0 to `endpoints - 1` of a network with slots of `clock`.
    ///
    /// # Errors
    /// If the configuration is invalid.
    pub fn new(config: HostConfig, endpoints: usize, clock: SlotClock) -> Result<Hosts, HostConfigError> {
        config.validate()?;
        Ok(Hosts {
            config,
            clock,
            connections: Connections::default(),
            interfaces: Interfaces::new(endpoints, config.seed),
            neighbours: Neighbours::new(endpoints),
            segments: Segments::new(config.segment_history as usize),
            timers: Timers::default(),
            arrivals: Arrivals::new(config.stack_delay, clock),
            totals: Totals::default(),
            completed: Vec::new(),
            observer: None,
            outcomes: Vec::new(),
            requests: Vec::new(),
        })
    }

    /// Runs one timeslot.
    pub fn slot(&mut self, fabric: &mut dyn Fabric, workload: &mut dyn Workload) {
        let mut outcomes = std::mem::take(&mut self.outcomes);
        fabric.advance(&mut outcomes);
        let slot = fabric.now();
        let now = self.clock.start_of(slot);
        self.take_outcomes(&outcomes, slot);
        outcomes.clear();
        self.outcomes = outcomes;
        match self.observer {
            None => self.process_arrived::<false>(slot, workload),
            Some(_) => self.process_arrived::<true>(slot, workload),
        }
        self.fire_timers(now);
        self.start_flows(now, workload);
        self.hand_over(fabric, now);
    }

    #[inline]
    fn take_outcomes(&mut self, outcomes: &[Outcome], slot: Slot) {
        let now = self.clock.start_of(slot);
        for outcome in outcomes {
            match outcome.fate {
                Fate::Delivered => {
                    self.totals.delivered += 1;
                    self.arrivals.push(outcome.packet, slot, now);
                }
                Fate::Dropped(_, reason) => {
                    self.totals.dropped[reason as usize] += 1;
                    self.segments.remove(outcome.packet.id());
                }
            }
        }
    }

    #[inline]
    fn process_arrived<const OBSERVED: bool>(&mut self, slot: Slot, workload: &mut dyn Workload) {
        let mut due = self.arrivals.take(slot);
        for Arrival { at: now, packet } in due.drain(..) {
            let id = packet.id();
            match (self.connections.place(packet.flow()), self.segments.in_use(id)) {
                (None, _) => self.totals.late += 1,
                (Some(place), &Segment::Data(data)) => {
                    self.receive_data(place, &packet, &data, now, workload);
                    if OBSERVED && let Some(observer) = &mut self.observer {
                        observer.arrived(place, packet.length(), data.sent_at, now);
                    }
                }
                (Some(place), Segment::Ack(ack)) => {
                    let sender = &mut self.connections.at(place).sender;
                    let before = if OBSERVED { sender.acknowledged() } else { 0 };
                    sender.on_ack(ack, now);
                    if OBSERVED && let Some(observer) = &mut self.observer {
                        // Only acknowledgements of new bytes measure the round trip (RFC 7323, section 4.3).
                        let measured = sender.srtt().is_some() && sender.acknowledged() > before;
                        observer.sender_event(place, packet.flow(), measured.then(|| now.since(ack.echo)));
                    }
                    self.after_sender_event(place, now);
                }
            }
            self.segments.remove(id);
        }
        self.arrivals.give_back(slot, due);
    }

    #[inline]
    fn receive_data(
        &mut self,
        place: u32,
        packet: &Packet,
        data: &Data,
        now: Timestamp,
        workload: &mut dyn Workload,
    ) {
        let Hosts { connections, interfaces, segments, totals, config, .. } = self;
        let connection = connections.at(place);
        let marked = packet.ecn() == Ecn::Experienced;
        totals.marks += u64::from(marked);
        connection.marks += u64::from(marked);
        let before = connection.receiver.delivered();
        let template = ack_template(connection, config);
        let received = connection.receiver.on_data(data, marked, now, |ack| {
            queue_ack(template, Ack { sent_at: now, ..ack }, segments, interfaces);
        });
        totals.bytes_delivered += connection.receiver.delivered() - before;
        totals.spurious += u64::from(received.is_duplicate);
        if received.completes {
            connection.end = now;
            workload.completed(connection.flow, now);
        }
        self.arm(place, End::Receiver);
    }

    /// Handles a change of a sender: it may be done, may send, and its timer may have moved.
    #[inline]
    fn after_sender_event(&mut self, place: u32, now: Timestamp) {
        let connection = self.connections.at(place);
        connection.ready = now;
        if connection.sender.is_done() {
            self.totals.flows_completed += 1;
            self.totals.timeouts += connection.sender.events().timeouts;
            self.completed.push(CompletedFlow::of(connection, now));
            if let Some(observer) = &mut self.observer {
                observer.end(place, connection);
            }
            self.connections.end(place);
            return;
        }
        if !connection.is_in_line {
            connection.is_in_line = true;
            self.interfaces.queue_flow(connection.source, InLine { place, flow: connection.flow });
        }
        self.arm(place, End::Sender);
    }

    /// Ensures that a timer fires no later than the deadline of one end of a flow.
    #[inline]
    fn arm(&mut self, place: u32, end: End) {
        arm(self.connections.at(place), end, &mut self.timers);
    }

    fn fire_timers(&mut self, now: Timestamp) {
        while let Some(entry) = self.timers.pop_due(now) {
            let Some(place) = self.connections.place(entry.flow) else { continue };
            let connection = self.connections.at(place);
            if connection.armed[entry.end as usize] != entry.at {
                continue;
            }
            connection.armed[entry.end as usize] = NEVER;
            match entry.end {
                End::Sender if connection.sender.deadline() <= now => {
                    connection.sender.on_timer(now);
                    if let Some(observer) = &mut self.observer {
                        observer.sender_event(place, entry.flow, None);
                    }
                    self.after_sender_event(place, now);
                }
                End::Receiver if connection.receiver.deadline() <= now => {
                    let template = ack_template(connection, &self.config);
                    if let Some(ack) = connection.receiver.on_timer(now) {
                        let ack = Ack { sent_at: now, ..ack };
                        queue_ack(template, ack, &mut self.segments, &mut self.interfaces);
                    }
                }
                end => self.arm(place, end),
            }
        }
    }

    fn start_flows(&mut self, now: Timestamp, workload: &mut dyn Workload) {
        while workload.next_start().is_some_and(|at| at <= now) {
            let Some(start) = workload.start() else { break };
            if !self.is_possible(&start) {
                self.totals.flows_refused += 1;
                self.connections.skip();
                continue;
            }
            self.totals.flows_started += 1;
            let flow = self.connections.next_flow();
            let place = self.connections.begin(&self.config, &start);
            if let Some(observer) = &mut self.observer {
                observer.start(place, flow);
            }
            self.after_sender_event(place, start.at);
            let connections = &self.connections;
            let counts = |entry: &Entry| {
                let place = connections.place(entry.flow);
                place.is_some_and(|place| connections.look(place).armed[entry.end as usize] == entry.at)
            };
            self.timers.sweep(connections.len(), counts);
        }
    }

    fn is_possible(&self, start: &FlowStart) -> bool {
        let is_host = |endpoint: EndpointId| endpoint.index() < self.interfaces.len();
        start.bytes > 0
            && start.dscp < 64
            && start.source != start.destination
            && is_host(start.source)
            && is_host(start.destination)
            && self.connections.len() < self.config.max_flows as usize
    }

    /// Fills the network interfaces. An idle interface has started to send as soon as the host had something to send.
    fn hand_over(&mut self, fabric: &mut dyn Fabric, now: Timestamp) {
        let Hosts {
            interfaces,
            connections,
            neighbours,
            segments,
            timers,
            requests,
            config,
            totals,
            arrivals,
            ..
        } = self;
        requests.clear();
        let limit = u64::from(config.interface_backlog);
        interfaces.visit_busy(|endpoint, interface| {
            let mut waiting = fabric.backlog(endpoint);
            let is_idle = waiting == 0;
            let handed_over = |ready| if is_idle { arrivals.lag(ready, now) } else { (now, Lag::default()) };
            while waiting < limit {
                if let Some(packet) = interface.acks.pop_front() {
                    let mut lag = Lag::default();
                    if let Segment::Ack(ack) = segments.in_use_mut(packet.id()) {
                        (ack.sent_at, lag) = handed_over(ack.sent_at);
                    }
                    totals.acks_sent += 1;
                    waiting += u64::from(packet.length());
                    let packet = neighbours.addressed(packet).with_lag(lag);
                    requests.push(Request { packet, remaining: 0 });
                    continue;
                }
                let Some(place) =
                    next_in_line(interface, connections, config).filter(|_| segments.has_room())
                else {
                    break;
                };
                let connection = connections.at(place);
                let (sent_at, lag) = handed_over(connection.ready);
                let Some(data) = connection.sender.transmit(sent_at) else {
                    leave_line(interface, connection);
                    continue;
                };
                totals.data_sent += 1;
                totals.retransmissions += u64::from(data.is_retransmission);
                arm(connection, End::Sender, timers);
                take_turn(interface, config);
                let packet =
                    neighbours.addressed(data_packet(connection, data, segments, config)).with_lag(lag);
                waiting += u64::from(packet.length());
                let remaining = u32::try_from(connection.remaining()).unwrap_or(u32::MAX);
                requests.push(Request { packet, remaining });
            }
        });
        totals.injected += requests.len() as u64;
        if !requests.is_empty() {
            fabric.inject(requests);
        }
    }

    /// Sets the address of `destination` that `source` uses, as learnt by ARP (Planck, section 6.2). Packets in the
    /// network interface keep their address.
    ///
    /// # Panics
    /// If there are no such endpoints.
    pub fn set_address(&mut self, source: EndpointId, destination: EndpointId, address: u8) {
        self.neighbours.set(source, destination, address);
    }

    /// The address of `destination` that `source` uses; 0, the base address, by default.
    ///
    /// # Panics
    /// If there are no such endpoints.
    pub fn address(&self, source: EndpointId, destination: EndpointId) -> u8 {
        self.neighbours.address(source, destination)
    }

    /// The segment of a packet id; `None` if the id was never used. Valid while the packet is in the network, and until
    /// [`HostConfig::segment_history`] others were freed after it.
    pub fn segment(&self, id: u32) -> Option<&Segment> {
        self.segments.get(id)
    }

    /// Flows that ended since the last call, in order of their end.
    pub fn drain_completed(&mut self) -> std::vec::Drain<'_, CompletedFlow> {
        self.completed.drain(..)
    }

    /// An active flow.
    pub fn flow(&self, flow: u32) -> Option<FlowStatus> {
        self.connections.place(flow).map(|place| FlowStatus::of(self.connections.look(place)))
    }

    /// The active flows, oldest first.
    pub fn flows(&self) -> impl Iterator<Item = FlowStatus> + '_ {
        self.connections.iter().map(FlowStatus::of)
    }

    /// The number of active flows.
    pub fn active_flows(&self) -> usize {
        self.connections.len()
    }

    /// Counters of all flows, including active ones.
    pub fn totals(&self) -> Totals {
        let under_way: u64 =
            self.connections.iter().map(|connection| connection.sender.events().timeouts).sum();
        Totals { timeouts: self.totals.timeouts + under_way, ..self.totals }
    }

    /// Checks the counters: every packet handed over was delivered, dropped or is in flight. Checks the scoreboards of
    /// all flows.
    ///
    /// # Panics
    /// If a counter is wrong.
    pub fn check_invariants(&self) {
        let in_hosts = self.arrivals.len() + self.interfaces.waiting_acks();
        assert_eq!(
            self.totals.in_flight(),
            (self.segments.live() - in_hosts) as u64,
            "packets in flight, by counters and by segments"
        );
        assert_eq!(
            self.totals.injected,
            self.totals.data_sent + self.totals.acks_sent,
            "packets handed over"
        );
        let ended = self.totals.flows_completed + self.connections.len() as u64;
        assert_eq!(self.totals.flows_started, ended, "flows");
        for connection in self.connections.iter() {
            connection.sender.check_invariants();
            let (sent, received) = (connection.sender.acknowledged(), connection.receiver.delivered());
            assert!(sent <= received && received <= connection.bytes, "acknowledged before it was received");
        }
    }
}

/// An empty packet from a flow's destination to its source.
#[inline]
fn ack_template(connection: &Connection, config: &HostConfig) -> Packet {
    let ecn = if config.transport.has_capable_acks() { Ecn::Capable0 } else { Ecn::NotCapable };
    Packet::new(connection.destination, connection.source, connection.flow, 0, 0)
        .with_traffic_class(connection.dscp << 2 | ecn as u8)
}

#[inline]
fn queue_ack(template: Packet, ack: Ack, segments: &mut Segments, interfaces: &mut Interfaces) {
    let ack = Segment::Ack(ack);
    let (length, id) = (ack.wire_bytes(), segments.insert(ack));
    let packet = Packet::new(template.source(), template.destination(), template.flow(), id, length);
    interfaces.queue_ack(packet.with_traffic_class(template.traffic_class()));
}

#[inline]
fn data_packet(connection: &Connection, data: Data, segments: &mut Segments, config: &HostConfig) -> Packet {
    // Retransmissions are not ECN-capable (RFC 3168, section 6.1.5).
    let is_capable = config.transport.is_ecn_capable() && !data.is_retransmission;
    let ecn = if is_capable { Ecn::Capable0 } else { Ecn::NotCapable };
    let segment = Segment::Data(data);
    let (length, id) = (segment.wire_bytes(), segments.insert(segment));
    Packet::new(connection.source, connection.destination, connection.flow, id, length)
        .with_traffic_class(connection.dscp << 2 | ecn as u8)
}

#[inline]
fn arm(connection: &mut Connection, end: End, timers: &mut Timers) {
    let deadline = match end {
        End::Sender => connection.sender.deadline(),
        End::Receiver => connection.receiver.deadline(),
    };
    let armed = &mut connection.armed[end as usize];
    if deadline < *armed {
        *armed = deadline;
        timers.set(Entry { at: deadline, flow: connection.flow, end });
    }
}

/// The flow that sends next: the first in the queue, or with pFabric the one with the fewest bytes left.
#[inline]
fn next_in_line(interface: &mut Interface, connections: &Connections, config: &HostConfig) -> Option<u32> {
    let is_there = |in_line: &InLine| connections.place(in_line.flow) == Some(in_line.place);
    while interface.flows.front().is_some_and(|in_line| !is_there(in_line)) {
        interface.flows.pop_front();
    }
    if let Transport::PFabric(_) = config.transport {
        interface.flows.retain(is_there);
        let left = |in_line: &InLine| (connections.look(in_line.place).remaining(), in_line.flow);
        let shortest = (0..interface.flows.len()).min_by_key(|&index| left(&interface.flows[index]))?;
        interface.flows.swap(0, shortest);
    }
    interface.flows.front().map(|in_line| in_line.place)
}

/// Removes the first flow, which has nothing to send for now.
#[inline]
fn leave_line(interface: &mut Interface, connection: &mut Connection) {
    connection.is_in_line = false;
    interface.flows.pop_front();
}

/// Moves the first flow, which has sent, to the end.
#[inline]
fn take_turn(interface: &mut Interface, config: &HostConfig) {
    if let Transport::Tcp(_) = config.transport {
        interface.flows.rotate_left(1);
    }
}

#[cfg(test)]
mod star;
#[cfg(test)]
mod tests;
