//! The interface of the core: batches of abstract packets in, batches of outcomes out (Flexplane, figure 1: convey,
//! emulate, reflect). Its users (emulated hosts in virtual time, endpoints with real packets in real time) do not know
//! which scheme runs. One virtual call per batch, none per packet.

use thalweg_network::routing::ForwardingTable;
use thalweg_network::{EndpointId, LinkId, LinkState, PortIndex, RouterId, Topology};

use crate::outcome::{Outcome, Request};
use crate::ports::monitor::{Mirrored, MonitorTally};
use crate::ports::queue_span::QueueSpan;
use crate::ports::tally::PortTally;
use crate::queues::backlog::Backlog;
use crate::redirection::{FlowDirection, QueueTallies, RedirectError, Redirected, Release};
use crate::router::classes::ClassCounts;
use crate::slot::{Slot, SlotClock};

/// An emulated network, independent of its scheme.
pub trait Fabric {
    /// The slot clock.
    fn clock(&self) -> SlotClock;

    /// The slot that [`advance`](Fabric::advance) will run next.
    fn now(&self) -> Slot;

    /// Hands packets to the network interfaces of their sources, in this order. A full interface queue drops the
    /// packet; the outcome appears in the next slot.
    fn inject(&mut self, requests: &[Request]);

    /// The number of bytes in the queue of an endpoint's network interface.
    fn backlog(&self, endpoint: EndpointId) -> u64;

    /// Runs one timeslot and appends the packets that left the emulation to `outcomes`: first dropped, then delivered
    /// ones.
    fn advance(&mut self, outcomes: &mut Vec<Outcome>);
}

/// An emulated network as an operator sees and controls it.
pub trait Network: Fabric {
    /// The topology.
    fn topology(&self) -> &Topology;

    /// The state of all links.
    fn links(&self) -> &LinkState;

    /// Takes a link down in both directions and drops the packets on it and in its queues. Routing does not change
    /// before [`rewire`](Network::rewire).
    fn fail(&mut self, link: LinkId);

    /// Brings a link up again.
    fn repair(&mut self, link: LinkId);

    /// Installs shortest paths over the links that are up in all routers.
    fn rewire(&mut self);

    /// Sets or removes the forwarding table of a router. It has precedence over shortest paths.
    fn set_forwarding(&mut self, router: RouterId, table: Option<ForwardingTable>);

    /// The queue of a router's port.
    fn port_backlog(&self, router: RouterId, port: PortIndex) -> Backlog;

    /// Looks at the queue of a router's port in each slot from now on.
    ///
    /// # Panics
    /// If there is no such router.
    fn watch_queue(&mut self, router: RouterId, port: PortIndex);

    /// Takes what was seen of a watched queue since the last call; nothing of others.
    fn take_queue_span(&mut self, router: RouterId, port: PortIndex) -> QueueSpan;

    /// Appends what the classes of a watched port's scheduler did since the last call, in order. Nothing unless the network
    /// counts [by class](crate::core::blueprint::Blueprint::counts_classes) and the scheme has classes.
    fn take_classes(&mut self, router: RouterId, port: PortIndex, into: &mut Vec<ClassCounts>);

    /// Counters of a port of a router.
    fn port_tally(&self, router: RouterId, port: PortIndex) -> PortTally;

    /// Counters of an endpoint's network interface.
    fn interface_tally(&self, endpoint: EndpointId) -> PortTally;

    /// Counters of a router's monitor port, if it has one.
    fn monitor_tally(&self, router: RouterId) -> Option<MonitorTally>;

    /// Moves the packets that monitor ports have sent since the last call to `into`.
    fn take_mirrored(&mut self, into: &mut Vec<Mirrored>);

    /// Redirects a flow to the scavenger queues of all routers, from the next slot on. If it is redirected already, its counters stay.
    ///
    /// # Errors
    /// If the scheme has no scavenger queue, or [`MAX_REDIRECTED`](crate::redirection::MAX_REDIRECTED) flows are redirected.
    fn redirect(&mut self, flow: FlowDirection) -> Result<(), RedirectError>;

    /// Releases a flow. With `if_packets` only if exactly this many of its packets were redirected and none of them is queued: then
    /// no packet of the flow overtakes another.
    ///
    /// # Panics
    /// If there is no such source.
    fn release(&mut self, flow: FlowDirection, if_packets: Option<u64>) -> Release;

    /// What was redirected of a flow, counted at the router of its source; `None` if it is not redirected.
    ///
    /// # Panics
    /// If there is no such source.
    fn redirected(&mut self, flow: FlowDirection) -> Option<Redirected>;

    /// Counters of both queues of a port; `None` if the scheme has no scavenger queue.
    fn queue_tallies(&mut self, router: RouterId, port: PortIndex) -> Option<QueueTallies>;

    /// Runs slots up to `until` with packets that do not depend on outcomes. `next` appends the packets of a slot, for one slot after the
    /// other. The outcomes of all slots are appended in any order.
    fn advance_open_loop(
        &mut self,
        until: Slot,
        next: &mut dyn FnMut(Slot, &mut Vec<Request>),
        outcomes: &mut Vec<Outcome>,
    ) {
        let mut requests = Vec::new();
        while self.now() < until {
            requests.clear();
            next(self.now(), &mut requests);
            self.inject(&requests);
            self.advance(outcomes);
        }
    }

    /// Continues with slot `next`, as if all slots before it had run. Only while no packet is in the network, whose state
    /// does not change by itself then: schemes look at the time when they have a packet.
    fn skip_to(&mut self, next: Slot) {
        let mut outcomes = Vec::new();
        while self.now() < next {
            self.advance(&mut outcomes);
        }
        debug_assert!(outcomes.is_empty(), "only the slots of an empty network can be skipped");
    }

    /// The number of packets that were injected and neither arrived nor were dropped.
    fn in_flight(&self) -> u64;
}
