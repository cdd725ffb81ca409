//! Results of measurement tasks.
//!
//! The fields of a result ([`WindowResult::value`]) depend on the type of the task. The daemon describes them; clients read
//! them as a JSON value.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::UtcTime;

/// The measurement tasks of all collectors.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "Tasks")]
pub struct Tasks<V = Value> {
    /// In the order of the configuration.
    pub collectors: Vec<CollectorTasks<V>>,
}

/// The measurement tasks of one collector.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "CollectorTasks")]
pub struct CollectorTasks<V = Value> {
    /// Name of the collector.
    pub collector: String,
    /// Completed windows.
    pub windows: u64,
    /// The last completed window; null before the first.
    pub last_window: Option<Window>,
    /// The tasks, in the order of the configuration.
    pub tasks: Vec<Task<V>>,
}

/// A completed window.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Window {
    /// Start of the window.
    pub start: UtcTime,
    /// End of the window, exclusive.
    pub end: UtcTime,
    /// Packets counted in the window.
    pub packets: u64,
    /// Bytes of these packets, at the IP layer.
    pub bytes: u64,
    /// Packets that belong to earlier windows but arrived too late, and were counted in this one.
    pub late: u64,
}

/// A measurement task.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "Task")]
pub struct Task<V = Value> {
    /// The task as configured.
    pub task: String,
    /// The latest result; null before the end of the first window.
    pub result: Option<WindowResult<V>>,
}

/// The latest results of a measurement task.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "TaskResults")]
pub struct TaskResults<V = Value> {
    /// Name of the collector.
    pub collector: String,
    /// The task as configured.
    pub task: String,
    /// The oldest first, at most 60.
    pub results: Vec<WindowResult<V>>,
}

/// The result of a task for one window. Apart from `start` and `end`, its fields are those of a task in a `window` line of
/// `thalweg watch --json`.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(rename = "WindowResult")]
pub struct WindowResult<V = Value> {
    /// Start of the window.
    pub start: UtcTime,
    /// End of the window, exclusive.
    pub end: UtcTime,
    /// The result.
    #[serde(flatten)]
    pub value: V,
}

/// One of two compared periods.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct Period {
    /// Start of the period.
    pub start: UtcTime,
    /// End of the period, exclusive.
    pub end: UtcTime,
    /// All traffic of the period, counted exactly.
    pub total: u64,
    /// Whether packets cover only a part of the period.
    pub partial: bool,
}
