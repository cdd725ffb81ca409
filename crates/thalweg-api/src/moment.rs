//! Times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thalweg_wire::Timestamp;

/// A point in time, twice: for people, and as a number. Of packets it is their own time stamp.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Moment {
    /// RFC 3339 in UTC, with nanoseconds.
    pub time: String,
    /// Nanoseconds since 1970-01-01 UTC. Above 2^53: read it as an integer.
    pub time_ns: u64,
}

impl From<Timestamp> for Moment {
    fn from(time: Timestamp) -> Moment {
        Moment { time: time.to_string(), time_ns: time.0 }
    }
}
