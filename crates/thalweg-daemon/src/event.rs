//! Events that the daemon publishes.

use std::sync::Arc;

use thalweg_api::EventBody;
use thalweg_control::control_loop::ActionReport;
use thalweg_control::decide::Decision;
use thalweg_control::isolate::RedirectionReport;
use thalweg_control::routes::RuleFaults;
use thalweg_measure::collector::{AddressChange, CongestionChange, CongestionEvent};
use thalweg_measure::detect::Finding;
use thalweg_measure::tasks::{FlowName, TaskResult, TaskSpec, TaskValue};
use thalweg_sketch::{Bound, Estimate};
use thalweg_wire::Timestamp;

use super::config::Trigger;
use super::names::Names;

/// An event of a collector or of the controller.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Name of the collector; `control` for the controller.
    pub collector: Arc<str>,
    /// Name of the collector's switch; for the controller, that of the source host or the switch concerned.
    pub switch: Arc<str>,
    /// Packet time of the event.
    pub time: Timestamp,
    /// Publication time by the clock of this machine for live sources. Packet time for files and emulations, so that repeated runs
    /// give identical events.
    pub emitted: Timestamp,
    /// The type of the event and its data.
    pub kind: EventKind,
}

/// The type of an event and its data.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// The congestion of a link began or cleared, or is repeated.
    Congestion(CongestionEvent),
    /// The MAC addresses of a flow changed: it was rerouted.
    AddressChange(AddressChange),
    /// A cheetah flow started or ended.
    Cheetah(Finding),
    /// The state of a collector changed.
    State(CollectorState),
    /// The controller decided to reroute a flow.
    Decision(Decision, Arc<Names>),
    /// The outcome of a reroute.
    Action(ActionReport, Arc<Names>),
    /// The traffic of keys changed by more than the error bound of the change.
    TrafficChange(TrafficChange),
    /// The phase of a redirection changed. Times are of the wall clock, or emulated.
    Redirection(RedirectionReport),
    /// Others changed the rules of a switch.
    RuleFaults(RuleFaults),
    /// This daemon became the master of the switches (`true`) or a standby.
    Mastership(bool),
    /// The interface counters of a poll became unavailable (with the reason), or available again.
    Poll {
        /// Name of the poll.
        name: Arc<str>,
        /// Why its counters cannot be read; `None` if they can.
        error: Option<String>,
    },
    /// A link went down or came up.
    Link {
        /// The ports at its ends.
        name: String,
        /// Whether it is up.
        is_up: bool,
    },
}

impl EventKind {
    /// Returns the type in JSON, one of [`EventBody::TYPES`].
    pub const fn type_name(&self) -> &'static str {
        let [
            congestion,
            address_change,
            cheetah,
            cheetah_end,
            collector,
            decision,
            action,
            rule_faults,
            link,
            mastership,
            redirection,
            poll,
            traffic_change,
        ] = EventBody::TYPES;
        match self {
            EventKind::Congestion(_) => congestion,
            EventKind::AddressChange(_) => address_change,
            EventKind::Cheetah(Finding::Began(_)) => cheetah,
            EventKind::Cheetah(Finding::Ended(_)) => cheetah_end,
            EventKind::State(_) => collector,
            EventKind::Decision(..) => decision,
            EventKind::Action(..) => action,
            EventKind::RuleFaults(_) => rule_faults,
            EventKind::Link { .. } => link,
            EventKind::Mastership(_) => mastership,
            EventKind::Redirection(_) => redirection,
            EventKind::Poll { .. } => poll,
            EventKind::TrafficChange(_) => traffic_change,
        }
    }
}

/// The traffic of keys changed between two periods.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficChange {
    /// The task that found it.
    pub task: TaskSpec,
    /// The later period.
    pub period: (Timestamp, Timestamp),
    /// Keys whose change is certainly not zero, the largest first, at most [`TrafficChange::MAX_KEYS`]: each with the change, and the
    /// traffic before and now.
    pub keys: Vec<(FlowName, [Estimate; 3])>,
    /// Number of such keys that `keys` does not list.
    pub omitted: usize,
}

impl TrafficChange {
    /// Maximum number of keys in an event.
    pub const MAX_KEYS: usize = 20;

    /// Returns the change in a result; `None` if the task is another, or no change exceeds its bound.
    pub fn of(result: &TaskResult) -> Option<TrafficChange> {
        let TaskValue::Change(changes) = &result.value else { return None };
        let is_certain = |change: &Estimate| match change.bound {
            Bound::Interval { lower, upper, .. } => lower > 0.0 || upper < 0.0,
            _ => false,
        };
        let mut certain = changes.keys.iter().filter(|key| is_certain(&key.change));
        let keys: Vec<_> = certain
            .by_ref()
            .take(TrafficChange::MAX_KEYS)
            .map(|key| (key.name, [key.change, key.from, key.to]))
            .collect();
        let period = (changes.now.start, changes.now.end);
        (!keys.is_empty()).then(|| TrafficChange {
            task: result.spec,
            period,
            keys,
            omitted: certain.count(),
        })
    }
}

/// The state of a collector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CollectorState {
    /// Its source is being opened.
    #[default]
    Starting,
    /// It is reading packets.
    Running,
    /// It is reading packets, but the kernel has dropped some within the last 10 s.
    Dropping,
    /// End of input of a file or an emulation. It still serves requests.
    Ended,
    /// Its source cannot be opened, or failed. It is retried.
    Failed {
        /// The reason.
        error: String,
        /// Time of the next attempt, by the clock of this machine; `None` if there is none.
        retry_at: Option<Timestamp>,
    },
    /// It has stopped and exported everything.
    Stopped,
}

impl EventKind {
    /// Returns the dump trigger of the event, if any.
    pub(crate) const fn trigger(&self) -> Option<Trigger> {
        match self {
            EventKind::Congestion(CongestionEvent { change: CongestionChange::Began, .. }) => {
                Some(Trigger::Congestion)
            }
            EventKind::Congestion(CongestionEvent { change: CongestionChange::Cleared, .. }) => {
                Some(Trigger::Cleared)
            }
            EventKind::Cheetah(Finding::Began(_)) => Some(Trigger::Cheetah),
            _ => None,
        }
    }
}

impl CollectorState {
    /// Names of all states.
    pub const NAMES: [&'static str; 6] = ["starting", "running", "dropping", "ended", "failed", "stopped"];

    /// Returns the name used in JSON, metrics and logs.
    pub const fn name(&self) -> &'static str {
        match self {
            CollectorState::Starting => "starting",
            CollectorState::Running => "running",
            CollectorState::Dropping => "dropping",
            CollectorState::Ended => "ended",
            CollectorState::Failed { .. } => "failed",
            CollectorState::Stopped => "stopped",
        }
    }
}
