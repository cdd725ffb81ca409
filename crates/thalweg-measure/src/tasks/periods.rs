//! Change from one period to the next: base windows put together, and compared at the end of each period.
//!
//! Periods begin at multiples of their length since 1970. The first comparison comes at the end of the second period
//! after the first packet. A period that is not over when the stream ends is not compared, nor are two without packets.

use thalweg_sketch::{Change, Digest, Estimate, Hasher, RowSketch, TopK};
use thalweg_wire::{Nanos, Timestamp};

use super::flow_bytes::FlowBytes;
use super::key::KeyDefinition;
use super::plan::{Plan, PlannedTask};
use super::report::{ChangedKey, Changes, Period, TaskResult, TaskValue};
use super::size::TaskSize;
use super::spec::{TaskSpec, Weight};
use super::state::{Ranked, TaskState, WindowTally};

/// The periods of one `change` task.
#[derive(Debug)]
pub(super) struct Periods {
    task: usize,
    spec: TaskSpec,
    weight: Weight,
    length: Nanos,
    /// Windows of a period.
    windows: u64,
    size: TaskSize,
    hasher: Hasher,
    now: Option<Sum>,
    before: Option<Sum>,
}

/// A period, summed up.
#[derive(Debug)]
struct Sum {
    number: u64,
    total: u64,
    is_partial: bool,
    /// `None` if it had no packets.
    state: Option<TaskState>,
}

impl Periods {
    /// Those of a task of the plan, if it asks for changes.
    pub(super) fn of(plan: &Plan, task: usize) -> Option<Periods> {
        let PlannedTask { spec, size, .. } = plan.tasks()[task];
        let TaskSpec::Change { period, weight, .. } = spec else { return None };
        let windows = period.0 / plan.window().0;
        let hasher = Hasher::new(plan.options().seed);
        Some(Periods { task, spec, weight, length: period, windows, size, hasher, now: None, before: None })
    }

    pub(super) fn task(&self) -> usize {
        self.task
    }

    /// Takes in a window, or a stretch of windows without packets. Appends what has changed if a period is over.
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
        // Of a stretch over many periods two tell something: the first, and the one in which all has gone.
        for _ in 0..ended.min(2) {
            self.end_period(results);
        }
        if ended > 2 {
            (self.before, self.now) = (Some(Sum::new(next - 1, false)), Some(Sum::new(next, false)));
        }
    }

    fn add(&mut self, state: &TaskState, tally: &WindowTally) {
        let Some(now) = &mut self.now else { return };
        now.total += match self.weight {
            Weight::Packets => tally.packets,
            Weight::Bytes => tally.bytes.0,
        };
        match &mut now.state {
            Some(sum) => sum.merge(state),
            None => now.state = Some(state.clone()),
        }
    }

    /// Compares the period that is over with the one before, and begins the next.
    fn end_period(&mut self, results: &mut Vec<TaskResult>) {
        let Some(now) = self.now.take() else { return };
        let next = Sum::new(now.number + 1, false);
        let before = self.before.take().filter(|before| before.total > 0 || now.total > 0);
        if let Some(before) = before {
            let value = TaskValue::Change(self.compare(&now, &before));
            results.push(TaskResult { task: self.task, spec: self.spec, value });
        }
        (self.before, self.now) = (Some(now), Some(next));
    }

    fn compare(&self, now: &Sum, before: &Sum) -> Changes {
        let TaskSpec::Change { share, key, .. } = self.spec else { unreachable!("periods are of change") };
        let threshold = share.get() * (now.total as f64 + before.total as f64);
        let empty;
        let [now_state, before_state] = match (&now.state, &before.state) {
            (Some(now), Some(before)) => [now, before],
            (now, before) => {
                empty = self.size.empty(&self.spec, self.hasher);
                [now.as_ref().unwrap_or(&empty), before.as_ref().unwrap_or(&empty)]
            }
        };
        let (keys, room) = match (now_state, before_state) {
            (TaskState::ChangePackets(now), TaskState::ChangePackets(before)) => {
                (changed(now, before, threshold, key), now.top.k())
            }
            (TaskState::ChangeBytes(now), TaskState::ChangeBytes(before)) => {
                (changed(now, before, threshold, key), now.top.k())
            }
            _ => unreachable!("the states of a change task are of its kind"),
        };
        Changes { before: self.period(before), now: self.period(now), keys, room }
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

/// Keys that have changed by at least `threshold` above zero, of those that are among the largest of either period.
fn changed<S: RowSketch + Clone>(
    now: &Ranked<S>,
    before: &Ranked<S>,
    threshold: f64,
    definition: KeyDefinition,
) -> Vec<ChangedKey> {
    let change = match Change::between(&now.sketch, &before.sketch) {
        Ok(change) => change,
        Err(error) => panic!("states of different plans were compared: {error}"),
    };
    let (noise_now, noise_before) = (now.sketch.noise(), before.sketch.noise());
    let mut keys = Vec::new();
    for (key, digest) in candidates(&now.top, &before.top) {
        let changed = change.estimate(digest);
        if changed.value.abs() < threshold || changed.value == 0.0 {
            continue;
        }
        let name = definition.name(&key).expect("keys are of the task's definition");
        let from = before.sketch.estimate(digest, &noise_before);
        let to = now.sketch.estimate(digest, &noise_now);
        keys.push(ChangedKey { key, name, change: changed, from, to });
    }
    let magnitude = |estimate: &Estimate| estimate.value.abs();
    keys.sort_by(|a, b| magnitude(&b.change).total_cmp(&magnitude(&a.change)).then(a.key.cmp(&b.key)));
    keys
}

/// The candidates of both, each once.
fn candidates(now: &TopK<FlowBytes>, before: &TopK<FlowBytes>) -> impl Iterator<Item = (FlowBytes, Digest)> {
    let both = now.candidates().iter().chain(before.candidates());
    let mut keys: Vec<_> = both.map(|candidate| (candidate.key, candidate.digest)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter()
}
