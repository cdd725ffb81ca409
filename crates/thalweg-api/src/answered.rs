//! Who answered, and when.

use super::Moment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
