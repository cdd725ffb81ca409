//! Collectors: what they are and how they do.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answered, Moment, Rate};

/// All collectors.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Collectors {
    /// Who answered, and when.
    pub answered: Vec<Answered>,
    /// In the order of the configuration.
    pub collectors: Vec<Collector>,
}

/// A collector: one monitor port of one switch.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Collector {
    /// Its name.
    pub name: String,
    /// The switch that it watches.
    pub switch: String,
    /// Where packets come from: an interface, a file, an experiment.
    pub source: String,
    /// Whether they come as they happen.
    pub live: bool,
    /// How packets come, and why so; empty before the source is open.
    pub backend: String,
    /// What it is doing.
    pub state: State,
    /// How often its source was opened again after a failure.
    pub restarts: u64,
    /// What it counts; null if it did not answer.
    pub counts: Option<Counts>,
}

/// What a collector is doing.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct State {
    /// In one word.
    pub name: StateName,
    /// Why it failed; null if it has not.
    pub error: Option<String>,
    /// When its source is tried again; null if it is not.
    pub retry_at: Option<Moment>,
}

/// What a collector is doing, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    /// Its source is being opened.
    Starting,
    /// It reads packets.
    Running,
    /// Its source has come to its end; it still answers.
    Ended,
    /// Its source cannot be opened, or could not go on.
    Failed,
    /// It was told to stop.
    Stopped,
}

/// What a collector counts; `/metrics` has it all.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Counts {
    /// Frames read.
    pub frames: u64,
    /// IP packets among them.
    pub packets: u64,
    /// Frames that the kernel dropped for want of room.
    pub kernel_drops: u64,
    /// Flows in the table.
    pub flows: u64,
    /// Flows that fit in.
    pub flow_capacity: u64,
    /// Share of mirrored packets that arrive; null until TCP flows have shown it.
    pub sampling_ratio: Option<Rate>,
    /// Events told of links.
    pub events: u64,
    /// Memory of flow table, rates and detector.
    pub memory_bytes: u64,
}

/// How the daemon does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Health {
    /// `ok`, or what is not.
    pub status: Cow<'static, str>,
    /// Name of the program.
    pub name: Cow<'static, str>,
    /// Its version.
    pub version: Cow<'static, str>,
    /// When it was started.
    pub started: Moment,
}
