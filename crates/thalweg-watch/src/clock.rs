//! The clocks of a run, passed in by the caller.

use std::time::{Duration, Instant};

use thalweg_wire::Timestamp;

/// The clocks of a run.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The time of day, which timestamps captured packets.
    pub wall: fn() -> Timestamp,
    /// A monotonic clock, for replay pace and update intervals.
    pub steady: fn() -> Instant,
}

impl Clock {
    /// Returns the time of day.
    pub(crate) fn time(self) -> Timestamp {
        (self.wall)()
    }

    /// Returns the monotonic time.
    pub(crate) fn now(self) -> Instant {
        (self.steady)()
    }

    /// Returns the monotonic time elapsed since `moment`.
    pub(crate) fn since(self, moment: Instant) -> Duration {
        self.now().saturating_duration_since(moment)
    }
}
