//! What the daemon tells without being asked.

use std::sync::Arc;

use thalweg_control::control_loop::ActionReport;
use thalweg_control::decide::Decision;
use thalweg_measure::collector::{AddressChange, Crossing, LinkEvent};
use thalweg_measure::detect::Finding;
use thalweg_wire::Timestamp;

use super::config::Trigger;
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

/// What a collector is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CollectorState {
    /// Its source is being opened.
    #[default]
    Starting,
    /// It reads packets.
    Running,
    /// Its source has come to its end: a file, or an emulation. It still answers.
    Ended,
    /// Its source cannot be opened, or could not go on; it is tried again.
    Failed {
        /// Why.
        error: String,
        /// When it is tried again, by the clock of this machine; `None` if it is not.
        retry_at: Option<Timestamp>,
    },
    /// It was told to stop, and has handed on everything.
    Stopped,
}

impl EventKind {
    /// What of that makes samples be written, if it is to.
    pub(crate) const fn trigger(&self) -> Option<Trigger> {
        match self {
            EventKind::Link(LinkEvent { crossing: Crossing::Upwards, .. }) => Some(Trigger::Congestion),
            EventKind::Link(LinkEvent { crossing: Crossing::Downwards, .. }) => Some(Trigger::Relief),
            EventKind::Cheetah(Finding::Began(_)) => Some(Trigger::Cheetah),
            _ => None,
        }
    }
}

impl CollectorState {
    /// All names.
    pub const NAMES: [&'static str; 5] = ["starting", "running", "ended", "failed", "stopped"];

    /// Its name in JSON, metrics and logs.
    pub const fn name(&self) -> &'static str {
        match self {
            CollectorState::Starting => "starting",
            CollectorState::Running => "running",
            CollectorState::Ended => "ended",
            CollectorState::Failed { .. } => "failed",
            CollectorState::Stopped => "stopped",
        }
    }
}
