//! Who answered, and when.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thalweg_wire::Timestamp;

use super::Moment;
use crate::serve::collectors::{AskError, Asked, CollectorHandle};

/// A collector that was asked.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Answered {
    /// Its name.
    pub collector: String,
    /// Packet time of its answer; null if there was none.
    pub at: Option<Moment>,
    /// Why it did not answer; null if it did.
    pub error: Option<String>,
}

impl Answered {
    /// What became of a question.
    pub fn of<T>(collector: &CollectorHandle, answer: &Result<Asked<T>, AskError>) -> Answered {
        Answered::new(collector, answer.as_ref().map(|asked| asked.time).map_err(|error| *error))
    }

    /// The same, when the time of the answer is all that is at hand.
    pub fn new(collector: &CollectorHandle, answer: Result<Timestamp, AskError>) -> Answered {
        Answered {
            collector: collector.name().to_owned(),
            at: answer.ok().map(Moment::from),
            error: answer.err().map(|error| error.to_string()),
        }
    }
}
