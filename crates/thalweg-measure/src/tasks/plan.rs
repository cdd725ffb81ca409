//! How the memory is divided between tasks, workers and windows, before the first packet.
//!
//! Of each task's state there are as many copies as can be needed at one time: with W workers and N kept windows,
//!
//! - W that count, and W of a window that has just ended, on their way to [`super::Windows`];
//! - N that are kept, and one more while several are put together for an answer;
//! - for `change` two more: the period under way and the one before.
//!
//! So the bound stands while no worker is more than one window ahead of another, which a caller can see to
//! ([`super::Windows::is_ahead`]).
//!
//! The memory of a task's state is a step on a ladder, each step about twice the one before. All tasks begin on
//! their lowest steps; then the task that has least for what it weighs goes up a step, if that fits, until nothing
//! fits any more.

use thalweg_sketch::Hasher;
use thalweg_sketch::nitro::table_bytes;
use thalweg_wire::{Bytes, Nanos};
use thiserror::Error;

use super::kinds::TaskSpec;
use super::options::{Sampling, TasksOptions};
use super::size::TaskSize;
use super::state::TaskState;

/// Who gets how much memory: what monitors and windows are made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    options: TasksOptions,
    tasks: Vec<PlannedTask>,
}

/// A task and what it got.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannedTask {
    /// The task.
    pub spec: TaskSpec,
    /// How large its sketches are.
    pub size: TaskSize,
    /// States of this size that there may be at one time.
    pub copies: u64,
}

/// Why there is no plan.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    /// Nothing is to be measured.
    #[error("no tasks: expected at least one, such as heavy:0.1%")]
    NoTasks,
    /// A task is there twice.
    #[error("the task {0} is there twice")]
    Twice(TaskSpec),
    /// A window so short that it would cost more to end it than to count in it.
    #[error("the window must be at least {}, not {window}", Plan::SHORTEST_WINDOW)]
    ShortWindow {
        /// Length of a window.
        window: Nanos,
    },
    /// No window would be kept.
    #[error("at least one window must be kept")]
    NoKeptWindows,
    /// Nobody would count.
    #[error("there must be at least one worker")]
    NoWorkers,
    /// A period that windows do not fill.
    #[error("{spec}: a period must be a whole number of windows, which are of {window}")]
    Period {
        /// The task.
        spec: TaskSpec,
        /// Length of a window.
        window: Nanos,
    },
    /// Not even the smallest sketches fit.
    #[error(
        "{memory} are too little for these tasks, {workers} worker(s) and {kept_windows} kept window(s): they take at least {least} ({} bytes)",
        least.0
    )]
    Memory {
        /// Memory offered.
        memory: Bytes,
        /// Memory needed.
        least: Bytes,
        /// Workers asked for.
        workers: usize,
        /// Kept windows asked for.
        kept_windows: usize,
    },
}

impl PlannedTask {
    /// Memory of one state.
    pub fn bytes_each(&self) -> Bytes {
        Bytes(self.size.bytes(self.spec.weight()))
    }

    /// Memory of all states that there may be at one time.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.copies * self.bytes_each().0)
    }
}

impl Plan {
    /// The shortest window that there may be.
    pub const SHORTEST_WINDOW: Nanos = Nanos::from_millis(1);

    /// Divides the memory.
    ///
    /// # Errors
    /// If an option makes no sense, or the memory is too little for the smallest sketches.
    pub fn new(options: TasksOptions) -> Result<Plan, PlanError> {
        validate(&options)?;
        let mut steps = vec![0; options.tasks.len()];
        let mut plan = Plan { tasks: Vec::new(), options };
        plan.tasks = plan.on_steps(&steps).expect("every task has a lowest step");
        let (memory, least) = (plan.options.memory, plan.bytes());
        if least > memory {
            let TasksOptions { workers, kept_windows, .. } = plan.options;
            return Err(PlanError::Memory { memory, least, workers, kept_windows });
        }
        let mut can_grow = vec![true; steps.len()];
        while let Some(poorest) = plan.poorest(&can_grow) {
            steps[poorest] += 1;
            match plan.on_steps(&steps).map(|tasks| Plan { tasks, ..plan.clone() }) {
                Some(larger) if larger.bytes() <= memory => plan = larger,
                _ => {
                    steps[poorest] -= 1;
                    can_grow[poorest] = false;
                }
            }
        }
        Ok(plan)
    }

    fn on_steps(&self, steps: &[u32]) -> Option<Vec<PlannedTask>> {
        let on_step = |(spec, &step): (&TaskSpec, &u32)| {
            let size = spec.size(step)?;
            Some(PlannedTask { spec: *spec, size, copies: copies(spec, &self.options) })
        };
        self.options.tasks.iter().zip(steps).map(on_step).collect()
    }

    /// The task that has least for what it is worth, of those that can grow.
    fn poorest(&self, can_grow: &[bool]) -> Option<usize> {
        let growing = (0..self.tasks.len()).filter(|&task| can_grow[task]);
        growing.min_by_key(|&task| self.tasks[task].bytes_each().0 / self.tasks[task].spec.worth())
    }

    /// The tasks, in the order asked for.
    pub fn tasks(&self) -> &[PlannedTask] {
        &self.tasks
    }

    /// What was asked for.
    pub fn options(&self) -> &TasksOptions {
        &self.options
    }

    /// Memory of all that there may be at one time: at most [`TasksOptions::memory`].
    pub fn bytes(&self) -> Bytes {
        let states: u64 = self.tasks.iter().map(|task| task.bytes().0).sum();
        let samples = self.sampled_sketches() > 0;
        Bytes(states + if samples { table_bytes(self.options.sampling.least()) } else { 0 })
    }

    /// Sketches of one worker whose updates are sampled.
    pub(super) fn sampled_sketches(&self) -> usize {
        self.tasks.iter().map(|task| task.size.sampled().0).sum()
    }

    pub(super) fn sampling(&self) -> Sampling {
        self.options.sampling
    }

    pub(super) fn window(&self) -> Nanos {
        self.options.window
    }

    /// The state of a task that has seen nothing.
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

/// States of a task at one time.
fn copies(spec: &TaskSpec, options: &TasksOptions) -> u64 {
    let for_periods = if spec.period().is_some() { 2 } else { 0 };
    2 * options.workers as u64 + options.kept_windows as u64 + 1 + for_periods
}
