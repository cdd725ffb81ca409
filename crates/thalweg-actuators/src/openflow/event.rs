//! What is told: of switches, and of what they were asked to do.

use std::fmt;
use std::net::SocketAddr;

use thalweg_wire::Nanos;
use thalweg_wire::openflow::multipart::{FlowStats, GroupDescription};
use thalweg_wire::openflow::{
    DatapathId, DecodeError, ErrorMessage, FlowRemoved, PacketIn, Port, PortStatus, SwitchFeatures, Xid,
};
use thiserror::Error;

use super::handshake::HandshakeError;
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

/// Why a connection ended.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DownReason {
    /// The switch closed it.
    #[error("closed by the switch")]
    Closed,
    /// It broke.
    #[error("connection broken: {0}")]
    Broken(String),
    /// The switch did not answer an echo request.
    #[error("no answer to an echo request")]
    Silent,
    /// What it sent is no OpenFlow any more: its next message cannot be told.
    #[error("not OpenFlow: {0}")]
    Unreadable(DecodeError),
    /// The switch has connected anew.
    #[error("replaced by a newer connection")]
    Replaced,
    /// All connections are closed.
    #[error("closed by us")]
    Stopped,
}

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The batch: the xid of its barrier.
    pub xid: Xid,
    /// Whether all of it was carried out.
    pub result: Result<(), Failure>,
    /// From before it was written until this was known.
    pub took: Nanos,
}

/// Why a batch was not carried out, or a question not answered.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The switch refused a message. Others of the batch may have been carried out.
    #[error("message {position} of the batch (xid {xid}) was refused: {error}")]
    Refused {
        /// Which message of the batch, counted from 0.
        position: u32,
        /// Its xid.
        xid: Xid,
        /// Why.
        error: ErrorMessage,
    },
    /// There was no answer by the deadline. It may still be carried out.
    #[error("no answer by the deadline")]
    Late,
    /// The answer takes more messages than [`super::Config::max_answer_parts`].
    #[error("the answer is too long")]
    TooLong,
    /// The connection ended. It may have been carried out.
    #[error("the connection ended")]
    Down,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.result {
            Ok(()) => write!(f, "batch {} done after {}", self.xid, self.took),
            Err(failure) => write!(f, "batch {} failed after {}: {failure}", self.xid, self.took),
        }
    }
}
