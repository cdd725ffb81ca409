//! What is asked of the network, a packet to send, and what becomes of it.

use thalweg_network::{EndpointId, PortIndex, RouterId};

use crate::packet::Packet;

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
