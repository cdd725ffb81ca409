//! The measurement tasks of a collector. Its thread counts packets; another thread evaluates completed windows, which takes
//! milliseconds.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use thalweg_measure::tasks::{Monitor, Plan, TasksOptions, WindowReport, WindowState, Windows};
use thalweg_wire::{Packet, Timestamp};

use super::handle::{TaskAnswer, TaskHistory, TaskReportWriter, TasksReport};
use crate::event::{EventKind, TrafficChange};

/// Maximum number of windows that wait for evaluation.
const QUEUE_CAPACITY: usize = 2;

/// Number of answers of each task that are kept: an hour of windows of a minute.
const KEPT_ANSWERS: usize = 60;

/// Counts packets for tasks.
pub(super) struct TaskMonitor {
    monitor: Monitor,
    sink: WindowSink,
    /// The latest packet time.
    clock: Timestamp,
    evaluation: Option<JoinHandle<()>>,
}

/// The queue of completed windows.
struct WindowSink {
    sender: Sender<WindowState>,
    is_live: bool,
    /// Counts windows that find the queue full.
    report_writer: TaskReportWriter,
}

impl TaskMonitor {
    /// Creates the counter, and starts the evaluation thread, which publishes changes that exceed their bounds.
    ///
    /// # Panics
    /// If the tasks cannot be planned, which the configuration excludes, or the thread cannot be started.
    pub(super) fn start(
        options: &TasksOptions,
        report_writer: TaskReportWriter,
        is_live: bool,
        publish: impl Fn(Timestamp, EventKind) + Send + 'static,
    ) -> TaskMonitor {
        let plan = Plan::new(options.clone()).expect("tasks are planned when the configuration is read");
        let monitor = Monitor::new(&plan, 0);
        let (sender, receiver) = bounded(QUEUE_CAPACITY);
        let sink = WindowSink { sender, is_live, report_writer: report_writer.clone() };
        let evaluation = std::thread::Builder::new()
            .name("windows".to_owned())
            .spawn(move || evaluate(&plan, &receiver, &report_writer, publish))
            .expect("a thread can be started");
        TaskMonitor { monitor, sink, clock: Timestamp::default(), evaluation: Some(evaluation) }
    }

    /// Counts packets.
    #[inline]
    pub(super) fn packets(&mut self, packets: &[Packet]) {
        let TaskMonitor { monitor, sink, clock, .. } = self;
        monitor.packets(packets, |window| sink.put(window));
        if let Some(last) = packets.last() {
            *clock = last.time.max(*clock);
        }
    }

    /// Advances time.
    pub(super) fn advance(&mut self, now: Timestamp) {
        if now >= self.clock {
            self.clock = now;
            self.monitor.advance(now, |window| self.sink.put(window));
        }
    }

    /// Completes the current window, and waits for the evaluation.
    pub(super) fn finish(self) {
        let TaskMonitor { monitor, sink, evaluation, .. } = self;
        monitor.finish(|window| sink.put(window));
        drop(sink);
        // If the thread panicked, its earlier reports remain.
        let _ = evaluation.map(JoinHandle::join);
    }
}

impl WindowSink {
    /// Queues a window. A full queue drops it for a live source, and blocks for others.
    fn put(&self, window: WindowState) {
        let is_sent = match self.is_live {
            true => self.sender.try_send(window).is_ok(),
            false => self.sender.send(window).is_ok(),
        };
        if !is_sent {
            self.report_writer.note_lost();
        }
    }
}

/// Evaluates windows until the queue closes.
fn evaluate(
    plan: &Plan,
    states: &Receiver<WindowState>,
    report_writer: &TaskReportWriter,
    publish: impl Fn(Timestamp, EventKind),
) {
    let mut windows = Windows::new(plan);
    let mut report = TasksReport::of(plan);
    report_writer.set(report.clone());
    for state in states {
        windows.add(state);
        while let Some(window) = windows.next_report() {
            report_writer.note_windows(window.windows);
            for result in &window.results {
                if let Some(change) = TrafficChange::of(result) {
                    publish(window.end, EventKind::TrafficChange(change));
                }
            }
            report.take(window);
            report_writer.set(report.clone());
        }
    }
}

impl TasksReport {
    /// Creates a report of these tasks without answers.
    pub fn of(plan: &Plan) -> TasksReport {
        let history = |spec| TaskHistory { spec, answers: VecDeque::new() };
        TasksReport {
            tasks: plan.tasks().iter().map(|task| history(task.spec)).collect(),
            ..TasksReport::default()
        }
    }

    /// Adds a completed window. The oldest answers of its tasks go.
    pub fn take(&mut self, window: WindowReport) {
        self.windows += window.windows;
        for result in &window.results {
            if let Some(TaskHistory { answers, .. }) = self.tasks.get_mut(result.task) {
                if answers.len() == KEPT_ANSWERS {
                    answers.pop_front();
                }
                let window = (window.start, window.end);
                answers.push_back(Arc::new(TaskAnswer { window, result: result.clone() }));
            }
        }
        self.last = Some(Arc::new(window));
    }
}
