//! Events of switches.

use std::net::SocketAddr;

use thalweg_wire::openflow::multipart::{FlowStats, GroupDescription};
use thalweg_wire::openflow::{
    DatapathId, DecodeError, ErrorMessage, FlowRemoved, PacketIn, Port, PortStatus, RoleRequest,
    SwitchFeatures, Xid,
};

use crate::handshake::HandshakeError;
use crate::outcome::DownReason;
use crate::switch::Switch;

/// An event. Events of one switch come in order: up, its messages, down.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A switch is connected.
    Up(Box<Up>),
    /// A switch has disconnected. It keeps forwarding.
    Down {
        /// The switch.
        datapath: DatapathId,
        /// The reason.
        reason: DownReason,
    },
    /// A connection was not established.
    Refused {
        /// The address of the other side.
        peer: SocketAddr,
        /// The reason.
        error: HandshakeError,
    },
    /// A switch sent a packet to the controller.
    PacketIn {
        /// The switch.
        datapath: DatapathId,
        /// The packet.
        packet: PacketIn,
    },
    /// A port came, went or changed.
    PortStatus {
        /// The switch.
        datapath: DatapathId,
        /// The port and its state.
        status: PortStatus,
    },
    /// A flow entry was removed.
    FlowRemoved {
        /// The switch.
        datapath: DatapathId,
        /// The removed entry.
        flow: FlowRemoved,
    },
    /// A switch reported the role of this controller.
    Role {
        /// The switch.
        datapath: DatapathId,
        /// The role, and the latest generation id that any controller sent.
        role: RoleRequest,
    },
    /// A switch refused a message without a pending request: one sent without a barrier, or a further message of a
    /// batch that has already failed.
    Error {
        /// The switch.
        datapath: DatapathId,
        /// The transaction id of the message.
        xid: Xid,
        /// The reason.
        error: ErrorMessage,
    },
    /// A switch sent a message that could not be decoded. It was skipped.
    Unreadable {
        /// The switch.
        datapath: DatapathId,
        /// The decoding error.
        error: DecodeError,
    },
}

/// A connected switch, with its state at connection time.
#[derive(Clone, Debug)]
pub struct Up {
    /// The handle for sending to the switch.
    pub switch: Switch,
    /// Identity and features of the switch.
    pub features: SwitchFeatures,
    /// Its ports.
    pub ports: Vec<Port>,
    /// The flow entries selected by [`Config::read_back`](crate::Config::read_back).
    pub flows: Vec<FlowStats>,
    /// Its groups; empty if it does not support groups.
    pub groups: Vec<GroupDescription>,
}
