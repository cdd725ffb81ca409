//! Results of measurement tasks.

use thalweg_api::{CollectorTasks, Task, Window, WindowResult};

use super::TaskView;
use crate::collectors::{CollectorHandle, TasksReport};

/// Converts the measurement tasks of a collector.
pub fn tasks(handle: &CollectorHandle) -> CollectorTasks<TaskView> {
    let report: &TasksReport = &handle.tasks();
    let last_window = report.last.as_ref().map(|last| Window {
        start: last.start.into(),
        end: last.end.into(),
        packets: last.tally.packets,
        bytes: last.tally.bytes.0,
        late: last.tally.late,
    });
    let tasks = report.answers.iter().map(|(spec, answer)| Task {
        task: spec.to_string(),
        result: answer.as_ref().map(|answer| WindowResult {
            start: answer.window.0.into(),
            end: answer.window.1.into(),
            value: TaskView::from(answer.result.table()),
        }),
    });
    CollectorTasks {
        collector: handle.name().to_owned(),
        windows: report.windows,
        last_window,
        tasks: tasks.collect(),
    }
}
