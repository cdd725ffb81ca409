//! Collectors: their configuration, state and counters.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BoundKind, CollectorResponse, UtcTime};

/// All collectors.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Collectors {
    /// Which collectors responded, and when.
    pub responses: Vec<CollectorResponse>,
    /// In the order of the configuration.
    pub collectors: Vec<Collector>,
}

/// A collector, which reads the monitor port of one switch.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Collector {
    /// Name of the collector.
    pub name: String,
    /// The switch that it monitors.
    pub switch: String,
    /// The packet source: an interface, a file or an emulated experiment.
    pub source: String,
    /// Whether the source is live.
    pub live: bool,
    /// The capture backend and why it was chosen; empty before the source is open.
    pub backend: String,
    /// The state of the collector.
    pub state: State,
    /// How often the source was reopened after a failure.
    pub restarts: u64,
    /// Counters; null if the collector did not respond.
    pub counts: Option<Counts>,
}

/// The state of a collector.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct State {
    /// The state in one word.
    pub name: StateName,
    /// Why the collector failed; null unless it failed.
    pub error: Option<String>,
    /// When the daemon reopens the source; null if it does not.
    pub retry_at: Option<UtcTime>,
}

/// The state of a collector in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    /// The source is being opened.
    Starting,
    /// The collector reads packets.
    Running,
    /// The collector reads packets, but the kernel dropped some within the last 10 s.
    Dropping,
    /// The source has ended. The collector still responds to queries.
    Ended,
    /// The source could not be opened or read.
    Failed,
    /// The collector was stopped.
    Stopped,
}

/// Counters of a collector. `/metrics` has all of them.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Counts {
    /// Frames read.
    pub frames: u64,
    /// IP packets in these frames.
    pub packets: u64,
    /// Frames that the kernel dropped because the ring buffer was full.
    pub kernel_drops: u64,
    /// Flows in the flow table.
    pub flows: u64,
    /// Capacity of the flow table.
    pub flow_capacity: u64,
    /// Share of mirrored packets that arrive; null until TCP flows reveal it.
    pub sampling_ratio: Option<f64>,
    /// Lower bound of `sampling_ratio`; null if there is none.
    pub sampling_ratio_lower: Option<f64>,
    /// Upper bound of `sampling_ratio`; null if there is none.
    pub sampling_ratio_upper: Option<f64>,
    /// Probability with which the bounds of `sampling_ratio` hold, at least; null if there are none.
    pub confidence: Option<f64>,
    /// Which bounds `sampling_ratio` has.
    pub bounds: BoundKind,
    /// Link events published.
    pub events: u64,
    /// Memory of the flow table, the rate estimators and the cheetah detector.
    pub memory_bytes: u64,
}

/// The health of the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Health {
    /// `ok`, `starting` or `stopping`.
    pub status: Cow<'static, str>,
    /// Name of the program.
    pub name: Cow<'static, str>,
    /// Version of the program.
    pub version: Cow<'static, str>,
    /// When the daemon started.
    pub started: UtcTime,
}
