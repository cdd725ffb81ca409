//! The counting of one worker: all tasks, one window at a time.

use thalweg_wire::{Bytes, Nanos, Packet, Timestamp};

use super::counting::{Count, counting};
use super::plan::Plan;
use super::state::{WindowState, WindowTally};

/// Counts all tasks for one worker.
#[derive(Debug)]
pub struct Monitor {
    worker: usize,
    tasks: Vec<Box<dyn Count>>,
    window: Nanos,
    /// The current window; `None` before the first packet or time.
    current: Option<Window>,
}

/// The current window.
#[derive(Clone, Copy, Debug)]
struct Window {
    index: u64,
    start: Timestamp,
    end: Timestamp,
    tally: WindowTally,
}

impl Window {
    /// Returns the window that contains `time`.
    fn of(time: Timestamp, length: Nanos) -> Window {
        let index = time.0 / length.0;
        let start = Timestamp(index * length.0);
        Window { index, start, end: start + length, tally: WindowTally::default() }
    }

    /// Whether `time` is after the window. The last possible window never ends.
    #[inline(always)]
    fn is_over(&self, time: Timestamp) -> bool {
        time >= self.end && self.end.0 < u64::MAX
    }
}

impl Monitor {
    /// Creates the monitor of worker number `worker`, from zero.
    ///
    /// # Panics
    /// If the plan has fewer workers.
    pub fn new(plan: &Plan, worker: usize) -> Monitor {
        assert!(worker < plan.options().workers, "the plan has fewer workers");
        let tasks = (0..plan.tasks().len()).map(|task| counting(plan, task, worker)).collect();
        Monitor { worker, tasks, window: plan.window(), current: None }
    }

    /// Counts packets. Each completed window is passed to `emit` at once, before later packets are counted.
    /// `emit` may block until the window is accepted, so at most one window is in transit even if a batch spans
    /// many.
    pub fn packets(&mut self, packets: &[Packet], mut emit: impl FnMut(WindowState)) {
        let mut rest = packets;
        while let Some(first) = rest.first() {
            self.advance_to(first.time, &mut emit);
            let Some(window) = &mut self.current else { return };
            let inside;
            (inside, rest) = rest.split_at(window.count_into_window(rest));
            for task in &mut self.tasks {
                task.packets(inside);
            }
        }
    }

    /// Advances the time to `now`: passes on the current window if it is over. Call it about once per batch, with
    /// packet time: a packet older than the current window is late.
    pub fn advance(&mut self, now: Timestamp, mut emit: impl FnMut(WindowState)) {
        self.advance_to(now, &mut emit);
        for task in &mut self.tasks {
            task.advance(now);
        }
    }

    /// Passes on the current window, even if it is not over.
    pub fn finish(mut self, mut emit: impl FnMut(WindowState)) {
        if let Some(window) = self.current {
            emit(self.finished(window));
        }
    }

    /// Begins the window that contains `now`, unless it is not after the current one.
    #[inline(always)]
    fn advance_to(&mut self, now: Timestamp, emit: &mut impl FnMut(WindowState)) {
        match self.current {
            Some(window) if !window.is_over(now) => {}
            _ => self.begin(now, emit),
        }
    }

    #[cold]
    fn begin(&mut self, now: Timestamp, emit: &mut impl FnMut(WindowState)) {
        let next = Window::of(now, self.window);
        if let Some(window) = self.current {
            emit(self.finished(window));
            // However far the clock has jumped, the windows in between form one stretch.
            let between = next.index - window.index - 1;
            if between > 0 {
                let (index, tally) = (next.index - 1, WindowTally::default());
                emit(WindowState { worker: self.worker, index, windows: between, tally, states: Vec::new() });
            }
        }
        self.current = Some(next);
    }

    fn finished(&mut self, window: Window) -> WindowState {
        let Window { index, tally, .. } = window;
        let states = match tally.packets {
            0 => Vec::new(),
            _ => self.tasks.iter_mut().map(|task| task.take_state()).collect(),
        };
        WindowState { worker: self.worker, index, windows: 1, tally, states }
    }
}

impl Window {
    /// Returns how many of the packets, from the first on, come before the window's end. Adds them to its tally.
    #[inline(always)]
    fn count_into_window(&mut self, packets: &[Packet]) -> usize {
        let (mut bytes, mut late, mut taken) = (0, 0, 0);
        for packet in packets {
            if self.is_over(packet.time) {
                break;
            }
            bytes += u64::from(packet.ip_length);
            late += u64::from(packet.time < self.start);
            taken += 1;
        }
        self.tally += WindowTally { packets: taken as u64, bytes: Bytes(bytes), late };
        taken
    }
}
