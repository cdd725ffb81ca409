//! What tasks have to say at the end of a window.

use thalweg_sketch::Estimate;
use thalweg_wire::Timestamp;

use super::flow_bytes::FlowBytes;
use super::flow_name::FlowName;
use super::spec::TaskSpec;
use super::state::WindowTally;

/// The end of a window, or of a stretch of windows without packets, or several kept windows together.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowReport {
    /// Number of the window, its start divided by its length; of several the last.
    pub index: u64,
    /// Windows that it stands for: one, a stretch without packets, or all that are kept.
    pub windows: u64,
    /// The first moment.
    pub start: Timestamp,
    /// The first moment after.
    pub end: Timestamp,
    /// What was counted.
    pub tally: WindowTally,
    /// What tasks say, in their order. All but `change` say something each time; `change` at the end of a period
    /// (of two periods, if nothing came for so long).
    pub results: Vec<TaskResult>,
}

/// What a task says.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskResult {
    /// Number of the task in the plan.
    pub task: usize,
    /// The task.
    pub spec: TaskSpec,
    /// What it says.
    pub value: TaskValue,
}

/// What a task says; estimates carry their bounds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TaskValue {
    /// Of `heavy`.
    Heavy(HeavyHitters),
    /// Of `change`.
    Change(Changes),
    /// Of `distinct`: the number of different keys.
    Distinct(Estimate),
    /// Of `entropy`.
    Entropy(Entropy),
    /// Of `spread`.
    Spread(Spreaders),
    /// Of `moments`.
    Moments(Moments),
    /// Of `hhh`.
    Hierarchy(HeavyPrefixes),
}

/// Keys with at least a share of all traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct HeavyHitters {
    /// All traffic, exactly: packets or bytes.
    pub total: u64,
    /// Largest first.
    pub keys: Vec<HeavyKey>,
    /// Keys that are remembered: when as many are listed, more may be missing.
    pub room: usize,
}

/// A key with much traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeavyKey {
    /// The key.
    pub key: FlowBytes,
    /// What it says.
    pub name: FlowName,
    /// Its traffic: packets or bytes.
    pub estimate: Estimate,
    /// The estimate's value as a share of all traffic, 0 to 1 but for errors.
    pub share: f64,
}

/// Keys whose traffic has changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// The earlier period.
    pub before: Period,
    /// The later one.
    pub now: Period,
    /// Largest change first, whatever its sign.
    pub keys: Vec<ChangedKey>,
    /// Keys that each period remembers: when as many are listed, more may be missing.
    pub room: usize,
}

/// A period that is compared with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Its first moment.
    pub start: Timestamp,
    /// The first moment after it.
    pub end: Timestamp,
    /// All its traffic, exactly: packets or bytes.
    pub total: u64,
    /// Whether the first packet of all came in a later window of it, so that it is shorter than it should be.
    pub is_partial: bool,
}

/// A key whose traffic has changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangedKey {
    /// The key.
    pub key: FlowBytes,
    /// What it says.
    pub name: FlowName,
    /// How much more it is; below zero if it is less.
    pub change: Estimate,
    /// What it was before.
    pub from: Estimate,
    /// What it is now.
    pub to: Estimate,
}

/// Entropy of the distribution of packets over keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entropy {
    /// In bits: from zero, if all packets have one key, to log2 of the number of keys, if all have as many.
    pub bits: Estimate,
    /// As a share of the most that so many keys (their number is estimated too) can have, 0 to 1; `None` if there
    /// are fewer than two.
    pub normalised: Option<f64>,
}

/// Keys with many different peers.
#[derive(Clone, Debug, PartialEq)]
pub struct Spreaders {
    /// Most peers first.
    pub keys: Vec<SpreadKey>,
    /// Keys with estimates up to this may be missing ([`thalweg_sketch::Spread::missed_up_to`]).
    pub missed_up_to: u64,
}

/// A key with many different peers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpreadKey {
    /// The key.
    pub key: FlowBytes,
    /// What it says.
    pub name: FlowName,
    /// Number of different peers.
    pub peers: Estimate,
}

/// Norms of the keys' sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// The sum of all sizes, exactly: packets or bytes.
    pub l1: u64,
    /// The root of the sum of their squares.
    pub l2: Estimate,
}

/// Hierarchical heavy hitters.
#[derive(Clone, Debug, PartialEq)]
pub struct HeavyPrefixes {
    /// All traffic, exactly: packets or bytes.
    pub total: u64,
    /// Longest prefixes first, of one length largest first.
    pub prefixes: Vec<HeavyPrefix>,
    /// Prefixes that are remembered of each length: when as many of a length are listed, more may be missing.
    pub room: usize,
}

/// A prefix with much traffic beyond that of the longer ones listed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeavyPrefix {
    /// The key.
    pub key: FlowBytes,
    /// What it says: always a [`FlowName::Prefix`].
    pub name: FlowName,
    /// All its traffic: packets or bytes.
    pub estimate: Estimate,
    /// Its traffic without that of longer prefixes which are listed (the discounted or conditioned count).
    pub beyond: Estimate,
    /// The value of `beyond` as a share of all traffic.
    pub share: f64,
}
