//! What is to be measured, as it is written on the command line.
//!
//! | written | asks for |
//! |---|---|
//! | `heavy:0.1%` | keys with at least this share of all traffic |
//! | `change:30s`, `change:30s>5%` | keys whose traffic has changed since the 30 s before, by at least this share of both together (1 % unless told otherwise) |
//! | `distinct:src` | the number of different keys |
//! | `entropy:dst` | the entropy of the distribution of packets over keys |
//! | `spread:dst>1000`, `spread:src` | addresses with more than this many different peers (1,000 unless told otherwise) |
//! | `moments` | L1 and L2 of the keys' sizes |
//! | `hhh:1%`, `hhh:1%:dst` | hierarchical heavy hitters: prefixes with at least this share of all traffic beyond that of longer ones |
//!
//! Behind a colon each may have a key ([`KeyDefinition`]; `5tuple` unless told otherwise; `src` or `dst` for `hhh`)
//! and what is counted, `packets` (the default) or `bytes`: `heavy:0.1%:src/24:bytes`. Several are separated by
//! commas.

mod parse;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use thalweg_wire::Nanos;

use super::key::{KeyDefinition, Side};
pub use parse::ParseTaskError;

/// One measurement task.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum TaskSpec {
    /// Keys with at least a share of all traffic.
    Heavy {
        /// The share, called alpha in most papers.
        share: Share,
        /// What is a flow.
        key: KeyDefinition,
        /// What is counted.
        weight: Weight,
    },
    /// Keys whose traffic has changed from one period to the next.
    Change {
        /// Length of a period: a whole number of windows.
        period: Nanos,
        /// The least change, as a share of the traffic of both periods together: an upper bound of all change.
        share: Share,
        /// What is a flow.
        key: KeyDefinition,
        /// What is counted.
        weight: Weight,
    },
    /// The number of different keys.
    Distinct {
        /// What is a flow.
        key: KeyDefinition,
    },
    /// The entropy of the distribution of packets over keys.
    Entropy {
        /// What is a flow.
        key: KeyDefinition,
    },
    /// Keys that have been seen with many different peers: the addresses of the other side.
    Spread {
        /// An address or a prefix of one side.
        key: KeyDefinition,
        /// The side of `key`.
        side: Side,
        /// More peers than this are many.
        threshold: u64,
    },
    /// L1 and L2 norm of the keys' sizes.
    Moments {
        /// What is a flow.
        key: KeyDefinition,
        /// What is counted.
        weight: Weight,
    },
    /// Hierarchical heavy hitters: prefixes with at least a share of all traffic, that of longer prefixes which are
    /// hierarchical heavy hitters themselves left out.
    Hierarchy {
        /// The share.
        share: Share,
        /// Whose addresses.
        side: Side,
        /// What is counted.
        weight: Weight,
    },
}

/// What is counted of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Weight {
    /// That it came.
    #[default]
    Packets,
    /// Its bytes, of the IP layer.
    Bytes,
}

/// A part of a whole: more than nothing, and at most all of it.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share {
    percent: f64,
}

impl Share {
    /// `percent` hundredths; `None` unless above 0 and at most 100.
    pub fn from_percent(percent: f64) -> Option<Share> {
        (percent > 0.0 && percent <= 100.0).then_some(Share { percent })
    }

    /// As a number above 0 and at most 1.
    pub fn get(self) -> f64 {
        self.percent / 100.0
    }

    /// No more keys than this can have such a share.
    pub fn most_keys(self) -> usize {
        (100.0 / self.percent).ceil().min(f64::from(u32::MAX)) as usize
    }
}

/// `0.1%`.
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}%", self.percent))
    }
}

/// `packets` or `bytes`.
impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Weight::Packets => "packets",
            Weight::Bytes => "bytes",
        })
    }
}

impl TaskSpec {
    /// The least change that is told of unless a specification says otherwise: 1 %.
    pub const DEFAULT_CHANGE: Share = Share { percent: 1.0 };
    /// More peers than this are many unless a specification says otherwise.
    pub const DEFAULT_SPREAD: u64 = 1000;

    /// The task's name: `heavy`, `change`, `distinct`, `entropy`, `spread`, `moments` or `hhh`.
    pub const fn name(&self) -> &'static str {
        match self {
            TaskSpec::Heavy { .. } => "heavy",
            TaskSpec::Change { .. } => "change",
            TaskSpec::Distinct { .. } => "distinct",
            TaskSpec::Entropy { .. } => "entropy",
            TaskSpec::Spread { .. } => "spread",
            TaskSpec::Moments { .. } => "moments",
            TaskSpec::Hierarchy { .. } => "hhh",
        }
    }

    /// What is a flow; of hierarchical heavy hitters the address whose prefixes they are.
    pub const fn key(&self) -> KeyDefinition {
        match *self {
            TaskSpec::Heavy { key, .. }
            | TaskSpec::Change { key, .. }
            | TaskSpec::Distinct { key }
            | TaskSpec::Entropy { key }
            | TaskSpec::Spread { key, .. }
            | TaskSpec::Moments { key, .. } => key,
            TaskSpec::Hierarchy { side, .. } => KeyDefinition::Address(side),
        }
    }

    /// What is counted: packets, where there is no choice.
    pub const fn weight(&self) -> Weight {
        match *self {
            TaskSpec::Heavy { weight, .. }
            | TaskSpec::Change { weight, .. }
            | TaskSpec::Moments { weight, .. }
            | TaskSpec::Hierarchy { weight, .. } => weight,
            TaskSpec::Distinct { .. } | TaskSpec::Entropy { .. } | TaskSpec::Spread { .. } => Weight::Packets,
        }
    }
}

/// As it is read; what would be taken for granted is left out.
impl fmt::Display for TaskSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.name().to_owned();
        match *self {
            TaskSpec::Heavy { share, .. } => text += &format!(":{share}"),
            TaskSpec::Change { period, share, .. } => {
                text += &format!(":{}", parse::period_text(period));
                if share != TaskSpec::DEFAULT_CHANGE {
                    text += &format!(">{share}");
                }
            }
            TaskSpec::Spread { key, threshold, .. } => text += &format!(":{key}>{threshold}"),
            TaskSpec::Hierarchy { share, side, .. } => {
                text += &format!(":{share}");
                if side != Side::Source {
                    text += &format!(":{}", side.name());
                }
            }
            TaskSpec::Distinct { .. } | TaskSpec::Entropy { .. } | TaskSpec::Moments { .. } => {}
        }
        let names_key = !matches!(self, TaskSpec::Spread { .. } | TaskSpec::Hierarchy { .. });
        if names_key && self.key() != KeyDefinition::default() {
            text += &format!(":{}", self.key());
        }
        if self.weight() != Weight::default() {
            text += &format!(":{}", self.weight());
        }
        f.pad(&text)
    }
}

impl FromStr for TaskSpec {
    type Err = ParseTaskError;

    fn from_str(text: &str) -> Result<TaskSpec, ParseTaskError> {
        parse::task(text)
    }
}

/// Tasks, separated by commas.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskList(pub Vec<TaskSpec>);

/// As it is read.
impl fmt::Display for TaskList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let specs: Vec<String> = self.0.iter().map(TaskSpec::to_string).collect();
        f.pad(&specs.join(","))
    }
}

impl FromStr for TaskList {
    type Err = ParseTaskError;

    /// Nothing is the empty list.
    fn from_str(text: &str) -> Result<TaskList, ParseTaskError> {
        if text.trim().is_empty() {
            return Ok(TaskList::default());
        }
        text.split(',').map(|task| task.trim().parse()).collect::<Result<_, _>>().map(TaskList)
    }
}
