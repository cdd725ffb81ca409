//! What tasks have to say at the end of a window.

use thalweg_wire::Timestamp;

use super::kinds::{TaskSpec, TaskValue};
use super::state::WindowTally;
use super::table::Table;

/// The end of a window, or of a stretch of windows without packets, or several kept windows together.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowReport {
    /// Number of the window, its start divided by its length; of several the last.
    pub index: u64,
    /// Windows that it stands for: one, a stretch without packets, or all that are kept.
    pub windows: u64,
    /// The first moment.
    pub start: Timestamp,
    /// The first moment after.
    pub end: Timestamp,
    /// What was counted.
    pub tally: WindowTally,
    /// What tasks say, in their order. All but `change` say something each time; `change` at the end of a period
    /// (of two periods, if nothing came for so long).
    pub results: Vec<TaskResult>,
}

/// What a task says.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskResult {
    /// Number of the task in the plan.
    pub task: usize,
    /// The task.
    pub spec: TaskSpec,
    /// What it says.
    pub value: TaskValue,
}

impl TaskResult {
    /// What it says, in the shape that all kinds share.
    pub fn table(&self) -> Table {
        self.value.table(self.spec.weight())
    }
}
