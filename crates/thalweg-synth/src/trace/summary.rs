//! Summary and errors of the generator.

use std::io;

use serde::Serialize;
use thalweg_wire::Nanos;
use thiserror::Error;

use super::options::SynthOptionsError;

/// Totals of a written trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SynthSummary {
    /// Number of packets.
    pub packets: u64,
    /// Number of flows; both directions of a 5-tuple are one.
    pub flows: u64,
    /// Bytes of the IP layer.
    pub bytes: u64,
    /// Number of packets over IPv6.
    pub ipv6_packets: u64,
    /// Truth rows that are cheetahs.
    pub cheetahs: u64,
    /// Other truth rows: planted near-misses, and background flows above R*T/2.
    pub near_misses: u64,
    /// Time from the first packet to the last.
    #[serde(rename = "duration_ns", serialize_with = "as_number")]
    pub duration: Nanos,
}

fn as_number<S: serde::Serializer>(span: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(span.0)
}

/// An error of the generator; the trace is missing or incomplete.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SynthError {
    /// The options are invalid; nothing was written.
    #[error(transparent)]
    Options(#[from] SynthOptionsError),
    /// The trace could not be written.
    #[error("cannot write the trace: {0}")]
    Trace(io::Error),
    /// The truth could not be written.
    #[error("cannot write the truth: {0}")]
    Truth(io::Error),
}
