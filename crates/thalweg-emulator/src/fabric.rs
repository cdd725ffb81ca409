//! The seam of the core: batches of abstract packets in, batches of outcomes out (Flexplane, figure 1:
//! convey, emulate, reflect). Whoever stands at it (emulated hosts in virtual time, endpoints with real packets
//! in real time) does not know which scheme runs: one virtual call a batch, none a packet.

use thalweg_network::routing::ForwardingTable;
use thalweg_network::{EndpointId, LinkId, LinkState, PortIndex, RouterId, Topology};

use crate::core::bank::Backlog;
use crate::core::monitor::{Mirrored, MonitorTally};
use crate::core::tally::PortTally;
use crate::packet::Packet;
use crate::slot::{Slot, SlotClock};

/// A packet that an endpoint wants to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The packet, without the scheme's own fields.
    pub packet: Packet,
    /// Bytes of its flow that have not been acknowledged yet, this packet's included: what pFabric takes as priority.
    pub remaining: u32,
}

/// Where a packet was when it was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// In the queue of its source's network interface, or on the link from it.
    Endpoint(EndpointId),
    /// At an output port of a router, or on the link that it leads to.
    Port(RouterId, PortIndex),
    /// In a router, which had no port for it.
    Router(RouterId),
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Reason {
    /// The queue or the buffer was full.
    Full,
    /// Active queue management dropped it early (RED, PIE, CoDel).
    Early,
    /// A packet of higher priority took its place (pFabric).
    Displaced,
    /// The link was down, or went down while the packet was on it.
    LinkDown,
    /// No way leads to its destination.
    NoRoute,
}

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Reason; 5] =
        [Reason::Full, Reason::Early, Reason::Displaced, Reason::LinkDown, Reason::NoRoute];

    /// As tables and files call it.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Full => "full",
            Reason::Early => "early",
            Reason::Displaced => "displaced",
            Reason::LinkDown => "link_down",
            Reason::NoRoute => "no_route",
        }
    }
}

/// A packet that did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The packet, with the marks it had by then.
    pub packet: Packet,
    /// Where it was.
    pub place: Place,
    /// Why.
    pub reason: Reason,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It reached its destination.
    Delivered,
    /// It did not.
    Dropped(Place, Reason),
}

/// A packet that has left the emulation. Marks are in its traffic class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The packet as its destination would see it: headers as the scheme's `prepare_to_send` left them.
    pub packet: Packet,
    /// What became of it.
    pub fate: Fate,
}

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
