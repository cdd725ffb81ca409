//! JSON lines of the tasks: `window` for each window that is over, `kept_windows` for all that are kept, last.

use serde::Serialize;
use thalweg_measure::tasks::{TaskResult, WindowReport};
use thalweg_sketch::Estimate;
use thalweg_wire::{FlowKey, Timestamp};

use crate::figures::Number;
use crate::watch::json::Flow;
use thalweg_watch::json::answer::{Style, TableJson};
use thalweg_watch::tasks::{FinishedWindow, Health, TaskLedger};

/// A window, or several.
#[derive(Debug, Serialize)]
pub(in crate::watch) struct WindowLine {
    start_ns: u64,
    end_ns: u64,
    windows: u64,
    packets: u64,
    bytes: u64,
    late: u64,
    tasks: Vec<TaskAnswer>,
}

/// What is said of the tasks at the end.
#[derive(Debug, Serialize)]
pub(in crate::watch) struct TasksSummary {
    windows: u64,
    empty_windows: u64,
    late: u64,
    saturations: u64,
    window_ns: u64,
    sampling: String,
    memory_bytes: u64,
    memory_bound_bytes: u64,
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
    sampled: Option<f64>,
    saturations: u64,
    #[serde(flatten)]
    value: TableJson<LineStyle>,
}

/// How lines write what JSON has no type for.
enum LineStyle {}

impl Style for LineStyle {
    const SPAN: [&'static str; 2] = ["start_ns", "end_ns"];
    const HAS_NULL_FLOWS: bool = false;

    fn moment(time: Timestamp) -> impl Serialize {
        time.0
    }

    fn flow(key: &FlowKey) -> impl Serialize {
        Flow::from(key)
    }

    fn estimate(estimate: &Estimate) -> impl Serialize {
        Number::from(estimate)
    }
}

impl From<&FinishedWindow> for WindowLine {
    fn from(finished: &FinishedWindow) -> WindowLine {
        let WindowReport { windows, start, end, tally, results, .. } = &finished.report;
        let answer = |result: &TaskResult| {
            let health = finished.health.get(result.task).copied().unwrap_or_default();
            TaskAnswer::new(result, health)
        };
        WindowLine {
            start_ns: start.0,
            end_ns: end.0,
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
            memory_bound_bytes: options.memory.0,
            sizes: sizes.collect(),
        }
    }
}

impl TaskAnswer {
    fn new(result: &TaskResult, health: Health) -> TaskAnswer {
        TaskAnswer {
            task: result.spec.to_string(),
            sampled: health.sampled.map(|probability| probability.get()),
            saturations: health.saturations,
            value: TableJson::from(result.table()),
        }
    }
}
