//! An example of a custom scheme: least slack time first (Mittal, Agarwal, Ratnasamy, Shenker: "Universal Packet
//! Scheduling", NSDI 2016, section 2).
//!
//! Every packet carries its slack: the number of slots that it may still wait in queues. A router sends the packet
//! whose slack expires first, and subtracts its waiting time. The initial slack determines the behaviour: here the host
//! sets it to the transmission time of the rest of its flow, so that short flows go first.

use thalweg_emulator::queues::backlog::Backlog;
use thalweg_emulator::queues::port_set::PortSet;
use thalweg_emulator::router::context::Context;
use thalweg_emulator::router::{Enqueue, Headers, OneQueue, Pattern, RouterPorts, Schedule, Store};
use thalweg_emulator::{Packet, Reason, Request};
use thalweg_network::PortIndex;

/// The packet header field: slack, in slots.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slack;

impl Headers for Slack {
    type Custom = u32;

    fn prepare_request(request: &Request) -> u32 {
        request.remaining / 1_448
    }
}

/// A queued packet, and the slot in which its slack expires.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    packet: Packet<u32>,
    deadline: u64,
}

/// The queued packets of each port, in order of arrival.
#[derive(Clone, Debug)]
pub struct Waits {
    ports: Vec<Vec<Waiting>>,
    backlogged: PortSet,
}

impl Waits {
    fn remove(&mut self, port: PortIndex, index: usize) -> Packet<u32> {
        let waiting = self.ports[port.index()].remove(index).packet;
        self.backlogged.remove_if(port, self.ports[port.index()].is_empty());
        waiting
    }
}

impl Store for Waits {
    fn backlogged(&self) -> &PortSet {
        &self.backlogged
    }

    fn backlog(&self, port: PortIndex) -> Backlog {
        let waiting = &self.ports[port.index()];
        let bytes = waiting.iter().map(|waiting| u64::from(waiting.packet.length())).sum();
        Backlog { packets: waiting.len() as u32, bytes }
    }

    fn take_any(&mut self, port: PortIndex) -> Option<Packet> {
        (!self.ports[port.index()].is_empty()).then(|| self.remove(port, 0).with_custom(()))
    }
}

/// Drops the packet with the most slack when the queue is full.
#[derive(Clone, Copy, Debug)]
pub struct DropMostSlack {
    buffer: usize,
}

impl Enqueue<u32, Waits> for DropMostSlack {
    fn enqueue(
        &mut self,
        packet: Packet<u32>,
        port: PortIndex,
        _queue: usize,
        store: &mut Waits,
        context: &mut Context<'_>,
    ) {
        let deadline = context.now.0 + u64::from(packet.custom);
        store.ports[port.index()].push(Waiting { packet, deadline });
        store.backlogged.insert(port);
        let waiting = &store.ports[port.index()];
        if waiting.len() > self.buffer
            && let Some((last, _)) = waiting.iter().enumerate().max_by_key(|(_, waiting)| waiting.deadline)
        {
            let dropped = store.remove(port, last);
            context.drop(dropped, port, Reason::Displaced);
        }
    }
}

/// Sends the packet whose slack expires first.
#[derive(Clone, Copy, Debug)]
pub struct LeastSlack;

impl Schedule<u32, Waits> for LeastSlack {
    fn schedule(
        &mut self,
        port: PortIndex,
        store: &mut Waits,
        context: &mut Context<'_>,
    ) -> Option<Packet<u32>> {
        let waiting = store.ports[port.index()].iter().enumerate();
        let (first, deadline) =
            waiting.map(|(index, w)| (index, w.deadline)).min_by_key(|&(_, deadline)| deadline)?;
        let mut packet = store.remove(port, first);
        packet.custom = deadline.saturating_sub(context.now.0) as u32;
        Some(packet)
    }
}

/// Creates a least-slack router with a queue of `buffer` packets per port.
pub fn least_slack<R>(
    route: R,
    ports: RouterPorts<'_>,
    buffer: usize,
) -> Pattern<R, OneQueue, DropMostSlack, LeastSlack, Waits, Slack> {
    let store = Waits {
        ports: vec![Vec::with_capacity(buffer + 1); ports.ports()],
        backlogged: PortSet::new(ports.ports()),
    };
    let enqueue = DropMostSlack { buffer };
    Pattern { route, classify: OneQueue, enqueue, schedule: LeastSlack, store, headers: Slack }
}
