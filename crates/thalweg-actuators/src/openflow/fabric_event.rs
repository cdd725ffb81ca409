//! Events of a fabric.

use std::fmt;
use std::net::SocketAddr;

use thalweg_control::routes::RuleFaults;
use thalweg_network::{LinkId, Node, RouterId, Topology};
use thalweg_wire::Nanos;
use thalweg_wire::openflow::DatapathId;

use thiserror::Error;

use super::HandshakeError;
use super::{DownReason, Failure};
use crate::ActionId;

/// An event of a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FabricEvent {
    /// A switch is connected.
    Up {
        /// The switch.
        router: RouterId,
        /// Number of Thalweg's entries that it already had.
        entries: usize,
    },
    /// A switch has disconnected. It keeps forwarding.
    Down {
        /// The switch.
        router: RouterId,
        /// The reason.
        reason: DownReason,
    },
    /// A switch has connected that is not part of the network. It is left alone.
    UnknownSwitch {
        /// Its datapath id.
        datapath: DatapathId,
    },
    /// A connection was not established.
    Refused {
        /// The address of the other side.
        peer: SocketAddr,
        /// Why not.
        error: HandshakeError,
    },
    /// The first switch of a pair has carried out an action.
    Rerouted {
        /// The action.
        action: ActionId,
        /// Time from just before the write of the flow-mod until the answer to its barrier.
        took: Nanos,
    },
    /// This daemon became the master of the switches, or lost that role.
    Mastership(MastershipChange),
    /// A link went down or came up, according to the port status at its ends.
    LinkChanged {
        /// The link.
        link: LinkId,
        /// Whether it is up.
        is_up: bool,
    },
    /// A switch does not have all ports of the topology. Their links are down, and no entry uses them.
    MissingPorts {
        /// The switch.
        router: RouterId,
        /// The missing ports.
        missing: String,
        /// The names that the switch reports.
        known: Vec<String>,
    },
    /// Others have changed the entries of a connected switch. They are being repaired.
    Repaired {
        /// The switch.
        router: RouterId,
        /// What was wrong.
        faults: RuleFaults,
    },
    /// A switch has not carried out a batch. Its entries are read back and repaired.
    Failed {
        /// The switch.
        router: RouterId,
        /// The action; `None` for routes.
        action: Option<ActionId>,
        /// Why not.
        failure: Failure,
    },
}

/// A change of the mastership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MastershipChange {
    /// This daemon is the master now.
    #[error("this daemon is now the master of the switches")]
    Claimed,
    /// Another daemon is the master.
    #[error("another daemon is now the master of the switches: this one is a standby")]
    LostToOther,
    /// No switch has confirmed the role in time.
    #[error("no switch confirmed the role of master in time: this daemon is a standby")]
    LostTouch,
}

impl MastershipChange {
    /// Returns whether this daemon is the master now.
    pub fn is_master(self) -> bool {
        self == MastershipChange::Claimed
    }
}

impl FabricEvent {
    /// Returns a description of the event.
    pub fn describe<'a>(&'a self, topology: &'a Topology) -> impl fmt::Display + 'a {
        let name = |router: RouterId| topology.name(Node::Router(router));
        fmt::from_fn(move |f| match self {
            FabricEvent::Up { router, entries } => {
                write!(f, "{} connected: {entries} entries already installed", name(*router))
            }
            FabricEvent::Down { router, reason } => {
                write!(f, "{} disconnected: {reason}", name(*router))
            }
            FabricEvent::UnknownSwitch { datapath } => {
                write!(f, "switch {datapath} connected but is not part of the network: ignored")
            }
            FabricEvent::Refused { peer, error } => write!(f, "connection with {peer} failed: {error}"),
            FabricEvent::Rerouted { action, took } => write!(f, "action {} installed after {took}", action.0),
            FabricEvent::Mastership(change) => write!(f, "{change}"),
            FabricEvent::LinkChanged { link, is_up } => {
                let ends = topology.links()[link.index()].ends.map(|end| topology.name(end.node));
                write!(f, "link {} - {} is {}", ends[0], ends[1], if *is_up { "up" } else { "down" })
            }
            FabricEvent::MissingPorts { router, missing, known } => {
                let known = match known.as_slice() {
                    [] => "no ports".to_owned(),
                    known => format!("the ports {}", known.join(", ")),
                };
                write!(f, "{} lacks {missing}: it has {known}", name(*router))
            }
            FabricEvent::Repaired { router, faults } => {
                write!(f, "{}: entries changed by others, repairing: {faults}", name(*router))
            }
            FabricEvent::Failed { router, action: Some(action), failure } => {
                write!(f, "{} did not carry out action {}: {failure}", name(*router), action.0)
            }
            FabricEvent::Failed { router, action: None, failure } => {
                write!(f, "{} did not install its routes, retrying: {failure}", name(*router))
            }
        })
    }
}
