//! Which collectors responded, and when.

use thalweg_api::{CollectorResponse, UtcTime};
use thalweg_wire::Timestamp;

use crate::collectors::{AskError, Asked, CollectorHandle};

/// Converts the outcome of a query.
pub fn collector_response<T>(
    collector: &CollectorHandle,
    answer: &Result<Asked<T>, AskError>,
) -> CollectorResponse {
    collector_response_at(collector, answer.as_ref().map(|asked| asked.time).map_err(|error| *error))
}

/// Converts the outcome of a query of which only the time is known.
pub fn collector_response_at(
    collector: &CollectorHandle,
    answer: Result<Timestamp, AskError>,
) -> CollectorResponse {
    CollectorResponse {
        collector: collector.name().to_owned(),
        time: answer.ok().map(UtcTime::from),
        error: answer.err().map(|error| error.to_string()),
    }
}
