//! Clocks are arguments: whoever runs a watch says what time it is.

use std::time::{Duration, Instant};

use thalweg_wire::Timestamp;

/// The clocks of whoever runs a watch.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The time of day, which packets of interfaces are stamped with.
    pub wall: fn() -> Timestamp,
    /// A clock that never goes back, for the pace of a replay and for how often something is shown.
    pub steady: fn() -> Instant,
}

impl Clock {
    /// The time of day.
    pub(crate) fn time(self) -> Timestamp {
        (self.wall)()
    }

    /// The moment of the steady clock.
    pub(crate) fn now(self) -> Instant {
        (self.steady)()
    }

    /// Time since a moment of the steady clock.
    pub(crate) fn since(self, moment: Instant) -> Duration {
        self.now().saturating_duration_since(moment)
    }
}
