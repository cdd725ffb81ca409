//! The tasks of a collector: packets are counted where they are measured, windows that are over are evaluated by a
//! thread beside it, since that takes milliseconds.

use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use thalweg_measure::tasks::{Monitor, Plan, TasksOptions, WindowReport, WindowState, Windows};
use thalweg_wire::{Packet, Timestamp};

use super::handle::{TaskAnswer, TasksBoard, TasksReport};

/// Windows that wait to be evaluated, at most.
const WAITING: usize = 2;

/// Where packets are counted.
pub(super) struct TaskMonitor {
    monitor: Monitor,
    outlet: WindowSink,
    /// The latest time that was heard of.
    clock: Timestamp,
    evaluation: Option<JoinHandle<()>>,
}

/// Where windows that are over go.
struct WindowSink {
    sender: Sender<WindowState>,
    is_live: bool,
    /// Where it is counted what found no room.
    board: TasksBoard,
}

impl TaskMonitor {
    /// Counts, and starts the thread that evaluates.
    ///
    /// # Panics
    /// If the tasks cannot be planned, which the configuration has made sure of; or if the system has no more threads.
    pub(super) fn start(options: &TasksOptions, board: TasksBoard, is_live: bool) -> TaskMonitor {
        let plan = Plan::new(options.clone()).expect("tasks are planned when the configuration is read");
        let monitor = Monitor::new(&plan, 0);
        let (sender, receiver) = bounded(WAITING);
        let outlet = WindowSink { sender, is_live, board: board.clone() };
        let evaluation = std::thread::Builder::new()
            .name("windows".to_owned())
            .spawn(move || evaluate(&plan, &receiver, &board))
            .expect("a thread can be started");
        TaskMonitor { monitor, outlet, clock: Timestamp::default(), evaluation: Some(evaluation) }
    }

    /// Counts packets.
    #[inline]
    pub(super) fn packets(&mut self, packets: &[Packet]) {
        let TaskMonitor { monitor, outlet, clock, .. } = self;
        monitor.packets(packets, |window| outlet.put(window));
        if let Some(last) = packets.last() {
            *clock = last.time.max(*clock);
        }
    }

    /// Lets time pass.
    pub(super) fn advance(&mut self, now: Timestamp) {
        if now >= self.clock {
            self.clock = now;
            self.monitor.advance(now, |window| self.outlet.put(window));
        }
    }

    /// Evaluates what there is.
    pub(super) fn finish(self) {
        let TaskMonitor { monitor, outlet, evaluation, .. } = self;
        monitor.finish(|window| outlet.put(window));
        drop(outlet);
        // If it has panicked, what it found before stands.
        let _ = evaluation.map(JoinHandle::join);
    }
}

impl WindowSink {
    /// Of a live source a window is lost that finds no room; any other is read as slowly as windows are evaluated.
    fn put(&self, window: WindowState) {
        let is_sent = match self.is_live {
            true => self.sender.try_send(window).is_ok(),
            false => self.sender.send(window).is_ok(),
        };
        if !is_sent {
            self.board.note_lost();
        }
    }
}

/// Says what windows come to, until there are no more.
fn evaluate(plan: &Plan, states: &Receiver<WindowState>, board: &TasksBoard) {
    let mut windows = Windows::new(plan);
    let answers = plan.tasks().iter().map(|task| (task.spec, None)).collect();
    let mut report = TasksReport { answers, ..TasksReport::default() };
    board.set(report.clone());
    for state in states {
        windows.add(state);
        while let Some(window) = windows.next_report() {
            board.note_windows(window.windows);
            report.take(window);
            board.set(report.clone());
        }
    }
}

impl TasksReport {
    fn take(&mut self, window: WindowReport) {
        self.windows += window.windows;
        for result in &window.results {
            if let Some((_, answer)) = self.answers.get_mut(result.task) {
                let window = (window.start, window.end);
                *answer = Some(TaskAnswer { window, result: result.clone() });
            }
        }
        self.last = Some(Arc::new(window));
    }
}
