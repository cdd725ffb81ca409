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
//! Counters that went back, as after a reset, count as 0 for that interval.

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

use thalweg_wire::Timestamp;

/// Returns microseconds since 1970.
pub(crate) fn micros(time: Timestamp) -> i64 {
    (time.0 / 1_000) as i64
}
