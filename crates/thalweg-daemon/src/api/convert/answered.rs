//! Who answered, and when.

use thalweg_api::{Answered, Moment};
use thalweg_wire::Timestamp;

use crate::collectors::{CollectorHandle, CollectorReply, CollectorRequestError};

/// What became of a question.
pub fn answered<T>(
    collector: &CollectorHandle,
    answer: &Result<CollectorReply<T>, CollectorRequestError>,
) -> Answered {
    answered_at(collector, answer.as_ref().map(|asked| asked.time).map_err(|error| *error))
}

/// The same, when the time of the answer is all that is at hand.
pub fn answered_at(
    collector: &CollectorHandle,
    answer: Result<Timestamp, CollectorRequestError>,
) -> Answered {
    Answered {
        collector: collector.name().to_owned(),
        at: answer.ok().map(Moment::from),
        error: answer.err().map(|error| error.to_string()),
    }
}
