//! What sketches say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Moment, TaskView};

/// The measurement tasks of all collectors.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct Tasks {
    /// In the order of the configuration.
    pub collectors: Vec<CollectorTasks>,
}

/// The measurement tasks of a collector.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct CollectorTasks {
    /// Its name.
    pub collector: String,
    /// Windows that are over.
    pub windows: u64,
    /// The last of them; null before that.
    pub last: Option<Window>,
    /// Its tasks, in the order of the configuration.
    pub tasks: Vec<Task>,
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
pub struct Task {
    /// The task as it was asked for.
    pub task: String,
    /// What it said last; null before the end of its first window.
    pub answer: Option<Answer>,
}

/// What a task says of a window. Beside times its fields are those of a task in the lines `window` of
/// `thalweg watch --json`.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct Answer {
    /// First moment of the window.
    pub start: Moment,
    /// The first moment after it.
    pub end: Moment,
    /// What it says.
    #[serde(flatten)]
    pub value: TaskView,
}
