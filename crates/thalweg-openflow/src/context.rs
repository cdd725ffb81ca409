//! State shared by all connections: configuration, clock, counters and the listener for messages.

use std::convert::Infallible;

use crossbeam_channel::{Receiver, TryRecvError};
use thalweg_wire::openflow::{
    DatapathId, DecodeError, ErrorMessage, FlowRemoved, PacketIn, PortStatus, RoleRequest, Xid,
};

use crate::clock::Clock;
use crate::config::Config;
use crate::counters::AtomicCounters;

/// What all connections have in common.
pub(crate) struct Context {
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) counters: AtomicCounters,
    /// Disconnected to stop all threads.
    pub(crate) stop: Receiver<Infallible>,
    pub(crate) listener: Box<dyn Listener>,
}

/// A message that answers no pending request.
pub(crate) enum SwitchMessage {
    PortStatus(PortStatus),
    FlowRemoved(FlowRemoved),
    Role(RoleRequest),
    Error { xid: Xid, error: ErrorMessage },
    Unreadable(DecodeError),
}

/// Receives messages of switches.
pub(crate) trait Listener: Send + Sync {
    /// Receives a message; blocks until the queue has room.
    fn receive(&self, datapath: DatapathId, said: SwitchMessage);

    /// Receives a packet for the controller, if the queue has room. Returns whether it had.
    fn offer_packet(&self, datapath: DatapathId, packet: PacketIn) -> bool;
}

impl Context {
    /// Returns whether all threads should stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.try_recv() == Err(TryRecvError::Disconnected)
    }
}
