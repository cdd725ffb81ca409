//! The event log: events that survive a restart of the daemon.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Event, UtcTime};

/// Events of the event log, the newest first.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct LoggedEvents {
    /// The events.
    pub events: Vec<LoggedEvent>,
    /// What the log does not have between the newest and the oldest of these events, the newest first.
    pub gaps: Vec<Gap>,
    /// `before` of the request for the next older events; null if there are none.
    pub next: Option<String>,
    /// Lines that could not be read: the last one of a daemon that was killed, or damaged ones.
    pub unreadable: u64,
}

/// An event with its position in the log.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct LoggedEvent {
    /// RUN-NUMBER: the run of the daemon and the number of the event, as in `id` of the stream of events.
    pub event_id: String,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

/// Events that were not logged: they were published faster than the log could be written.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Gap {
    /// The position of the last event that is missing.
    pub event_id: String,
    /// Number of missing events, of all types.
    pub missing_events: u64,
    /// When that was noticed.
    pub emitted: UtcTime,
}
