//! What sketches say.

use thalweg_api::{Answer, CollectorTasks, Task, Window};

use super::TaskView;
use crate::collectors::{CollectorHandle, TasksReport};

/// The measurement tasks of a collector.
pub fn tasks(handle: &CollectorHandle) -> CollectorTasks<TaskView> {
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
            value: TaskView::from(answer.result.table()),
        }),
    });
    CollectorTasks {
        collector: handle.name().to_owned(),
        windows: report.windows,
        last,
        tasks: tasks.collect(),
    }
}
