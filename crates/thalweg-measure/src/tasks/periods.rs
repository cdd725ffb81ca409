//! Changes between periods: merges windows into periods, and compares each period with the previous one.
//!
//! Periods begin at multiples of their length since 1970. The first comparison is at the end of the second period
//! after the first packet. A period that is incomplete at the end of the stream is not compared, nor are two without
//! packets.

use thalweg_sketch::Hasher;
use thalweg_wire::{Nanos, Timestamp};

use super::kinds::{TaskSpec, TaskValue};
use super::plan::{Plan, PlannedTask};
use super::report::TaskResult;
use super::size::TaskSize;
use super::state::{TaskState, WindowTally};
use super::table::Period;

/// The periods of one task that compares them.
#[derive(Debug)]
pub(super) struct Periods {
    task: usize,
    spec: TaskSpec,
    length: Nanos,
    /// Windows per period.
    windows: u64,
    size: TaskSize,
    hasher: Hasher,
    now: Option<Sum>,
    before: Option<Sum>,
}

/// The merged windows of a period.
#[derive(Debug)]
struct Sum {
    number: u64,
    total: u64,
    is_partial: bool,
    /// `None` if it had no packets.
    state: Option<TaskState>,
}

impl Periods {
    /// Creates the periods of a task of the plan; `None` if it compares none.
    pub(super) fn of(plan: &Plan, task: usize) -> Option<Periods> {
        let PlannedTask { spec, size, .. } = plan.tasks()[task];
        let period = spec.period()?;
        let windows = period.0 / plan.window().0;
        let hasher = Hasher::new(plan.options().seed);
        Some(Periods { task, spec, length: period, windows, size, hasher, now: None, before: None })
    }

    pub(super) fn task(&self) -> usize {
        self.task
    }

    /// Adds a window, or a stretch of windows without packets. Appends the changes if a period is over.
    pub(super) fn take(
        &mut self,
        first: u64,
        last: u64,
        state: &TaskState,
        tally: &WindowTally,
        results: &mut Vec<TaskResult>,
    ) {
        let number = first / self.windows;
        self.now.get_or_insert(Sum::new(number, !first.is_multiple_of(self.windows)));
        if tally.packets > 0 {
            self.add(state, tally);
        }
        let next = (last + 1) / self.windows;
        let ended = next - number;
        // Of a stretch over many periods only two give results: the first, and the one after which all traffic is
        // gone.
        for _ in 0..ended.min(2) {
            self.end_period(results);
        }
        if ended > 2 {
            (self.before, self.now) = (Some(Sum::new(next - 1, false)), Some(Sum::new(next, false)));
        }
    }

    fn add(&mut self, state: &TaskState, tally: &WindowTally) {
        let Some(now) = &mut self.now else { return };
        now.total += tally.total(self.spec.weight());
        match &mut now.state {
            Some(sum) => sum.merge(state),
            None => now.state = Some(state.clone()),
        }
    }

    /// Compares the completed period with the previous one, and begins the next.
    fn end_period(&mut self, results: &mut Vec<TaskResult>) {
        let Some(now) = self.now.take() else { return };
        let next = Sum::new(now.number + 1, false);
        let before = self.before.take().filter(|before| before.total > 0 || now.total > 0);
        if let Some(before) = before {
            let value = self.compare(&now, &before);
            results.extend(value.map(|value| TaskResult { task: self.task, spec: self.spec, value }));
        }
        (self.before, self.now) = (Some(now), Some(next));
    }

    fn compare(&self, now: &Sum, before: &Sum) -> Option<TaskValue> {
        let empty;
        let [now_state, before_state] = match (&now.state, &before.state) {
            (Some(now), Some(before)) => [now, before],
            (now, before) => {
                empty = self.spec.empty(self.size, self.hasher);
                [now.as_ref().unwrap_or(&empty), before.as_ref().unwrap_or(&empty)]
            }
        };
        self.spec.compare((now_state, self.period(now)), (before_state, self.period(before)))
    }

    fn period(&self, sum: &Sum) -> Period {
        let start = Timestamp(sum.number * self.length.0);
        Period { start, end: start + self.length, total: sum.total, is_partial: sum.is_partial }
    }
}

impl Sum {
    fn new(number: u64, is_partial: bool) -> Sum {
        Sum { number, total: 0, is_partial, state: None }
    }
}
