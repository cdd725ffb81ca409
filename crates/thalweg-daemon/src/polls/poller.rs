//! The thread of a poll.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use thalweg_linux::clock::{monotonic, realtime};
use thalweg_poll::{CounterSource, InterfaceReading, ReadError, Unusable};
use thalweg_wire::flow_export::CounterRecord;

use super::{Poll, store};
use crate::config::PollConfig;
use crate::event::{Event, EventKind};
use crate::hub::Hub;
use crate::lifecycle::Lifecycle;

/// How often a waiting thread checks whether the daemon stops.
const TICK: Duration = Duration::from_millis(100);

/// The longest wait after failed polls, as a multiple of the interval.
const MAX_BACK_OFF: u32 = 8;

/// The name of polls in events, where collectors have theirs.
const NAME: &str = "poll";

/// Polls one interface.
pub(super) struct Poller {
    pub(super) poll: Poll,
    pub(super) config: PollConfig,
    pub(super) source: Box<dyn CounterSource>,
    pub(super) hub: Arc<Hub>,
    pub(super) lifecycle: Lifecycle,
    /// The way to the store, if there is one.
    pub(super) rows: Option<Sender<CounterRecord>>,
}

impl Poller {
    /// Polls until the daemon stops.
    pub(super) fn run(mut self) {
        let interval: Duration = self.config.interval.into();
        let (mut due, mut failures) = (Instant::now(), 0);
        while !self.lifecycle.is_stopping() {
            let left = due.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                std::thread::sleep(left.min(TICK));
                continue;
            }
            failures = match self.read() {
                true => 0,
                false => failures + 1,
            };
            due += interval * back_off(failures);
            // Polls that a slow answer has made impossible are left out.
            due = due.max(Instant::now());
        }
    }

    /// Polls once. Returns whether counters were read.
    fn read(&mut self) -> bool {
        let result = self.source.read(&monotonic);
        // The poll may have taken long.
        if self.lifecycle.is_stopping() {
            return true;
        }
        match result {
            Ok(reading) => {
                self.add(reading);
                true
            }
            Err(error) => {
                self.fail(&error);
                false
            }
        }
    }

    fn add(&mut self, reading: InterfaceReading) {
        let name = self.poll.name();
        let row = store::row(&reading, realtime());
        let (unusable, had_failed) = {
            let mut state = self.poll.lock();
            let had_failed = state.report().error.is_some();
            (state.add(reading, realtime()), had_failed)
        };
        match unusable {
            Some(Unusable::SumOfQueues | Unusable::First) | None => {}
            Some(reason) => {
                tracing::info!(poll = name, reason = reason.name(), "interval of interface counters unusable")
            }
        }
        if let Some(rows) = &self.rows
            && rows.try_send(row).is_err()
        {
            self.poll.lock().note_lost_row();
        }
        if had_failed {
            tracing::info!(poll = name, "interface counters available again");
            self.publish(None);
        }
    }

    fn fail(&mut self, error: &ReadError) {
        let had_failed = {
            let mut state = self.poll.lock();
            let before = state.report().error_kind;
            state.fail(error, realtime());
            before == Some(error.kind())
        };
        if !had_failed {
            tracing::warn!(poll = self.poll.name(), %error, "interface counters unavailable");
            self.publish(Some(error.to_string()));
        }
    }

    fn publish(&self, error: Option<String>) {
        let now = realtime();
        let kind = EventKind::Poll { name: Arc::clone(&self.poll.name), error };
        self.hub.publish(Event { collector: NAME.into(), switch: "".into(), time: now, emitted: now, kind });
    }
}

/// Returns the wait after this many failed polls, in intervals: 1, 1, 2, 4, 8, 8.
fn back_off(failures: u32) -> u32 {
    1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(MAX_BACK_OFF).min(MAX_BACK_OFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_polls_become_rarer() {
        assert_eq!([0, 1, 2, 3, 4, 5, 40].map(back_off), [1, 1, 2, 4, 8, 8, 8]);
    }
}
