//! Slots in the thread of the arbiter, between two looks at the socket.

use std::collections::VecDeque;
use std::sync::Arc;

use thalweg_emulator::core::events::{Event, EventQueue};
use thalweg_emulator::core::occupancy::Sampler;
use thalweg_emulator::core::pacer::{Pacer, Pauses, Punctuality};
use thalweg_emulator::endpoints::entry_slots::EntrySlots;
use thalweg_emulator::{Network, Outcome, Request, Slot};
use thalweg_network::{PortIndex, RouterId};
use thalweg_wire::{Nanos, Timestamp};

use super::{Leave, Slots};
use crate::arbiter::queue_series::{MAX_SAMPLES, QueueSeries};
use crate::arbiter::{Options, Report};

/// Slots that run before the socket is looked at again, while the network is behind.
const SLOTS_PER_TURN: u32 = 64;

/// If nobody looks for datagrams for longer than this while the network is empty, its slots are late: a packet may have been waiting.
const IDLE_LIMIT: Nanos = Nanos::from_millis(2);

/// A network in the arbiter's thread.
pub(in crate::arbiter) struct OneThread {
    network: Box<dyn Network>,
    pacer: Pacer,
    /// Packets for the next slot.
    waiting: Vec<Request>,
    /// What left the network in the last slot.
    outcomes: Vec<Outcome>,
    /// Packets in the network, those in `outcomes` included.
    in_network: u64,
    entered: EntrySlots,
    planned: VecDeque<(Slot, Event)>,
    events: Arc<EventQueue>,
    /// Events so far.
    happened: u64,
    sample_every: Nanos,
    sampler: Sampler,
    series: QueueSeries,
    /// When the thread last looked for datagrams.
    looked_at: Timestamp,
}

impl OneThread {
    /// A network that starts with its next slot. `planned` are events in order of slots.
    pub(in crate::arbiter) fn new(
        network: Box<dyn Network>,
        planned: Vec<(Slot, Event)>,
        options: &Options,
    ) -> OneThread {
        let topology = network.topology();
        let ports = topology
            .router_ids()
            .flat_map(|router| (0..topology.ports(router) as u16).map(move |port| (router, PortIndex(port))));
        let sampler = Sampler::new(network.clock().slots_in(options.sample_every), ports);
        OneThread {
            pacer: Pacer::new(network.clock(), options.pace, Pauses::default()),
            network,
            waiting: Vec::new(),
            outcomes: Vec::new(),
            in_network: 0,
            entered: EntrySlots::default(),
            planned: planned.into(),
            events: Arc::new(EventQueue::new(1)),
            happened: 0,
            sample_every: options.sample_every,
            sampler,
            series: QueueSeries::default(),
            looked_at: Timestamp(0),
        }
    }

    /// Whether nothing can happen in the next slot.
    fn is_empty(&self) -> bool {
        self.in_network == 0 && self.waiting.is_empty()
    }

    /// Continues with the slot that starts at `now` or next, since the network is empty.
    fn skip(&mut self, now: Timestamp) {
        let expected = Nanos(self.looked_at.0).saturating_add(IDLE_LIMIT);
        let next = self.pacer.resume(self.network.now(), expected, Nanos(now.0));
        self.network.skip_to(next);
        self.looked_at = now;
    }

    fn slot(&mut self, now: Timestamp, leave: &mut Leave<'_>) {
        let slot = self.network.now();
        // What left the network by the start of this slot.
        for outcome in self.outcomes.drain(..) {
            self.in_network -= 1;
            let slots = self.entered.since(outcome.packet.id(), slot);
            leave(now, &outcome, Nanos(self.network.clock().start_of(Slot(slots)).0));
        }
        self.apply_events();
        let network = &mut self.network;
        if self.sampler.slot(slot, |router, port| network.port_backlog(router, port).packets) {
            self.series.add(slot, |router, port| network.port_backlog(router, port));
        }
        self.waiting.iter().for_each(|request| self.entered.enter(request.packet.id(), slot));
        self.in_network += self.waiting.len() as u64;
        network.inject(&self.waiting);
        self.waiting.clear();
        network.advance(&mut self.outcomes);
        self.looked_at = now;
    }

    fn apply_events(&mut self) {
        let slot = self.network.now();
        while let Some((_, event)) = self.planned.pop_front_if(|(at, _)| *at <= slot) {
            self.apply(event);
        }
        while let Some(event) = self.events.take(0) {
            self.apply(event);
        }
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Fail(link) => self.network.fail(link),
            Event::Repair(link) => self.network.repair(link),
            Event::Rewire => self.network.rewire(),
            Event::SetForwarding(router, table) => self.network.set_forwarding(router, table),
        }
        self.happened += 1;
    }
}

impl Slots for OneThread {
    fn turn(
        &mut self,
        clock: &mut dyn FnMut() -> Timestamp,
        requests: &mut Vec<Request>,
        leave: &mut Leave<'_>,
    ) -> bool {
        if self.is_empty() {
            // Packets that have just arrived enter the slot that starts next.
            self.skip(clock());
            self.apply_events();
        }
        self.waiting.append(requests);
        let mut has_run = false;
        for _ in 0..SLOTS_PER_TURN {
            let (now, slot) = (clock(), self.network.now());
            if Nanos(now.0) < self.pacer.due(slot) || self.is_empty() {
                break;
            }
            self.pacer.start(slot, Nanos(now.0));
            self.slot(now, leave);
            has_run = true;
        }
        has_run
    }

    fn next_turn(&self, _now: Timestamp) -> Timestamp {
        Timestamp(self.pacer.due(self.network.now()).0)
    }

    fn punctuality(&self) -> Punctuality {
        self.pacer.punctuality()
    }

    fn events(&self) -> Arc<EventQueue> {
        Arc::clone(&self.events)
    }

    fn record_queues(&mut self, ports: Vec<(RouterId, PortIndex)>) -> bool {
        let every = self.network.clock().slots_in(self.sample_every);
        self.series = QueueSeries::new(ports, every, MAX_SAMPLES);
        true
    }

    fn has_failed(&self) -> bool {
        false
    }

    fn end(&mut self) {}

    fn report(&self, report: &mut Report) {
        report.punctuality = self.pacer.punctuality();
        report.events = self.happened;
        report.queues = self.sampler.ports().to_vec();
        report.series = self.series.clone();
        let tally = |&(router, port, _): &(RouterId, PortIndex, _)| {
            (router, port, self.network.port_tally(router, port))
        };
        report.ports = self.sampler.ports().iter().map(tally).collect();
    }
}
