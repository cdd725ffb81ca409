//! Divides the memory between tasks, workers and windows before the first packet.
//!
//! Each task's state has as many copies as can be needed at one time: with W workers and N kept windows,
//!
//! - W that count, and W of the window that has just ended, on their way to [`super::Windows`];
//! - N that are kept, and one more while several are merged for an answer;
//! - for `change` two more: the current period and the previous one.
//!
//! So the limit holds while no worker is more than one window ahead of another, which the caller can ensure
//! ([`super::Windows::is_ahead`]).
//!
//! The size of a task's state is a step on a ladder, each step about twice the previous one. All tasks begin on their
//! lowest steps. Then the task with the least memory relative to its weight goes up a step, if that fits, until
//! nothing fits any more.

use thalweg_sketch::Hasher;
use thalweg_sketch::nitro::table_bytes;
use thalweg_wire::{Bytes, Nanos};
use thiserror::Error;

use super::kinds::TaskSpec;
use super::options::{Sampling, TasksOptions};
use super::size::TaskSize;
use super::state::TaskState;

/// The division of the memory; the basis of monitors and windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    options: TasksOptions,
    tasks: Vec<PlannedTask>,
}

/// A task and its share of the memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannedTask {
    /// The task.
    pub spec: TaskSpec,
    /// The size of its sketches.
    pub size: TaskSize,
    /// The maximum number of states of this size at one time.
    pub copies: u64,
}

/// Why no plan is possible.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    /// There are no tasks.
    #[error("no tasks: expected at least one, such as heavy:0.1%")]
    NoTasks,
    /// A task is repeated.
    #[error("task {0} is repeated: expected each task once")]
    Twice(TaskSpec),
    /// The window is so short that ending it would cost more than counting.
    #[error("window of {window}: expected at least {}", Plan::SHORTEST_WINDOW)]
    ShortWindow {
        /// The length of a window.
        window: Nanos,
    },
    /// No windows would be kept.
    #[error("no kept windows: expected at least one")]
    NoKeptWindows,
    /// There are no workers.
    #[error("no workers: expected at least one")]
    NoWorkers,
    /// A period is not a multiple of the window.
    #[error("task {spec}: the period must be a multiple of the window, {window}")]
    Period {
        /// The task.
        spec: TaskSpec,
        /// The length of a window.
        window: Nanos,
    },
    /// The smallest sketches do not fit.
    #[error(
        "{memory} is too small for these tasks with {workers} thread(s) and {kept_windows} kept window(s): expected at least {min} ({} bytes)",
        min.0
    )]
    Memory {
        /// The available memory.
        memory: Bytes,
        /// The required memory.
        min: Bytes,
        /// The number of workers.
        workers: usize,
        /// The number of kept windows.
        kept_windows: usize,
    },
}

impl PlannedTask {
    /// Returns the memory of one state.
    pub fn bytes_each(&self) -> Bytes {
        Bytes(self.size.bytes(self.spec.weight()))
    }

    /// Returns the maximum memory of all states at one time.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.copies * self.bytes_each().0)
    }
}

impl Plan {
    /// The minimum length of a window.
    pub const SHORTEST_WINDOW: Nanos = Nanos::from_millis(1);

    /// Divides the memory.
    ///
    /// # Errors
    /// If an option is invalid, or the memory is too small for the smallest sketches.
    pub fn new(options: TasksOptions) -> Result<Plan, PlanError> {
        validate(&options)?;
        let mut steps = vec![0; options.tasks.len()];
        let mut plan = Plan { tasks: Vec::new(), options };
        plan.tasks = plan.at_steps(&steps).expect("every task has a lowest step");
        let (memory, min) = (plan.options.memory, plan.bytes());
        if min > memory {
            let TasksOptions { workers, kept_windows, .. } = plan.options;
            return Err(PlanError::Memory { memory, min, workers, kept_windows });
        }
        let mut can_grow = vec![true; steps.len()];
        while let Some(least_served) = plan.least_served(&can_grow) {
            steps[least_served] += 1;
            match plan.at_steps(&steps).map(|tasks| Plan { tasks, ..plan.clone() }) {
                Some(larger) if larger.bytes() <= memory => plan = larger,
                _ => {
                    steps[least_served] -= 1;
                    can_grow[least_served] = false;
                }
            }
        }
        Ok(plan)
    }

    fn at_steps(&self, steps: &[u32]) -> Option<Vec<PlannedTask>> {
        let on_step = |(spec, &step): (&TaskSpec, &u32)| {
            let size = spec.size(step)?;
            Some(PlannedTask { spec: *spec, size, copies: copies(spec, &self.options) })
        };
        self.options.tasks.iter().zip(steps).map(on_step).collect()
    }

    /// Returns the task with the least memory relative to its weight, of those that can grow.
    fn least_served(&self, can_grow: &[bool]) -> Option<usize> {
        let growing = (0..self.tasks.len()).filter(|&task| can_grow[task]);
        growing.min_by_key(|&task| self.tasks[task].bytes_each().0 / self.tasks[task].spec.memory_weight())
    }

    /// Returns the tasks, in the order of the options.
    pub fn tasks(&self) -> &[PlannedTask] {
        &self.tasks
    }

    /// Returns the options.
    pub fn options(&self) -> &TasksOptions {
        &self.options
    }

    /// Returns the maximum memory in use at one time: at most [`TasksOptions::memory`].
    pub fn bytes(&self) -> Bytes {
        let states: u64 = self.tasks.iter().map(|task| task.bytes().0).sum();
        let samples = self.sampled_sketches() > 0;
        Bytes(states + if samples { table_bytes(self.options.sampling.min_probability()) } else { 0 })
    }

    /// Returns the number of sketches per worker whose updates are sampled.
    pub(super) fn sampled_sketches(&self) -> usize {
        self.tasks.iter().map(|task| task.size.sampled().0).sum()
    }

    pub(super) fn sampling(&self) -> Sampling {
        self.options.sampling
    }

    pub(super) fn window(&self) -> Nanos {
        self.options.window
    }

    /// Returns an empty state of a task.
    pub(super) fn empty(&self, task: usize) -> TaskState {
        let task = &self.tasks[task];
        task.spec.empty(task.size, Hasher::new(self.options.seed))
    }
}

fn validate(options: &TasksOptions) -> Result<(), PlanError> {
    let TasksOptions { tasks, window, kept_windows, workers, .. } = options;
    if tasks.is_empty() {
        return Err(PlanError::NoTasks);
    }
    if let Some((_, spec)) = tasks.iter().enumerate().find(|(number, spec)| tasks[..*number].contains(spec)) {
        return Err(PlanError::Twice(*spec));
    }
    if *window < Plan::SHORTEST_WINDOW {
        return Err(PlanError::ShortWindow { window: *window });
    }
    if *kept_windows == 0 {
        return Err(PlanError::NoKeptWindows);
    }
    if *workers == 0 {
        return Err(PlanError::NoWorkers);
    }
    let uneven = |spec: &&TaskSpec| spec.period().is_some_and(|period| period.0 % window.0 != 0);
    match tasks.iter().find(uneven) {
        Some(spec) => Err(PlanError::Period { spec: *spec, window: *window }),
        None => Ok(()),
    }
}

/// The number of states of a task at one time.
fn copies(spec: &TaskSpec, options: &TasksOptions) -> u64 {
    let for_periods = if spec.period().is_some() { 2 } else { 0 };
    2 * options.workers as u64 + options.kept_windows as u64 + 1 + for_periods
}
