//! The clock of the threads here.

use std::time::Instant;

use thalweg_wire::Timestamp;

/// Counts from an arbitrary beginning, and never runs backwards.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(Instant);

impl Clock {
    pub(super) fn start() -> Clock {
        Clock(Instant::now())
    }

    pub(super) fn now(self) -> Timestamp {
        Timestamp(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
