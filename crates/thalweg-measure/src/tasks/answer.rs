//! From a task's state to what it says.

use super::plan::PlannedTask;
use super::report::TaskResult;
use super::state::{TaskState, WindowTally};

/// What a task says of `state`, which has counted what `tally` says; `None` of one that speaks at the end of a period.
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
