//! The clock of this machine.

use std::time::{SystemTime, UNIX_EPOCH};

use thalweg_wire::Timestamp;

/// Returns the current time of this machine's clock.
pub fn wall_clock() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::new(since_epoch.as_secs(), since_epoch.subsec_nanos())
}
