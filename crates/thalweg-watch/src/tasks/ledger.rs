//! What is remembered of finished windows: the latest answer of each task, how it was in the windows before, and
//! what went wrong.

use std::collections::VecDeque;

use thalweg_measure::tasks::{Plan, TaskResult, WindowReport, WindowTally};
use thalweg_wire::{Nanos, Timestamp};

use super::collector::{Finished, Health};

/// Windows whose figures are remembered: as many as a wide terminal has columns.
const HISTORY: usize = 240;

/// What is remembered of the tasks of a run.
#[derive(Clone, Debug)]
pub struct TaskLedger {
    /// What is measured, in how much memory.
    pub plan: Plan,
    /// One for each task.
    pub tasks: Vec<TaskHistory>,
    /// The last window that was over.
    pub last: Option<Finished>,
    /// All kept windows together, once there will be no others.
    pub together: Option<Finished>,
    /// Windows with packets.
    pub windows: u64,
    /// Windows without, between the first and the last with packets.
    pub empty_windows: u64,
    /// Packets of all windows.
    pub tally: WindowTally,
    /// Additions beyond a counter's range.
    pub saturations: u64,
}

/// What is remembered of a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskHistory {
    /// What it said last.
    pub latest: Option<Answer>,
    /// The figure of each window in which it spoke, oldest first.
    pub figures: VecDeque<f64>,
}

/// What a task said.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// First moment of what it is about.
    pub start: Timestamp,
    /// The first moment after it.
    pub end: Timestamp,
    /// What it says.
    pub result: TaskResult,
    /// How the sketches fared.
    pub health: Health,
}

impl TaskLedger {
    /// Nothing yet.
    pub(crate) fn new(plan: &Plan) -> TaskLedger {
        TaskLedger {
            plan: plan.clone(),
            tasks: vec![TaskHistory::default(); plan.tasks().len()],
            last: None,
            together: None,
            windows: 0,
            empty_windows: 0,
            tally: WindowTally::default(),
            saturations: 0,
        }
    }

    /// Takes a window that is over.
    pub(crate) fn add(&mut self, finished: Finished) {
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

    /// Length of a window.
    pub fn window(&self) -> Nanos {
        self.plan.options().window
    }
}

impl TaskHistory {
    fn add(&mut self, report: &WindowReport, result: &TaskResult, health: Health) {
        let table = result.table();
        let figure = table.figure();
        // A stretch of windows without packets is as long in the history as it was, as far as that goes.
        let windows = if result.spec.period().is_some() { 1 } else { report.windows };
        for _ in 0..windows.min(HISTORY as u64) {
            self.figures.push_back(figure);
        }
        self.figures.drain(..self.figures.len().saturating_sub(HISTORY));
        let (start, end) = table.span.unwrap_or((report.start, report.end));
        self.latest = Some(Answer { start, end, result: result.clone(), health });
    }
}
