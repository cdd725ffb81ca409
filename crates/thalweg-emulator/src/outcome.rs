//! Requests to send packets, and their outcomes.

use thalweg_network::{EndpointId, PortIndex, RouterId};

use crate::packet::Packet;

/// A request to send a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The packet, without the scheme's own fields.
    pub packet: Packet,
    /// Bytes of its flow that are not acknowledged yet, including this packet: pFabric's priority.
    pub remaining: u32,
}

/// The place where a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The queue of its source's network interface, or the link from it.
    Endpoint(EndpointId),
    /// An output port of a router, or the link at it.
    Port(RouterId, PortIndex),
    /// A router that had no port for the packet.
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
    /// A packet of higher priority displaced it (pFabric).
    Displaced,
    /// The link was down, or went down while the packet was on it.
    LinkDown,
    /// No path leads to its destination.
    NoRoute,
    /// The ring to another core was full. Only in real time.
    Overload,
    /// The random loss of the link.
    LinkLoss,
}

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Reason; 7] = [
        Reason::Full,
        Reason::Early,
        Reason::Displaced,
        Reason::LinkDown,
        Reason::NoRoute,
        Reason::Overload,
        Reason::LinkLoss,
    ];

    /// The name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Full => "full",
            Reason::Early => "early",
            Reason::Displaced => "displaced",
            Reason::LinkDown => "link_down",
            Reason::NoRoute => "no_route",
            Reason::Overload => "overload",
            Reason::LinkLoss => "link_loss",
        }
    }
}

/// A packet that did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The packet, with its marks.
    pub packet: Packet,
    /// The place.
    pub place: Place,
    /// The reason.
    pub reason: Reason,
}

/// The outcome for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The packet reached its destination.
    Delivered,
    /// The packet was dropped.
    Dropped(Place, Reason),
}

/// A packet that left the emulation. Its traffic class contains the marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The packet as its destination sees it, with the headers from the scheme's `prepare_to_send`.
    pub packet: Packet,
    /// Its outcome.
    pub fate: Fate,
}
