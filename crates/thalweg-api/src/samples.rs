//! Files of samples.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The files that samples were written to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Samples {
    /// One file per collector, or one per port.
    pub files: Vec<SampleFile>,
}

/// A file of samples.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct SampleFile {
    /// The collector that took the samples.
    pub collector: String,
    /// Path of the file on the daemon's machine.
    pub path: String,
    /// Packets in the file.
    pub packets: u64,
    /// Samples of the collector that were overwritten before they were copied.
    pub overwritten_packets: u64,
}
