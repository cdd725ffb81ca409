//! JSON lines of tasks: `window` for each completed window, `kept_windows` for all kept windows at the end.

use serde::Serialize;
use thalweg_api::UtcTime;
use thalweg_measure::tasks::{TaskResult, WindowReport};
use thalweg_watch::json::TaskResultJson;
use thalweg_watch::tasks::{FinishedWindow, Health, TaskLedger};

/// One window, or several merged.
#[derive(Debug, Serialize)]
pub(in crate::watch) struct WindowLine {
    start: UtcTime,
    end: UtcTime,
    windows: u64,
    packets: u64,
    bytes: u64,
    late: u64,
    tasks: Vec<TaskAnswer>,
}

/// The tasks in the summary.
#[derive(Debug, Serialize)]
pub(in crate::watch) struct TasksSummary {
    windows: u64,
    empty_windows: u64,
    late: u64,
    saturations: u64,
    window_ns: u64,
    sampling: String,
    memory_bytes: u64,
    memory_limit_bytes: u64,
    sizes: Vec<TaskSizeLine>,
}

#[derive(Debug, Serialize)]
struct TaskSizeLine {
    task: String,
    size: String,
    bytes_each: u64,
    copies: u64,
}

#[derive(Debug, Serialize)]
struct TaskAnswer {
    task: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampling_probability: Option<f64>,
    saturations: u64,
    #[serde(flatten)]
    value: TaskResultJson,
}

impl From<&FinishedWindow> for WindowLine {
    fn from(finished: &FinishedWindow) -> WindowLine {
        let WindowReport { windows, start, end, tally, results, .. } = &finished.report;
        let answer = |result: &TaskResult| {
            let health = finished.health.get(result.task).copied().unwrap_or_default();
            TaskAnswer::new(result, health)
        };
        WindowLine {
            start: (*start).into(),
            end: (*end).into(),
            windows: *windows,
            packets: tally.packets,
            bytes: tally.bytes.0,
            late: tally.late,
            tasks: results.iter().map(answer).collect(),
        }
    }
}

impl From<&TaskLedger> for TasksSummary {
    fn from(ledger: &TaskLedger) -> TasksSummary {
        let options = ledger.plan.options();
        let sizes = ledger.plan.tasks().iter().map(|planned| TaskSizeLine {
            task: planned.spec.to_string(),
            size: planned.size.to_string(),
            bytes_each: planned.bytes_each().0,
            copies: planned.copies,
        });
        TasksSummary {
            windows: ledger.windows,
            empty_windows: ledger.empty_windows,
            late: ledger.tally.late,
            saturations: ledger.saturations,
            window_ns: options.window.0,
            sampling: options.sampling.to_string(),
            memory_bytes: ledger.plan.bytes().0,
            memory_limit_bytes: options.memory.0,
            sizes: sizes.collect(),
        }
    }
}

impl TaskAnswer {
    fn new(result: &TaskResult, health: Health) -> TaskAnswer {
        TaskAnswer {
            task: result.spec.to_string(),
            sampling_probability: health.sampled.map(|probability| probability.get()),
            saturations: health.saturations,
            value: TaskResultJson::from(result.table()),
        }
    }
}
