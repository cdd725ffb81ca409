//! Results of finished windows: the latest result of each task, its history, and error counters.

use std::collections::VecDeque;

use thalweg_measure::tasks::{Plan, TaskResult, WindowReport, WindowTally};
use thalweg_wire::{Nanos, Timestamp};

use super::window_merger::{FinishedWindow, Health};

/// Windows of history per task: the columns of a wide terminal.
const HISTORY: usize = 240;

/// Results of the tasks of a run.
#[derive(Clone, Debug)]
pub struct TaskLedger {
    /// The plan of the tasks.
    pub plan: Plan,
    /// History of each task.
    pub tasks: Vec<TaskHistory>,
    /// The last finished window.
    pub last: Option<FinishedWindow>,
    /// All kept windows combined, set at the end of the run.
    pub combined: Option<FinishedWindow>,
    /// Number of windows with packets.
    pub windows: u64,
    /// Number of windows without packets, between the first and the last with packets.
    pub empty_windows: u64,
    /// Tally of all windows.
    pub tally: WindowTally,
    /// Additions beyond a counter's range.
    pub saturations: u64,
}

/// History of a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskHistory {
    /// Latest result.
    pub latest: Option<Answer>,
    /// The main figure of each window, oldest first.
    pub figures: VecDeque<f64>,
}

/// The result of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Start of the period of the result.
    pub start: Timestamp,
    /// End of the period, exclusive.
    pub end: Timestamp,
    /// The result.
    pub result: TaskResult,
    /// Health of the sketches.
    pub health: Health,
}

impl TaskLedger {
    /// Creates an empty ledger.
    pub(crate) fn new(plan: &Plan) -> TaskLedger {
        TaskLedger {
            plan: plan.clone(),
            tasks: vec![TaskHistory::default(); plan.tasks().len()],
            last: None,
            combined: None,
            windows: 0,
            empty_windows: 0,
            tally: WindowTally::default(),
            saturations: 0,
        }
    }

    /// Adds a finished window.
    pub(crate) fn add(&mut self, finished: FinishedWindow) {
        let report = &finished.report;
        match report.tally.packets {
            0 => self.empty_windows += report.windows,
            _ => self.windows += 1,
        }
        self.tally += report.tally;
        self.saturations += finished.health.iter().map(|health| health.saturations).sum::<u64>();
        for result in &report.results {
            let health = finished.health.get(result.task).copied().unwrap_or_default();
            self.tasks[result.task].add(report, result, health);
        }
        self.last = Some(finished);
    }

    /// Returns the length of a window.
    pub fn window(&self) -> Nanos {
        self.plan.options().window
    }
}

impl TaskHistory {
    fn add(&mut self, report: &WindowReport, result: &TaskResult, health: Health) {
        let table = result.table();
        let figure = table.figure();
        // A gap of several empty windows has as many entries in the history.
        let windows = if result.spec.period().is_some() { 1 } else { report.windows };
        for _ in 0..windows.min(HISTORY as u64) {
            self.figures.push_back(figure);
        }
        self.figures.drain(..self.figures.len().saturating_sub(HISTORY));
        let (start, end) = table.span.unwrap_or((report.start, report.end));
        self.latest = Some(Answer { start, end, result: result.clone(), health });
    }
}
