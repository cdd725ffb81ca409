//! Redirection of flows to the scavenger queues of a network, while it runs (heavy-hitter dissertation, University of Virginia
//! 2018, section 3.2.2).
//!
//! All routers redirect the same flows. A router looks up the packets of all flows, but only while flows are redirected. What a
//! flow has sent is counted at the router of its source, which each of its packets passes once.
//!
//! **Release without reordering**: a flow can be released on the condition that none of its packets is queued. Links are first in,
//! first out, so packets on links stay behind those that have left the queues.

use thalweg_network::{EndpointId, PortIndex};
use thiserror::Error;

use crate::packet::Packet;
use crate::ports::tally::{PortTally, Traffic};
use crate::queues::backlog::Backlog;
use crate::ticks::Ticks;

/// The largest number of redirected flows in a network. A router needs 40 bytes for each.
pub const MAX_REDIRECTED: usize = 1 << 16;

/// The packets of a flow in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowDirection {
    /// The endpoint that sends them.
    pub source: EndpointId,
    /// The endpoint that receives them.
    pub destination: EndpointId,
    /// The number of the flow.
    pub flow: u32,
}

impl FlowDirection {
    /// Source, destination and flow in one word: [`Packet::who`].
    pub const fn who(self) -> u64 {
        Packet::new(self.source, self.destination, self.flow, 0, 0).who()
    }
}

/// Packets of a flow that were redirected, dropped ones included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Redirected {
    /// Packets and bytes.
    pub traffic: Traffic,
    /// When the first of them reached the scavenger queue.
    pub first: Option<Ticks>,
}

/// Why a flow cannot be redirected.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedirectError {
    /// The scheme has no scavenger queue.
    #[error("the scheme of the emulated network has no scavenger queue")]
    NoScavengerQueue,
    /// As many flows are redirected as possible.
    #[error("{MAX_REDIRECTED} flows are redirected in the emulated network, the maximum")]
    Full,
}

/// The result of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The flow is no longer redirected; it was so until now.
    Released(Redirected),
    /// The condition does not hold. The flow is still redirected.
    StillSending,
    /// The flow was not redirected.
    NotRedirected,
}

/// Counters of a queue of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueTally {
    /// Traffic sent.
    pub sent: Traffic,
    /// Packets dropped because the queue was full.
    pub dropped: u64,
    /// Packets and bytes queued.
    pub backlog: Backlog,
}

/// Counters of both queues of a port, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueTallies {
    /// The queue of all other packets.
    pub primary: QueueTally,
    /// The queue of redirected flows, and of packets of lower effort.
    pub scavenger: QueueTally,
}

impl std::ops::AddAssign for QueueTally {
    fn add_assign(&mut self, other: QueueTally) {
        self.sent += other.sent;
        self.dropped += other.dropped;
        self.backlog.packets += other.backlog.packets;
        self.backlog.bytes += other.backlog.bytes;
    }
}

impl std::ops::AddAssign for QueueTallies {
    fn add_assign(&mut self, other: QueueTallies) {
        self.primary += other.primary;
        self.scavenger += other.scavenger;
    }
}

/// A router that redirects flows to scavenger queues.
pub trait Redirector {
    /// Redirects a flow from the next packet on. If it is redirected already, its counters stay.
    ///
    /// # Errors
    /// If [`MAX_REDIRECTED`] flows are.
    fn redirect(&mut self, flow: FlowDirection) -> Result<(), RedirectError>;

    /// Releases a flow, in any case.
    fn release(&mut self, flow: FlowDirection);

    /// What was redirected of a flow; `None` if it is not redirected.
    fn redirected(&self, flow: FlowDirection) -> Option<Redirected>;

    /// Whether packets of a flow are in a scavenger queue. Iterates over all of them.
    fn has_queued(&self, flow: FlowDirection) -> bool;

    /// Counters of both queues of a port. `tally` is that of the port.
    fn queues(&self, port: PortIndex, tally: &PortTally) -> QueueTallies;
}
