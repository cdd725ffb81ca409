//! Rerouting by OpenFlow 1.3: routes and rerouted pairs as entries of all switches.
//!
//! [`Fabric`] manages all switches of a network over the connections of [`thalweg_openflow`], with the routes and rerouted
//! pairs that they should have ([`entries`]). Isolation uses the same election and sessions, with one switch.

mod audit;
pub(crate) mod election;
pub mod entries;
mod fabric;
mod fabric_event;
pub(crate) mod generation;
mod links;
mod ports;
mod report;
pub(crate) mod session;
mod table;
#[cfg(test)]
pub(crate) mod tests;

pub use fabric::{Fabric, Member};
pub use fabric_event::{FabricEvent, MastershipChange};
pub use ports::PortReference;
pub use report::{FabricCounters, SwitchesReport};
pub use thalweg_openflow::{
    BackOff, Config, Counters, DownReason, Event, Failure, HandshakeError, OpenFlowError, Outcome,
    PendingAnswer, PendingBatch, PendingFlows, PendingQueues, ReadBack, SendError, Switch,
    SwitchRequestError, Switches, Tls, TlsError, Up,
};
