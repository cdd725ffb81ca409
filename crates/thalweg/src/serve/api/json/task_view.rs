//! What a measurement task says, under the name of its kind.

use schemars::JsonSchema;
use serde::Serialize;
use thalweg_measure::tasks::{self, FlowName as Key, TaskValue};

use super::{FlowName, Moment, Rate};
use crate::serve::api::convert::rate;

/// What a task says. Traffic is in packets or bytes, as the task asks.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TaskView {
    /// Keys with at least a share of all traffic.
    Heavy {
        /// All traffic, exactly.
        total: u64,
        /// Keys that are remembered: when as many are listed, more may be missing.
        room: usize,
        /// Largest first.
        keys: Vec<HeavyKey>,
    },
    /// Keys whose traffic has changed between two periods.
    Change {
        /// The earlier period.
        before: Period,
        /// The later one.
        now: Period,
        /// Keys that each period remembers: when as many are listed, more may be missing.
        room: usize,
        /// Largest change first, whatever its sign.
        keys: Vec<ChangedKey>,
    },
    /// The number of different keys.
    Distinct {
        /// How many.
        distinct: Rate,
    },
    /// How evenly packets are spread over keys.
    Entropy {
        /// Of the distribution of packets over keys, in bits.
        bits: Rate,
        /// As a share of the most that so many keys can have; null if there are fewer than two.
        normalised: Option<f64>,
    },
    /// Keys with many different peers.
    Spread {
        /// Keys with estimates up to this may be missing.
        missed_up_to: u64,
        /// Most peers first.
        keys: Vec<SpreadKey>,
    },
    /// Moments of the keys' sizes.
    Moments {
        /// The sum of all sizes, exactly.
        l1: u64,
        /// The root of the sum of their squares.
        l2: Rate,
    },
    /// Prefixes with at least a share of all traffic, that of longer prefixes in the list left out.
    Hhh {
        /// All traffic, exactly.
        total: u64,
        /// Prefixes of each length that are remembered.
        room: usize,
        /// Longest prefixes first.
        keys: Vec<HeavyPrefix>,
    },
    /// Something that this version of the API has no words for.
    Unknown,
}

/// A key with much traffic.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HeavyKey {
    /// The key, as people write it.
    pub key: String,
    /// The direction of a flow, if that is what the key is.
    pub flow: Option<FlowName>,
    /// Share of all traffic.
    pub share: f64,
    /// Its traffic.
    pub estimate: Rate,
}

/// A key whose traffic has changed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChangedKey {
    /// The key, as people write it.
    pub key: String,
    /// The direction of a flow, if that is what the key is.
    pub flow: Option<FlowName>,
    /// How much more it is; below zero if less.
    pub change: Rate,
    /// What it was before.
    pub from: Rate,
    /// What it is now.
    pub to: Rate,
}

/// A key with many different peers.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SpreadKey {
    /// The key, as people write it.
    pub key: String,
    /// How many peers.
    pub peers: Rate,
}

/// A prefix with much traffic.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HeavyPrefix {
    /// The prefix, such as `192.0.2.0/24`.
    pub key: String,
    /// `beyond` as a share of all traffic.
    pub share: f64,
    /// Its traffic.
    pub estimate: Rate,
    /// Its traffic without that of longer prefixes in the list.
    pub beyond: Rate,
}

/// A period that is compared with another.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Period {
    /// Its first moment.
    pub start: Moment,
    /// The first moment after it.
    pub end: Moment,
    /// All its traffic, exactly.
    pub total: u64,
    /// Whether packets came in a part of it only.
    pub partial: bool,
}

impl From<&TaskValue> for TaskView {
    fn from(value: &TaskValue) -> TaskView {
        match value {
            TaskValue::Heavy(heavy) => TaskView::Heavy {
                total: heavy.total,
                room: heavy.room,
                keys: heavy.keys.iter().map(HeavyKey::from).collect(),
            },
            TaskValue::Change(changes) => TaskView::Change {
                before: Period::from(&changes.before),
                now: Period::from(&changes.now),
                room: changes.room,
                keys: changes.keys.iter().map(ChangedKey::from).collect(),
            },
            TaskValue::Distinct(distinct) => TaskView::Distinct { distinct: rate(*distinct) },
            TaskValue::Entropy(entropy) => {
                TaskView::Entropy { bits: rate(entropy.bits), normalised: entropy.normalised }
            }
            TaskValue::Spread(spreaders) => TaskView::Spread {
                missed_up_to: spreaders.missed_up_to,
                keys: spreaders.keys.iter().map(SpreadKey::from).collect(),
            },
            TaskValue::Moments(moments) => TaskView::Moments { l1: moments.l1, l2: rate(moments.l2) },
            TaskValue::Hierarchy(prefixes) => TaskView::Hhh {
                total: prefixes.total,
                room: prefixes.room,
                keys: prefixes.prefixes.iter().map(HeavyPrefix::from).collect(),
            },
            _ => TaskView::Unknown,
        }
    }
}

fn flow(key: &Key) -> Option<FlowName> {
    match key {
        Key::Flow(key) => Some(FlowName::from(key)),
        _ => None,
    }
}

impl From<&tasks::HeavyKey> for HeavyKey {
    fn from(heavy: &tasks::HeavyKey) -> HeavyKey {
        let (key, flow) = (heavy.name.to_string(), flow(&heavy.name));
        HeavyKey { key, flow, share: heavy.share, estimate: rate(heavy.estimate) }
    }
}

impl From<&tasks::ChangedKey> for ChangedKey {
    fn from(changed: &tasks::ChangedKey) -> ChangedKey {
        ChangedKey {
            key: changed.name.to_string(),
            flow: flow(&changed.name),
            change: rate(changed.change),
            from: rate(changed.from),
            to: rate(changed.to),
        }
    }
}

impl From<&tasks::SpreadKey> for SpreadKey {
    fn from(spread: &tasks::SpreadKey) -> SpreadKey {
        SpreadKey { key: spread.name.to_string(), peers: rate(spread.peers) }
    }
}

impl From<&tasks::HeavyPrefix> for HeavyPrefix {
    fn from(prefix: &tasks::HeavyPrefix) -> HeavyPrefix {
        HeavyPrefix {
            key: prefix.name.to_string(),
            share: prefix.share,
            estimate: rate(prefix.estimate),
            beyond: rate(prefix.beyond),
        }
    }
}

impl From<&tasks::Period> for Period {
    fn from(period: &tasks::Period) -> Period {
        let tasks::Period { start, end, total, is_partial } = *period;
        Period { start: start.into(), end: end.into(), total, partial: is_partial }
    }
}
