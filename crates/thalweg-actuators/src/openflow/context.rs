//! State shared by all connections: configuration, clock, counters and the listener for messages.

use std::convert::Infallible;

use crossbeam_channel::{Receiver, TryRecvError};
use thalweg_wire::openflow::{
    DatapathId, DecodeError, ErrorMessage, FlowRemoved, PacketIn, PortStatus, RoleRequest, Xid,
};

use super::clock::Clock;
use super::config::Config;
use super::counters::AtomicCounters;

/// What all connections have in common.
pub(super) struct Context {
    pub(super) config: Config,
    pub(super) clock: Clock,
    pub(super) counters: AtomicCounters,
    /// Disconnected to stop all threads.
    pub(super) stop: Receiver<Infallible>,
    pub(super) listener: Box<dyn Listener>,
}

/// A message that answers no pending request.
pub(super) enum SwitchMessage {
    PortStatus(PortStatus),
    FlowRemoved(FlowRemoved),
    Role(RoleRequest),
    Error { xid: Xid, error: ErrorMessage },
    Unreadable(DecodeError),
}

/// Receives messages of switches.
pub(super) trait Listener: Send + Sync {
    /// Receives a message; blocks until the queue has room.
    fn receive(&self, datapath: DatapathId, said: SwitchMessage);

    /// Receives a packet for the controller, if the queue has room. Returns whether it had.
    fn offer_packet(&self, datapath: DatapathId, packet: PacketIn) -> bool;
}

impl Context {
    /// Returns whether all threads should stop.
    pub(super) fn is_stopping(&self) -> bool {
        self.stop.try_recv() == Err(TryRecvError::Disconnected)
    }
}
