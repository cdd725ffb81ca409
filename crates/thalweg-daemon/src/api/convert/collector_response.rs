//! Which collectors responded, and when.

use thalweg_api::{CollectorResponse, UtcTime};
use thalweg_wire::Timestamp;

use crate::collectors::{CollectorHandle, CollectorReply, CollectorRequestError};

/// Converts the outcome of a query.
pub fn collector_response<T>(
    collector: &CollectorHandle,
    answer: &Result<CollectorReply<T>, CollectorRequestError>,
) -> CollectorResponse {
    collector_response_at(collector, answer.as_ref().map(|reply| reply.time).map_err(|error| *error))
}

/// Converts the outcome of a query of which only the time is known.
pub fn collector_response_at(
    collector: &CollectorHandle,
    answer: Result<Timestamp, CollectorRequestError>,
) -> CollectorResponse {
    CollectorResponse {
        collector: collector.name().to_owned(),
        time: answer.ok().map(UtcTime::from),
        error: answer.err().map(|error| error.to_string()),
    }
}
