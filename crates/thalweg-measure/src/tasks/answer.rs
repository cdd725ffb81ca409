//! Computes the answer of a task from its state.

use super::plan::PlannedTask;
use super::report::TaskResult;
use super::state::{TaskState, WindowTally};

/// Returns the answer for `state`, which counted the packets of `tally`; `None` for tasks that answer at the end of a
/// period.
pub(super) fn answer(
    task: usize,
    planned: &PlannedTask,
    state: &TaskState,
    tally: &WindowTally,
) -> Option<TaskResult> {
    let spec = planned.spec;
    let value = spec.value(state, tally.total(spec.weight()))?;
    Some(TaskResult { task, spec, value })
}
