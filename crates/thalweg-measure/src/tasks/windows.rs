//! Merges the windows of all workers.
//!
//! A window is complete when every worker has passed on it or a later one. Workers are merged in their order, so the
//! same packets give the same report, however fast the threads are. Windows of some workers wait for the others.
//! [`Windows::is_ahead`] tells from which workers no more windows should be accepted meanwhile, to keep the memory
//! within the plan.

use std::collections::{BTreeMap, VecDeque};

use thalweg_wire::Timestamp;

use super::answer::answer;
use super::periods::Periods;
use super::plan::Plan;
use super::report::{TaskResult, WindowReport};
use super::state::{KeptWindow, TaskState, WindowState, WindowTally};

/// Merges the windows of all workers, and keeps the last ones.
#[derive(Debug)]
pub struct Windows {
    plan: Plan,
    /// The last window that each worker has passed on.
    last_index: Vec<Option<u64>>,
    is_finished: bool,
    /// Windows with packets that are not complete, or not reported; their states by worker.
    waiting: BTreeMap<u64, BTreeMap<usize, WindowState>>,
    /// The next window to report; `None` before the first with packets.
    next: Option<u64>,
    kept: VecDeque<KeptWindow>,
    periods: Vec<Periods>,
}

impl Windows {
    /// Creates an empty list for the workers of the plan.
    pub fn new(plan: &Plan) -> Windows {
        let periods = (0..plan.tasks().len()).filter_map(|task| Periods::of(plan, task)).collect();
        Windows {
            plan: plan.clone(),
            last_index: vec![None; plan.options().workers],
            is_finished: false,
            waiting: BTreeMap::new(),
            next: None,
            kept: VecDeque::new(),
            periods,
        }
    }

    /// Adds a window of a worker. Then call [`Windows::next_report`] until it returns `None`.
    ///
    /// # Panics
    /// If it is of another plan.
    pub fn add(&mut self, state: WindowState) {
        let last_index = &mut self.last_index[state.worker];
        assert!(*last_index < Some(state.index), "a worker must pass on its windows in order");
        *last_index = Some(state.index);
        if state.tally.packets > 0 {
            assert_eq!(state.states.len(), self.plan.tasks().len(), "a state of another plan");
            self.waiting.entry(state.index).or_default().insert(state.worker, state);
        }
    }

    /// Declares the end of input: windows that wait are complete.
    pub fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Whether a worker has passed on windows that others have not. The memory stays within the plan if no more
    /// windows are accepted from it until they have.
    pub fn is_ahead(&self, worker: usize) -> bool {
        self.last_index[worker] > self.last_index.iter().copied().min().flatten()
    }

    /// Returns the number of states that wait for other workers.
    pub fn waiting(&self) -> usize {
        self.waiting.values().map(BTreeMap::len).sum()
    }

    /// Returns the next complete window, or stretch of windows without packets. It is then the last of
    /// [`Windows::kept`], if it had packets. A stretch before the first packet is not reported.
    pub fn next_report(&mut self) -> Option<WindowReport> {
        let last_index = self.complete_through()?;
        let first_waiting = self.waiting.keys().next().copied().filter(|&index| index <= last_index);
        let next = self.next.or(first_waiting)?;
        if next > last_index {
            return None;
        }
        let report = match first_waiting {
            Some(index) if index == next => self.complete(index),
            Some(index) => self.stretch(next, index - 1),
            None => self.stretch(next, last_index),
        };
        self.next = Some(report.index + 1);
        Some(report)
    }

    /// Returns the last window that all workers have passed on.
    fn complete_through(&self) -> Option<u64> {
        let handed_on = self.last_index.iter().copied();
        if self.is_finished { handed_on.max().flatten() } else { handed_on.min().flatten() }
    }

    /// Returns the last windows with packets, oldest first: at most as many as the plan keeps, none older than that
    /// many windows.
    pub fn kept(&self) -> impl ExactSizeIterator<Item = &KeptWindow> {
        self.kept.iter()
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns a report of all kept windows together; `None` if there are none. `change` has no answer for them.
    pub fn together(&self) -> Option<WindowReport> {
        let (first, last) = (self.kept.front()?, self.kept.back()?);
        let mut tally = WindowTally::default();
        self.kept.iter().for_each(|window| tally += window.tally);
        let mut results = Vec::new();
        for (task, planned) in self.plan.tasks().iter().enumerate() {
            let mut states = self.kept.iter().map(|window| &window.states[task]);
            let Some(mut state) = states.next().cloned() else { continue };
            states.for_each(|other| state.merge(other));
            results.extend(answer(task, planned, &state, &tally));
        }
        let windows = last.index - first.index + 1;
        Some(WindowReport { index: last.index, windows, start: first.start, end: last.end, tally, results })
    }

    /// Merges the workers' states of a window, and reports it.
    fn complete(&mut self, index: u64) -> WindowReport {
        self.drop_old(index);
        let (mut tally, mut states): (_, Vec<TaskState>) = Default::default();
        for (_, part) in self.waiting.remove(&index).unwrap_or_default() {
            tally += part.tally;
            if states.is_empty() {
                states = part.states;
            } else {
                states.iter_mut().zip(&part.states).for_each(|(state, part)| state.merge(part));
            }
        }
        let report = self.report(index, 1, tally, &states);
        let WindowReport { start, end, .. } = report;
        self.kept.push_back(KeptWindow { index, start, end, tally, states });
        report
    }

    /// Reports windows without packets.
    fn stretch(&mut self, first: u64, last: u64) -> WindowReport {
        self.drop_old(last);
        let states: Vec<TaskState> = (0..self.plan.tasks().len()).map(|task| self.plan.empty(task)).collect();
        self.report(last, last - first + 1, WindowTally::default(), &states)
    }

    /// Drops kept windows that are too old when window `index` is complete.
    fn drop_old(&mut self, index: u64) {
        let kept = self.plan.options().kept_windows as u64;
        while self.kept.front().is_some_and(|window| index - window.index >= kept) {
            self.kept.pop_front();
        }
    }

    fn report(&mut self, index: u64, windows: u64, tally: WindowTally, states: &[TaskState]) -> WindowReport {
        let mut results: Vec<TaskResult> = Vec::new();
        for (task, (planned, state)) in self.plan.tasks().iter().zip(states).enumerate() {
            results.extend(answer(task, planned, state, &tally));
            let periods = self.periods.iter_mut().find(|periods| periods.task() == task);
            if let Some(periods) = periods {
                periods.take(index + 1 - windows, index, state, &tally, &mut results);
            }
        }
        let length = self.plan.window();
        let start = Timestamp((index + 1 - windows) * length.0);
        let end = Timestamp(index * length.0) + length;
        WindowReport { index, windows, start, end, tally, results }
    }
}
