//! The seam of the core: batches of abstract packets in, batches of outcomes out (Flexplane, figure 1:
//! convey, emulate, reflect). Whoever stands at it (emulated hosts in virtual time, endpoints with real packets
//! in real time) does not know which scheme runs: one virtual call a batch, none a packet.

use thalweg_network::routing::ForwardingTable;
use thalweg_network::{EndpointId, LinkId, LinkState, PortIndex, RouterId, Topology};

use crate::outcome::{Outcome, Request};
use crate::ports::monitor::{Mirrored, MonitorTally};
use crate::ports::tally::PortTally;
use crate::queues::backlog::Backlog;
use crate::slot::{Slot, SlotClock};

/// An emulated network, with its scheme hidden.
pub trait Fabric {
    /// The length of a slot.
    fn clock(&self) -> SlotClock;

    /// The slot that [`advance`](Fabric::advance) will run next.
    fn now(&self) -> Slot;

    /// Hands packets to the network interfaces of their sources, in this order. A packet that finds its interface's
    /// queue full is dropped there; this shows among the outcomes of the next slot.
    fn inject(&mut self, requests: &[Request]);

    /// Bytes that wait in the queue of an endpoint's network interface.
    fn backlog(&self, endpoint: EndpointId) -> u64;

    /// Runs one timeslot, and adds what left the emulation by its end to `outcomes`: first what was dropped, then what
    /// arrived.
    fn advance(&mut self, outcomes: &mut Vec<Outcome>);
}

/// What can be seen of an emulated network, and done to it, beside sending packets through it.
pub trait Network: Fabric {
    /// Who is attached to whom.
    fn topology(&self) -> &Topology;

    /// Which links are up.
    fn links(&self) -> &LinkState;

    /// Takes a link down, in both directions: what is on it, and what waits for it, is dropped. Routing does not know
    /// of it before [`rewire`](Network::rewire).
    fn fail(&mut self, link: LinkId);

    /// Brings a link up again.
    fn repair(&mut self, link: LinkId);

    /// Tells all routers the shortest paths over the links that are up.
    fn rewire(&mut self);

    /// Sets the forwarding table that a router goes by before shortest paths, or takes it away.
    fn set_forwarding(&mut self, router: RouterId, table: Option<ForwardingTable>);

    /// What waits at a port of a router.
    fn port_backlog(&self, router: RouterId, port: PortIndex) -> Backlog;

    /// Counters of a port of a router.
    fn port_tally(&self, router: RouterId, port: PortIndex) -> PortTally;

    /// Counters of an endpoint's network interface.
    fn interface_tally(&self, endpoint: EndpointId) -> PortTally;

    /// Counters of a router's monitor port, if it has one.
    fn monitor_tally(&self, router: RouterId) -> Option<MonitorTally>;

    /// Moves what monitor ports have sent since this was last asked to `into`.
    fn take_mirrored(&mut self, into: &mut Vec<Mirrored>);

    /// Packets that have been injected and have neither arrived nor been dropped.
    fn in_flight(&self) -> u64;
}
