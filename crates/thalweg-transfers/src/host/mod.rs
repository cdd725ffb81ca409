//! Parameters and load of this host, and its TCP connections.
//!
//! | file | contents |
//! |---|---|
//! | `parameters` | what rarely changes |
//! | `load` | processors, memory, disk and interface during an interval |
//! | `connections` | TCP connections that move much data |
//! | `processes` | processes of these connections |
//! | `disk` | the disk of a directory |
//! | `interface` | the interface of the default route |
//!
//! Counters that went back, as after a reset, count as 0 for that interval. Intervals do not depend on the wall clock, which may be set.

mod connections;
mod disk;
mod interface;
mod load;
mod parameters;
mod processes;

pub use connections::{ConnectionOptions, ConnectionSampler};
pub use disk::Disk;
pub use interface::default_interface;
pub use load::LoadSampler;
pub use parameters::{ParameterOptions, parameters};

use thalweg_linux::clock::{monotonic, realtime};
use thalweg_wire::Timestamp;

/// When a sample is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleTime {
    /// By the wall clock.
    pub wall: Timestamp,
    /// By a clock that nobody sets. Intervals are measured with it.
    pub monotonic: Timestamp,
}

impl SampleTime {
    /// Reads both clocks.
    pub fn now() -> SampleTime {
        SampleTime { wall: realtime(), monotonic: monotonic() }
    }

    /// Returns the microseconds since an earlier sample.
    fn micros_since(self, earlier: SampleTime) -> u64 {
        self.monotonic.0.saturating_sub(earlier.monotonic.0) / 1_000
    }
}

/// Returns the length of an interval as samples have it: at most 71 minutes.
fn interval(micros: u64) -> u32 {
    u32::try_from(micros).unwrap_or(u32::MAX)
}

/// Returns microseconds since 1970.
pub(crate) fn micros(time: Timestamp) -> i64 {
    (time.0 / 1_000) as i64
}
