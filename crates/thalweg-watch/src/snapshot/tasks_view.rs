//! What the view shows of measurement tasks.

use thalweg_measure::tasks::{Table, TaskSize, TaskSpec};
use thalweg_sketch::Probability;
use thalweg_wire::{Bytes, Nanos, Timestamp};

/// The tasks, as of one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TasksView {
    /// One for each task, in the order asked for.
    pub rows: Vec<TaskRow>,
    /// Length of a window.
    pub window: Nanos,
    /// Windows with packets that are over.
    pub windows: u64,
    /// Windows without packets, between the first and the last with packets.
    pub empty_windows: u64,
    /// Packets in the last window that is over.
    pub packets: u64,
    /// Memory of the sketches.
    pub memory: Bytes,
    /// Memory that they may have.
    pub memory_bound: Bytes,
}

/// One task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRow {
    /// What it asks for.
    pub spec: TaskSpec,
    /// How large its sketches are.
    pub size: TaskSize,
    /// What it said last; `None` if it has said nothing yet.
    pub latest: Option<Table>,
    /// The first moment of what that is about.
    pub start: Timestamp,
    /// The first moment after it.
    pub end: Timestamp,
    /// The smallest probability with which its updates were sampled; `None` if it sees every packet.
    pub sampled: Option<Probability>,
    /// Its figure in each window, oldest first: the estimate, or the number of keys.
    pub figures: Vec<f64>,
}
