//! What was written, or why not.

use std::io;

use serde::Serialize;
use thalweg_wire::Nanos;
use thiserror::Error;

use super::options::SynthOptionsError;

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SynthSummary {
    /// Packets.
    pub packets: u64,
    /// Flows; both directions of a 5-tuple are one.
    pub flows: u64,
    /// Bytes of the IP layer.
    pub bytes: u64,
    /// Packets over IPv6.
    pub ipv6_packets: u64,
    /// Rows of the truth that are cheetahs.
    pub cheetahs: u64,
    /// Rows of the truth that are none: planted near-misses, and background flows above R*T/2.
    pub near_misses: u64,
    /// From the first packet to the last.
    #[serde(rename = "duration_ns", serialize_with = "as_number")]
    pub duration: Nanos,
}

fn as_number<S: serde::Serializer>(span: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(span.0)
}

/// Why no trace, or not all of one, was written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SynthError {
    /// The options contradict themselves; nothing was written.
    #[error(transparent)]
    Options(#[from] SynthOptionsError),
    /// The trace could not be written.
    #[error("cannot write the trace: {0}")]
    Trace(io::Error),
    /// The truth could not be written.
    #[error("cannot write the truth: {0}")]
    Truth(io::Error),
}
