//! What all connections have in common: how they are configured, what is counted, and who hears what switches say.

use std::convert::Infallible;

use crossbeam_channel::{Receiver, TryRecvError};
use thalweg_wire::openflow::{DatapathId, DecodeError, ErrorMessage, FlowRemoved, PacketIn, PortStatus, Xid};

use super::clock::Clock;
use super::config::Config;
use super::counters::Counting;

/// What all connections have in common.
pub(super) struct Context {
    pub(super) config: Config,
    pub(super) clock: Clock,
    pub(super) counting: Counting,
    /// Disconnected when all is to stop.
    pub(super) stop: Receiver<Infallible>,
    pub(super) listener: Box<dyn Listener>,
}

/// What a switch says of its own accord, or that nobody waits for.
pub(super) enum Said {
    PortStatus(PortStatus),
    FlowRemoved(FlowRemoved),
    Error { xid: Xid, error: ErrorMessage },
    Unreadable(DecodeError),
}

/// Who hears what switches say.
pub(super) trait Listener: Send + Sync {
    /// Takes it, and waits until there is room for it.
    fn hear(&self, datapath: DatapathId, said: Said);

    /// Takes a packet for the controller, if there is room. Says whether there was.
    fn offer_packet(&self, datapath: DatapathId, packet: PacketIn) -> bool;
}

impl Context {
    /// Whether all is to stop.
    pub(super) fn is_stopping(&self) -> bool {
        self.stop.try_recv() == Err(TryRecvError::Disconnected)
    }
}
