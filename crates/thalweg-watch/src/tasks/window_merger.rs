//! Merges the windows of all workers and grants the permits to end the next ones.

use std::ops::AddAssign;

use crossbeam_channel::{Receiver, Sender, bounded};
use thalweg_measure::tasks::{
    KeptWindow, Plan, SketchRef, TaskState, WindowReport, WindowState, WindowTally, Windows,
};
use thalweg_sketch::{Probability, RowSketch, StreamStatistics};

/// The part of the measurement tasks in the main thread.
#[derive(Debug)]
pub(crate) struct WindowMerger {
    windows: Windows,
    /// Sends permits to each worker.
    permits: Vec<Sender<()>>,
    /// Workers with a permit whose windows have not arrived.
    has_permit: Vec<bool>,
    /// Index of the last window from each worker.
    last_index: Vec<Option<u64>>,
    /// Workers that send no more windows.
    has_ended: Vec<bool>,
}

/// Receives the permits of a worker.
pub(crate) type PermitReceiver = Receiver<()>;

/// A finished window, or several combined.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedWindow {
    /// Results of the tasks.
    pub report: WindowReport,
    /// Health of the sketches of each task; empty if there were no packets.
    pub health: Vec<Health>,
}

/// Health of sketches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Minimum sampling probability of updates; `None` for sketches that process every packet.
    pub sampled: Option<Probability>,
    /// Additions beyond a counter's range.
    pub saturations: u64,
}

impl WindowMerger {
    /// Creates a merger for the workers of the plan, and the permit receiver of each worker with a first permit.
    pub(crate) fn new(plan: &Plan) -> (WindowMerger, Vec<PermitReceiver>) {
        let workers = plan.options().workers;
        let (permits, receivers): (Vec<_>, _) = (0..workers).map(|_| bounded(1)).unzip();
        let mut merger = WindowMerger {
            windows: Windows::new(plan),
            permits,
            has_permit: vec![false; workers],
            last_index: vec![None; workers],
            has_ended: vec![false; workers],
        };
        merger.grant_permits();
        (merger, receivers)
    }

    /// Adds the windows that a worker sent for its permit. Passes each window that is now complete to `emit`.
    pub(crate) fn add(&mut self, states: Vec<WindowState>, emit: impl FnMut(&WindowMerger, FinishedWindow)) {
        for state in states {
            self.has_permit[state.worker] = false;
            self.last_index[state.worker] = Some(state.index);
            self.windows.add(state);
        }
        self.emit_complete(emit);
    }

    /// Marks a worker as ended. Passes each window that is now complete to `emit`.
    pub(crate) fn worker_ended(&mut self, worker: usize, emit: impl FnMut(&WindowMerger, FinishedWindow)) {
        self.has_ended[worker] = true;
        if self.has_ended.iter().all(|has_ended| *has_ended) {
            self.windows.finish();
        }
        self.emit_complete(emit);
    }

    /// Returns the sketches of the last finished window; `None` if it had no packets.
    pub(crate) fn window_of(&self, finished: &FinishedWindow) -> Option<&KeptWindow> {
        self.windows.kept().last().filter(|window| window.index == finished.report.index)
    }

    /// Returns the plan of the tasks.
    pub(crate) fn plan(&self) -> &Plan {
        self.windows.plan()
    }

    /// Returns all kept windows combined; `None` if there are none.
    pub(crate) fn combined(&self) -> Option<FinishedWindow> {
        let report = self.windows.together()?;
        let mut health = vec![Health::default(); self.plan().tasks().len()];
        for window in self.windows.kept() {
            health.iter_mut().zip(self.health(&window.states)).for_each(|(sum, part)| *sum += part);
        }
        Some(FinishedWindow { report, health })
    }

    fn emit_complete(&mut self, mut emit: impl FnMut(&WindowMerger, FinishedWindow)) {
        self.fill_for_ended_workers();
        while let Some(report) = self.windows.next_report() {
            let mut finished = FinishedWindow { report, health: Vec::new() };
            if let Some(window) = self.window_of(&finished) {
                finished.health = self.health(&window.states);
            }
            emit(self, finished);
        }
        self.grant_permits();
    }

    /// Adds empty windows for ended workers, up to the latest window of the others.
    fn fill_for_ended_workers(&mut self) {
        let Some(index) = self.last_index.iter().copied().max().flatten() else { return };
        for worker in 0..self.last_index.len() {
            if self.has_ended[worker] && self.last_index[worker] < Some(index) {
                let (windows, tally, states) = (1, WindowTally::default(), Vec::new());
                self.windows.add(WindowState { worker, index, windows, tally, states });
                self.last_index[worker] = Some(index);
            }
        }
    }

    fn grant_permits(&mut self) {
        for (worker, permit) in self.permits.iter().enumerate() {
            if !self.has_permit[worker] && !self.windows.is_ahead(worker) {
                // An ended worker accepts no more.
                self.has_permit[worker] = permit.try_send(()).is_ok();
            }
        }
    }

    fn health(&self, states: &[TaskState]) -> Vec<Health> {
        let tasks = self.plan().tasks().iter().zip(states);
        tasks
            .map(|(task, state)| {
                let mut health = Health::default();
                state
                    .sketches(task.spec.key())
                    .into_iter()
                    .for_each(|(_, sketch)| health += Health::of(sketch));
                health
            })
            .collect()
    }
}

impl Health {
    fn of(sketch: SketchRef<'_>) -> Health {
        let of = |statistics: &StreamStatistics, saturations| Health {
            sampled: Some(statistics.min_probability()),
            saturations,
        };
        match sketch {
            SketchRef::CountSketch32(sketch, _) => of(sketch.statistics(), sketch.saturations()),
            SketchRef::CountSketch64(sketch, _) => of(sketch.statistics(), sketch.saturations()),
            SketchRef::KAry32(sketch, _) => of(sketch.statistics(), sketch.saturations()),
            SketchRef::KAry64(sketch, _) => of(sketch.statistics(), sketch.saturations()),
            SketchRef::UnivMon32(univmon) => of(univmon.statistics(), univmon.saturations()),
            _ => Health::default(),
        }
    }
}

impl AddAssign for Health {
    fn add_assign(&mut self, other: Health) {
        self.sampled = match (self.sampled, other.sampled) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self.saturations += other.saturations;
    }
}
