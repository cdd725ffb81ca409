//! Windows of all workers, put together as they come; and whose turn it is to end the next.

use std::ops::AddAssign;

use crossbeam_channel::{Receiver, Sender, bounded};
use thalweg_measure::tasks::{
    KeptWindow, Plan, SketchRef, TaskState, WindowReport, WindowState, WindowTally, Windows,
};
use thalweg_sketch::{Account, Probability, RowSketch};

/// The main thread's side of the tasks.
#[derive(Debug)]
pub(crate) struct Collector {
    windows: Windows,
    /// Where each worker finds its turns.
    turns: Vec<Sender<()>>,
    /// Workers that have a turn whose windows have not come yet.
    has_turn: Vec<bool>,
    /// The last window that each worker has handed on.
    through: Vec<Option<u64>>,
    /// Workers from which no more windows come.
    has_gone: Vec<bool>,
}

/// Where a worker finds its turns.
pub(crate) type Turn = Receiver<()>;

/// A window that is over, or several.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// What tasks say of it.
    pub report: WindowReport,
    /// How the sketches of each task fared; empty if there were no packets.
    pub health: Vec<Health>,
}

/// How sketches fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The smallest probability with which updates were sampled; `None` of sketches that see every packet.
    pub sampled: Option<Probability>,
    /// Additions beyond a counter's range.
    pub saturations: u64,
}

impl Collector {
    /// For the workers of the plan. Also gives the place where each finds its turns; the first is there.
    pub(crate) fn new(plan: &Plan) -> (Collector, Vec<Turn>) {
        let workers = plan.options().workers;
        let (turns, places): (Vec<_>, _) = (0..workers).map(|_| bounded(1)).unzip();
        let mut collector = Collector {
            windows: Windows::new(plan),
            turns,
            has_turn: vec![false; workers],
            through: vec![None; workers],
            has_gone: vec![false; workers],
        };
        collector.give_turns();
        (collector, places)
    }

    /// Takes what a worker has handed on in its turn; `take` gets each window that is complete with that.
    pub(crate) fn add(&mut self, states: Vec<WindowState>, take: impl FnMut(&Collector, Finished)) {
        for state in states {
            self.has_turn[state.worker] = false;
            self.through[state.worker] = Some(state.index);
            self.windows.add(state);
        }
        self.go_on(take);
    }

    /// No more windows come from a worker; `take` gets each that is complete with that.
    pub(crate) fn worker_has_gone(&mut self, worker: usize, take: impl FnMut(&Collector, Finished)) {
        self.has_gone[worker] = true;
        if self.has_gone.iter().all(|has_gone| *has_gone) {
            self.windows.finish();
        }
        self.go_on(take);
    }

    /// The states of the window that was over last; `None` if it had no packets.
    pub(crate) fn window_of(&self, finished: &Finished) -> Option<&KeptWindow> {
        self.windows.kept().last().filter(|window| window.index == finished.report.index)
    }

    /// What was measured, and how.
    pub(crate) fn plan(&self) -> &Plan {
        self.windows.plan()
    }

    /// All kept windows together, if there are any.
    pub(crate) fn together(&self) -> Option<Finished> {
        let report = self.windows.together()?;
        let mut health = vec![Health::default(); self.plan().tasks().len()];
        for window in self.windows.kept() {
            health.iter_mut().zip(self.health(&window.states)).for_each(|(sum, part)| *sum += part);
        }
        Some(Finished { report, health })
    }

    fn go_on(&mut self, mut take: impl FnMut(&Collector, Finished)) {
        self.catch_up();
        while let Some(report) = self.windows.next_report() {
            let mut finished = Finished { report, health: Vec::new() };
            if let Some(window) = self.window_of(&finished) {
                finished.health = self.health(&window.states);
            }
            take(self, finished);
        }
        self.give_turns();
    }

    /// Workers that have gone have no packets in the windows of the others.
    fn catch_up(&mut self) {
        let Some(index) = self.through.iter().copied().max().flatten() else { return };
        for worker in 0..self.through.len() {
            if self.has_gone[worker] && self.through[worker] < Some(index) {
                let (windows, tally, states) = (1, WindowTally::default(), Vec::new());
                self.windows.add(WindowState { worker, index, windows, tally, states });
                self.through[worker] = Some(index);
            }
        }
    }

    fn give_turns(&mut self) {
        for (worker, turn) in self.turns.iter().enumerate() {
            if !self.has_turn[worker] && !self.windows.is_ahead(worker) {
                // One that has gone takes no more.
                self.has_turn[worker] = turn.try_send(()).is_ok();
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
        let of =
            |account: &Account, saturations| Health { sampled: Some(account.min_probability()), saturations };
        match sketch {
            SketchRef::CountSketch32(sketch, _) => of(sketch.account(), sketch.saturations()),
            SketchRef::CountSketch64(sketch, _) => of(sketch.account(), sketch.saturations()),
            SketchRef::KAry32(sketch, _) => of(sketch.account(), sketch.saturations()),
            SketchRef::KAry64(sketch, _) => of(sketch.account(), sketch.saturations()),
            SketchRef::UnivMon32(univmon) => of(univmon.account(), univmon.saturations()),
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
