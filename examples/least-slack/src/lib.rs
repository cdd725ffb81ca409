//! Least slack time first, a scheme for `thalweg emulate` (Mittal, Agarwal, Ratnasamy, Shenker: "Universal Packet
//! Scheduling", NSDI 2016, section 2).
//!
//! Every packet carries its slack: the number of slots that it may still wait in queues. A router sends the packet
//! whose slack expires first, and subtracts its waiting time. The initial slack determines the behaviour: here the host
//! sets it to the transmission time of the rest of its flow, so that short flows go first.

use thalweg_config::keys;
use thalweg_config::kind::{Noted, Whole};
use thalweg_emulator::queues::backlog::Backlog;
use thalweg_emulator::queues::port_set::PortSet;
use thalweg_emulator::router::context::Context;
use thalweg_emulator::router::{Enqueue, Headers, OneQueue, Pattern, RouterPorts, Routing, Schedule, Store};
use thalweg_emulator::schemes::OwnScheme;
use thalweg_emulator::{Packet, Reason, Request};
use thalweg_experiment::experiment::own_scheme::DeclaredScheme;
use thalweg_network::PortIndex;

keys! {
    /// Least slack time first: the keys of `[scheme]` with `name = "least_slack"`.
    pub struct LeastSlack {
        /// Buffer of a port in packets. When it is full, the packet with the most slack is dropped.
        buffer: u32 [Noted(Whole(1, 4_096), " packets")] default "256",
        /// Bytes of a flow's rest that give a packet one slot of slack.
        bytes_per_slot: u32 [Noted(Whole(1, 1 << 20), " bytes")] default "1448",
    }
}

impl DeclaredScheme for LeastSlack {
    const NAME: &'static str = "least_slack";
    const SUMMARY: &'static str = "the packet that may wait for the shortest time first";
}

impl OwnScheme for LeastSlack {
    type Router = Pattern<Routing, OneQueue, DropMostSlack, ShortestSlackFirst, Waits, Slack>;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn room(&self) -> u64 {
        u64::from(self.buffer)
    }

    fn router(&self, routing: Routing, ports: RouterPorts<'_>) -> Self::Router {
        let buffer = self.buffer as usize;
        let store = Waits {
            ports: vec![Vec::with_capacity(buffer + 1); ports.ports()],
            backlogged: PortSet::new(ports.ports()),
        };
        let enqueue = DropMostSlack { buffer, bytes_per_slot: self.bytes_per_slot };
        let schedule = ShortestSlackFirst;
        Pattern { route: routing, classify: OneQueue, enqueue, schedule, store, headers: Slack }
    }
}

/// The packet header field. The host writes the bytes of the rest of the flow; the first router turns them into slack, in
/// slots, and sets the highest bit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slack;

const IS_SLACK: u32 = 1 << 31;

impl Headers for Slack {
    type Custom = u32;

    fn prepare_request(request: &Request) -> u32 {
        request.remaining & !IS_SLACK
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
    bytes_per_slot: u32,
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
        let slack = match packet.custom & IS_SLACK {
            0 => packet.custom / self.bytes_per_slot,
            _ => packet.custom & !IS_SLACK,
        };
        let deadline = context.now.0 + u64::from(slack);
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
pub struct ShortestSlackFirst;

impl Schedule<u32, Waits> for ShortestSlackFirst {
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
        packet.custom = IS_SLACK | deadline.saturating_sub(context.now.0) as u32;
        Some(packet)
    }
}
