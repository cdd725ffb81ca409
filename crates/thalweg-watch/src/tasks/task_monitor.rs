//! The measurement tasks of a worker: counts its packets and sends finished windows.
//!
//! **Permits.** The plan's memory bound holds while no worker is more than one window ahead of another
//! ([`thalweg_measure::tasks::Plan`]). A worker therefore needs a permit to end a window. It receives the next permit when
//! all other workers have ended the window that it ended last. Ended workers do not count.

use crossbeam_channel::{Receiver, Sender};
use thalweg_measure::tasks::{Monitor, Plan};
use thalweg_wire::{Nanos, Packet, Timestamp};

use crate::message::{Message, send_message};

/// The measurement tasks of one worker.
#[derive(Debug)]
pub(crate) struct TaskMonitor {
    worker: usize,
    /// `None` once finished.
    monitor: Option<Monitor>,
    window: Nanos,
    /// End of the current window; zero before the first.
    end: Timestamp,
    /// The latest known packet time.
    clock: Timestamp,
    permits: Receiver<()>,
    sender: Sender<Message>,
}

impl TaskMonitor {
    /// Creates the tasks of worker number `worker` of the plan. Each item in `permits` allows it to end one window.
    pub(crate) fn new(
        plan: &Plan,
        worker: usize,
        permits: Receiver<()>,
        sender: Sender<Message>,
    ) -> TaskMonitor {
        let (end, clock) = Default::default();
        let monitor = Some(Monitor::new(plan, worker));
        TaskMonitor { worker, monitor, window: plan.options().window, end, clock, permits, sender }
    }

    /// Counts packets.
    pub(crate) fn packets(&mut self, packets: &[Packet]) {
        let mut rest = packets;
        loop {
            let count = rest.iter().position(|packet| self.is_over(packet.time)).unwrap_or(rest.len());
            let (inside, later) = rest.split_at(count);
            if let Some(monitor) = &mut self.monitor {
                monitor.packets(inside, |_| unreachable!("they are all before the window's end"));
            }
            let Some(first) = later.first() else { break };
            self.end_window(first.time);
            rest = later;
        }
        self.clock = packets.iter().fold(self.clock, |clock, packet| clock.max(packet.time));
    }

    /// Advances packet time to `now`, which is zero if unknown.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        if now < self.clock || now == Timestamp::default() {
            return;
        }
        self.clock = now;
        if self.is_over(now) {
            return self.end_window(now);
        }
        if let Some(monitor) = &mut self.monitor {
            monitor.advance(now, |_| unreachable!("it is before the window's end"));
        }
    }

    /// Sends the current window and ends the worker.
    pub(crate) fn finish(&mut self) {
        let Some(monitor) = self.monitor.take() else { return };
        self.wait_for_permit();
        let mut finished = Vec::new();
        monitor.finish(|state| finished.push(state));
        send_message(&self.sender, Message::Windows(finished));
        send_message(&self.sender, Message::NoMoreWindows(self.worker));
    }

    /// Returns the latest known packet time.
    pub(crate) fn clock(&self) -> Timestamp {
        self.clock
    }

    /// Whether the current window ends at or before `now`. As in [`Monitor`], the last representable window never ends.
    #[inline]
    fn is_over(&self, now: Timestamp) -> bool {
        now >= self.end && self.end.0 < u64::MAX
    }

    /// Sends the current window, if any, and starts the one that contains `now`.
    #[cold]
    fn end_window(&mut self, now: Timestamp) {
        if self.end > Timestamp::default() {
            self.wait_for_permit();
        }
        self.end = Timestamp(now.0 / self.window.0 * self.window.0) + self.window;
        let Some(monitor) = &mut self.monitor else { return };
        let mut finished = Vec::new();
        monitor.advance(now, |state| finished.push(state));
        // One message per permit, so that the main thread knows when a permit is used.
        if !finished.is_empty() {
            send_message(&self.sender, Message::Windows(finished));
        }
    }

    fn wait_for_permit(&self) {
        // If the main thread is exiting, do not wait.
        let _ = self.permits.recv();
    }
}

/// Other workers must not wait for a worker that panicked.
impl Drop for TaskMonitor {
    fn drop(&mut self) {
        if self.monitor.is_some() {
            send_message(&self.sender, Message::NoMoreWindows(self.worker));
        }
    }
}
