//! Results of measurement tasks.

use thalweg_api::{CollectorTasks, Task, TaskResults, Window, WindowResult};

use super::TaskView;
use crate::collectors::{CollectorHandle, TaskAnswer, TaskHistory, TasksReport};

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
    let tasks = report.tasks.iter().map(|TaskHistory { spec, answers }| Task {
        task: spec.to_string(),
        result: answers.back().map(|answer| window_result(answer)),
    });
    CollectorTasks {
        collector: handle.name().to_owned(),
        windows: report.windows,
        last_window,
        tasks: tasks.collect(),
    }
}

/// Converts the latest results of a task; `None` if the collector has no such task.
pub fn task_results(handle: &CollectorHandle, task: &str) -> Option<TaskResults<TaskView>> {
    let report = handle.tasks();
    let TaskHistory { spec, answers } = report.tasks.iter().find(|known| known.spec.to_string() == task)?;
    let results = answers.iter().map(|answer| window_result(answer)).collect();
    Some(TaskResults { collector: handle.name().to_owned(), task: spec.to_string(), results })
}

fn window_result(answer: &TaskAnswer) -> WindowResult<TaskView> {
    WindowResult {
        start: answer.window.0.into(),
        end: answer.window.1.into(),
        value: TaskView::from(answer.result.table()),
    }
}
