//! The state of measurement tasks that the live view shows.

use thalweg_measure::tasks::{Table, TaskSize, TaskSpec};
use thalweg_sketch::Probability;
use thalweg_wire::{Bytes, Nanos, Timestamp};

/// State of the tasks at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TasksView {
    /// One per task, in the configured order.
    pub rows: Vec<TaskRow>,
    /// Length of a window.
    pub window: Nanos,
    /// Finished windows with packets.
    pub windows: u64,
    /// Windows without packets, between the first and the last with packets.
    pub empty_windows: u64,
    /// Packets in the last finished window.
    pub packets: u64,
    /// Memory of the sketches.
    pub memory: Bytes,
    /// Maximum memory of the sketches.
    pub memory_bound: Bytes,
}

/// A task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRow {
    /// Specification of the task.
    pub spec: TaskSpec,
    /// Size of its sketches.
    pub size: TaskSize,
    /// Latest result; `None` before the first.
    pub latest: Option<Table>,
    /// Start of the period of the result.
    pub start: Timestamp,
    /// End of the period, exclusive.
    pub end: Timestamp,
    /// Minimum sampling probability of its updates; `None` if it processes every packet.
    pub sampled: Option<Probability>,
    /// The estimate, or the number of keys, in each window; oldest first.
    pub figures: Vec<f64>,
}
