//! Files of samples.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Files that samples were written to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Samples {
    /// One a collector, or one a port.
    pub files: Vec<SampleFile>,
}

/// A file of samples.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct SampleFile {
    /// The collector whose samples are in it.
    pub collector: String,
    /// Where it is, on the machine that the daemon runs on.
    pub path: String,
    /// Packets in it.
    pub packets: u64,
    /// Samples of the collector that were overwritten before they were copied.
    pub overwritten: u64,
}
