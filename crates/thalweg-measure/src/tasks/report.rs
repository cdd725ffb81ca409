//! Reports of the tasks at the end of a window.

use thalweg_wire::Timestamp;

use super::kinds::{TaskSpec, TaskValue};
use super::state::WindowTally;
use super::table::Table;

/// The report of a window, of a stretch of windows without packets, or of several kept windows together.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowReport {
    /// The number of the window, its start divided by its length; of several windows, the last.
    pub index: u64,
    /// The number of windows: one, a stretch without packets, or all that are kept.
    pub windows: u64,
    /// The start.
    pub start: Timestamp,
    /// The end, exclusive.
    pub end: Timestamp,
    /// The packets counted.
    pub tally: WindowTally,
    /// The answers of the tasks, in their order. All but `change` answer each time; `change` at the end of a period
    /// (of two periods, if no packets arrived for that long).
    pub results: Vec<TaskResult>,
}

/// The answer of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskResult {
    /// The index of the task in the plan.
    pub task: usize,
    /// The task.
    pub spec: TaskSpec,
    /// The answer.
    pub value: TaskValue,
}

impl TaskResult {
    /// Returns the answer in the common format.
    pub fn table(&self) -> Table {
        self.value.table(self.spec.weight())
    }
}
