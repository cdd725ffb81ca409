//! Which collectors responded, and when.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::UtcTime;

/// Whether a queried collector responded.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct CollectorResponse {
    /// Name of the collector.
    pub collector: String,
    /// Packet time of the response; null if there was none.
    pub time: Option<UtcTime>,
    /// Why the collector did not respond; null if it did.
    pub error: Option<String>,
}
