//! What the daemon tells without being asked.

use std::sync::Arc;

use thalweg_control::decide::Decision;
use thalweg_measure::collector::{AddressChange, LinkEvent};
use thalweg_measure::detect::Finding;
use thalweg_wire::Timestamp;

use super::collectors::CollectorState;
use super::control::ActionReport;
use super::names::Names;

/// Something that happened at a collector, or that the controller did.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Name of the collector; `control` of the controller.
    pub collector: Arc<str>,
    /// Name of the switch that it watches; of the controller, where the flow begins.
    pub switch: Arc<str>,
    /// Packet time of what happened.
    pub time: Timestamp,
    /// When it was told: by the clock of this machine for live sources. Packet time for files and emulations, so that
    /// a repeated run tells the same to the byte.
    pub emitted: Timestamp,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// The utilisation of a link crossed a threshold.
    Link(LinkEvent),
    /// Packets of a flow have other addresses than those before: it goes another way.
    AddressChange(AddressChange),
    /// A flow became a cheetah, or one that was has ended.
    Cheetah(Finding),
    /// A collector is in another state.
    State(CollectorState),
    /// The controller sends a flow another way.
    Decision(Decision, Arc<Names>),
    /// What came of that.
    Action(ActionReport, Arc<Names>),
}
