//! What a fabric tells.

use std::fmt;
use std::net::SocketAddr;

use thalweg_network::{Node, RouterId, Topology};
use thalweg_wire::Nanos;
use thalweg_wire::openflow::DatapathId;

use super::handshake::HandshakeError;
use super::outcome::{DownReason, Failure};
use crate::ActionId;

/// What has happened to the switches of a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum News {
    /// A switch is connected.
    Up {
        /// Which.
        router: RouterId,
        /// How many entries of ours it had.
        entries: usize,
    },
    /// A switch is no longer. It goes on forwarding.
    Down {
        /// Which.
        router: RouterId,
        /// Why.
        reason: DownReason,
    },
    /// A switch is connected that is not one of the network's. It is left alone.
    Stranger {
        /// Its number.
        datapath: DatapathId,
    },
    /// A connection did not come up.
    Refused {
        /// With whom.
        peer: SocketAddr,
        /// Why not.
        error: HandshakeError,
    },
    /// The first switch of a pair has carried an action out.
    Steered {
        /// The action.
        action: ActionId,
        /// From before the flow-mod was written until its barrier was answered.
        took: Nanos,
    },
    /// A switch has not carried out what it was told. It is asked what it has, and told what it lacks.
    Failed {
        /// Which.
        router: RouterId,
        /// The action that it was; `None` if it was routes.
        action: Option<ActionId>,
        /// Why not.
        failure: Failure,
    },
}

impl News {
    /// As people read it.
    pub fn describe<'a>(&'a self, topology: &'a Topology) -> impl fmt::Display + 'a {
        let name = |router: RouterId| topology.name(Node::Router(router));
        fmt::from_fn(move |f| match self {
            News::Up { router, entries } => {
                write!(f, "{} is connected, with {entries} entries of ours", name(*router))
            }
            News::Down { router, reason } => {
                write!(f, "{} is not connected any more: {reason}", name(*router))
            }
            News::Stranger { datapath } => {
                write!(f, "switch {datapath} is connected, and none of the network's")
            }
            News::Refused { peer, error } => write!(f, "{peer} is no switch to speak to: {error}"),
            News::Steered { action, took } => write!(f, "action {} installed after {took}", action.0),
            News::Failed { router, action: Some(action), failure } => {
                write!(f, "{} has not carried out action {}: {failure}", name(*router), action.0)
            }
            News::Failed { router, action: None, failure } => {
                write!(f, "{} has not taken its routes: {failure}", name(*router))
            }
        })
    }
}
