//! What sketches say.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Moment, TaskView};
use crate::serve::collectors::{CollectorHandle, TasksReport};

/// The measurement tasks of all collectors.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Tasks {
    /// In the order of the configuration.
    pub collectors: Vec<CollectorTasks>,
}

/// The measurement tasks of a collector.
#[derive(Debug, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Debug, Serialize, JsonSchema)]
pub struct Task {
    /// The task as it was asked for.
    pub task: String,
    /// What it said last; null before the end of its first window.
    pub answer: Option<Answer>,
}

/// What a task says of a window. Beside times its fields are those of a task in the lines `window` of
/// `thalweg watch --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Answer {
    /// First moment of the window.
    pub start: Moment,
    /// The first moment after it.
    pub end: Moment,
    /// What it says.
    #[serde(flatten)]
    pub value: TaskView,
}

impl From<&CollectorHandle> for CollectorTasks {
    fn from(handle: &CollectorHandle) -> CollectorTasks {
        let report: &TasksReport = &handle.tasks();
        let last = report.last.as_ref().map(|last| Window {
            start: last.start.into(),
            end: last.end.into(),
            packets: last.tally.packets,
            bytes: last.tally.bytes.0,
            late: last.tally.late,
        });
        let tasks = report.answers.iter().map(|(spec, answer)| Task {
            task: spec.to_string(),
            answer: answer.as_ref().map(|answer| Answer {
                start: answer.window.0.into(),
                end: answer.window.1.into(),
                value: TaskView::from(&answer.result.value),
            }),
        });
        CollectorTasks {
            collector: handle.name().to_owned(),
            windows: report.windows,
            last,
            tasks: tasks.collect(),
        }
    }
}
