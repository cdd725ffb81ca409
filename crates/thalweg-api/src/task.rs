//! What sketches say.
//!
//! What a task says ([`Answer::value`]) has fields by its kind, which the daemon describes; whoever reads it has it as a
//! JSON value.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Moment;

/// The measurement tasks of all collectors.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "Tasks")]
pub struct Tasks<V = Value> {
    /// In the order of the configuration.
    pub collectors: Vec<CollectorTasks<V>>,
}

/// The measurement tasks of a collector.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "CollectorTasks")]
pub struct CollectorTasks<V = Value> {
    /// Its name.
    pub collector: String,
    /// Windows that are over.
    pub windows: u64,
    /// The last of them; null before that.
    pub last: Option<Window>,
    /// Its tasks, in the order of the configuration.
    pub tasks: Vec<Task<V>>,
}

/// A window: what was counted in it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Window {
    /// Its first moment.
    pub start: Moment,
    /// The first moment after it.
    pub end: Moment,
    /// Packets in it.
    pub packets: u64,
    /// Bytes of those, of the IP layer.
    pub bytes: u64,
    /// Packets that came after the end of the window that they belong to, and were counted in this one.
    pub late: u64,
}

/// A measurement task.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "Task")]
pub struct Task<V = Value> {
    /// The task as it was asked for.
    pub task: String,
    /// What it said last; null before the end of its first window.
    pub answer: Option<Answer<V>>,
}

/// What a task says of a window. Beside times its fields are those of a task in the lines `window` of
/// `thalweg watch --json`.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "Answer")]
pub struct Answer<V = Value> {
    /// First moment of the window.
    pub start: Moment,
    /// The first moment after it.
    pub end: Moment,
    /// What it says.
    #[serde(flatten)]
    pub value: V,
}

/// A period that is compared with another.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct Period {
    /// Its first moment.
    pub start: Moment,
    /// The first moment after it.
    pub end: Moment,
    /// All its traffic, exactly.
    pub total: u64,
    /// Whether packets came in a part of it only.
    pub partial: bool,
}
