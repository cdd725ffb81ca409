//! What a worker does for the tasks: its packets are counted, and each window that is over is handed on.
//!
//! **Turns.** The memory of the plan is kept to while no worker is more than one window ahead of another
//! ([`thalweg_measure::tasks::Plan`]). So a worker waits for its turn before it ends a window; it gets the next turn
//! when every other worker has ended the window that it ended last. Nobody waits for a worker that has gone.

use crossbeam_channel::{Receiver, Sender};
use thalweg_measure::tasks::{Monitor, Plan};
use thalweg_wire::{Nanos, Packet, Timestamp};

use crate::message::{Message, tell};

/// The tasks of one worker.
#[derive(Debug)]
pub(crate) struct Monitoring {
    worker: usize,
    /// `None` once it is finished.
    monitor: Option<Monitor>,
    window: Nanos,
    /// End of the window under way; zero before there is one.
    end: Timestamp,
    /// The latest time that was heard of.
    clock: Timestamp,
    turns: Receiver<()>,
    sender: Sender<Message>,
}

impl Monitoring {
    /// Worker number `worker` of the plan, which may end a window whenever there is something in `turns`.
    pub(crate) fn new(
        plan: &Plan,
        worker: usize,
        turns: Receiver<()>,
        sender: Sender<Message>,
    ) -> Monitoring {
        let (end, clock) = Default::default();
        let monitor = Some(Monitor::new(plan, worker));
        Monitoring { worker, monitor, window: plan.options().window, end, clock, turns, sender }
    }

    /// Counts packets.
    pub(crate) fn packets(&mut self, packets: &[Packet]) {
        let mut rest = packets;
        loop {
            let inside = rest.iter().position(|packet| self.is_over(packet.time)).unwrap_or(rest.len());
            let (these, later) = rest.split_at(inside);
            if let Some(monitor) = &mut self.monitor {
                monitor.packets(these, |_| unreachable!("they are all before the window's end"));
            }
            let Some(first) = later.first() else { break };
            self.end_window(first.time);
            rest = later;
        }
        self.clock = packets.iter().fold(self.clock, |clock, packet| clock.max(packet.time));
    }

    /// Lets time pass up to `now`; zero if nothing is known of it.
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

    /// Hands on what there is, and says that there will be no more.
    pub(crate) fn finish(&mut self) {
        let Some(monitor) = self.monitor.take() else { return };
        self.wait_for_turn();
        let mut over = Vec::new();
        monitor.finish(|state| over.push(state));
        tell(&self.sender, Message::Windows(over));
        tell(&self.sender, Message::NoMoreWindows(self.worker));
    }

    /// The latest time that was heard of.
    pub(crate) fn clock(&self) -> Timestamp {
        self.clock
    }

    /// As [`Monitor`] has it: the last window that there can be never ends.
    #[inline]
    fn is_over(&self, now: Timestamp) -> bool {
        now >= self.end && self.end.0 < u64::MAX
    }

    /// Begins the window that `now` is in; hands on the one before, if there was one.
    #[cold]
    fn end_window(&mut self, now: Timestamp) {
        if self.end > Timestamp::default() {
            self.wait_for_turn();
        }
        self.end = Timestamp(now.0 / self.window.0 * self.window.0) + self.window;
        let Some(monitor) = &mut self.monitor else { return };
        let mut over = Vec::new();
        monitor.advance(now, |state| over.push(state));
        // One message a turn, so that it is known when a turn is over.
        if !over.is_empty() {
            tell(&self.sender, Message::Windows(over));
        }
    }

    fn wait_for_turn(&self) {
        // If the main thread is on its way out, nobody is to be waited for.
        let _ = self.turns.recv();
    }
}

/// A worker that panics must not be waited for by the others.
impl Drop for Monitoring {
    fn drop(&mut self) {
        if self.monitor.is_some() {
            tell(&self.sender, Message::NoMoreWindows(self.worker));
        }
    }
}
