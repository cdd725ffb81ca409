//! Size and timeouts of a flow table, and their validation.

use thiserror::Error;

use crate::detect::sliding_window::SlidingWindow;
use crate::memory::MemoryError;
use thalweg_wire::Nanos;

/// Size and timeouts of a flow table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowTableOptions {
    /// The maximum number of live flows. Default 1,048,576 (155 MB when all are in use).
    pub capacity: u32,
    /// A flow ends when no packet arrived for this long. Default 15 s, like the defaults of Cisco's exporters and
    /// softflowd's shorter timeouts.
    pub idle_timeout: Nanos,
    /// A flow that lasts longer is exported in parts of this length. Default 30 min, Cisco's default.
    pub active_timeout: Nanos,
    /// A flow that TCP has ended is exported when no packet arrived for this long, or for the flight duration of the
    /// detector if that is longer. Default 1 s: longer than retransmissions of the last segments take.
    pub linger: Nanos,
}

impl Default for FlowTableOptions {
    fn default() -> Self {
        FlowTableOptions {
            capacity: 1 << 20,
            idle_timeout: Nanos::from_secs(15),
            active_timeout: Nanos::from_secs(30 * 60),
            linger: Nanos::from_secs(1),
        }
    }
}

/// Why a flow table could not be created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FlowTableError {
    /// The capacity is zero, or larger than slot numbers allow.
    #[error("flow table of {0} flows: expected 1 to 2^31")]
    Capacity(u32),
    /// A timeout is zero.
    #[error("{0} is 0: expected a duration above 0")]
    ZeroTimeout(&'static str),
    /// The detector checks windows longer than a flow is kept.
    #[error(
        "idle timeout {idle_timeout} is shorter than the flight duration {flight_duration}: expected at least that"
    )]
    IdleBeforeFlight {
        /// The idle timeout of the table.
        idle_timeout: Nanos,
        /// `T` of the detector.
        flight_duration: Nanos,
    },
    /// The table did not fit into memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

impl FlowTableOptions {
    pub(super) fn validate(&self, detector: Option<&SlidingWindow>) -> Result<(), FlowTableError> {
        if self.capacity == 0 || self.capacity > 1 << 31 {
            return Err(FlowTableError::Capacity(self.capacity));
        }
        let timeouts = [
            (self.idle_timeout, "idle timeout"),
            (self.active_timeout, "active timeout"),
            (self.linger, "linger"),
        ];
        if let Some((_, name)) = timeouts.iter().find(|(timeout, _)| *timeout == Nanos::ZERO) {
            return Err(FlowTableError::ZeroTimeout(name));
        }
        match detector.map(SlidingWindow::flight_duration) {
            Some(flight_duration) if flight_duration > self.idle_timeout => {
                Err(FlowTableError::IdleBeforeFlight { idle_timeout: self.idle_timeout, flight_duration })
            }
            _ => Ok(()),
        }
    }
}
