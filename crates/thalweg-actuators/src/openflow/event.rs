//! What is told: of switches, and of what they were asked to do.

use std::net::SocketAddr;

use thalweg_wire::openflow::multipart::{FlowStats, GroupDescription};
use thalweg_wire::openflow::{
    DatapathId, DecodeError, ErrorMessage, FlowRemoved, PacketIn, Port, PortStatus, SwitchFeatures, Xid,
};

use super::handshake::HandshakeError;
use super::outcome::DownReason;
use super::switch::Switch;

/// What happened. Of one switch they come in order: up, what it says, down.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A switch is connected.
    Up(Box<Up>),
    /// A switch is no longer. It goes on forwarding as it was told.
    Down {
        /// Which.
        datapath: DatapathId,
        /// Why.
        reason: DownReason,
    },
    /// A connection did not come up.
    Refused {
        /// From where, or to where, it was.
        peer: SocketAddr,
        /// Why not.
        error: HandshakeError,
    },
    /// A switch sends a packet.
    PacketIn {
        /// Which switch.
        datapath: DatapathId,
        /// The packet.
        packet: PacketIn,
    },
    /// A port came, went or changed.
    PortStatus {
        /// Of which switch.
        datapath: DatapathId,
        /// Which port, and how it is.
        status: PortStatus,
    },
    /// A flow entry is no more.
    FlowRemoved {
        /// Of which switch.
        datapath: DatapathId,
        /// What it was.
        flow: FlowRemoved,
    },
    /// A switch refused a message that nobody waits for: one sent without a barrier, or one of a batch of which another
    /// message was refused before.
    Error {
        /// Which switch.
        datapath: DatapathId,
        /// The message's.
        xid: Xid,
        /// Why.
        error: ErrorMessage,
    },
    /// A switch sent a message that could not be decoded. It was passed over.
    Unreadable {
        /// Which switch.
        datapath: DatapathId,
        /// What is wrong with it.
        error: DecodeError,
    },
}

/// A switch that is connected, and how it was when it connected.
#[derive(Clone, Debug)]
pub struct Up {
    /// To speak to it.
    pub switch: Switch,
    /// Who it is.
    pub features: SwitchFeatures,
    /// Its ports.
    pub ports: Vec<Port>,
    /// Flow entries that it has, of those that were to be read back.
    pub flows: Vec<FlowStats>,
    /// Groups that it has; none if it knows no groups.
    pub groups: Vec<GroupDescription>,
}
