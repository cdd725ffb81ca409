//! The kinds of tasks, a module each. Their list at the end of this file is the only place that names them all: a kind
//! is added by writing its module and adding a line there.

mod change;
mod distinct;
mod entropy;
mod heavy;
mod hierarchy;
mod moments;
mod spread;

use thalweg_sketch::{Estimate, Hasher};
use thalweg_wire::Nanos;

use super::fields::{Fields, ParseTaskError};
use super::key::KeyDefinition;
use super::kind::TaskKind;
use super::size::TaskSize;
use super::state::TaskState;
use super::table::{Layout, Period, Table};
use super::weight::Weight;
pub use change::{ChangeTask, ChangedKey, Changes};
pub use distinct::DistinctTask;
pub use entropy::{Entropy, EntropyTask};
pub use heavy::{HeavyHitters, HeavyKey, HeavyTask};
pub use hierarchy::{HeavyPrefix, HeavyPrefixes, HierarchyTask};
pub use moments::{Moments, MomentsTask};
pub use spread::{SpreadKey, SpreadTask, Spreaders};

/// Reads what stands behind the name of a task.
type Parse = fn(&mut Fields<'_>) -> Result<TaskSpec, ParseTaskError>;

/// Makes of the list of kinds what is known of all of them.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($task:ty) => $value:ty;)*) => {
        /// One measurement task.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum TaskSpec {
            $($(#[$doc])* $kind($task),)*
        }

        /// What a task says; estimates carry their bounds.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum TaskValue {
            $($(#[$doc])* $kind($value),)*
        }

        /// What the answers of each kind consist of, in the order in which kinds are listed.
        pub const LAYOUTS: &[&Layout] = &[$(&<$task as TaskKind>::LAYOUT),*];

        /// Each kind's reader, in the order of [`LAYOUTS`].
        pub(super) const PARSE: &[Parse] =
            &[$(|fields| <$task as TaskKind>::parse(fields).map(TaskSpec::$kind)),*];

        impl TaskSpec {
            /// What the answers of this task consist of.
            pub fn layout(&self) -> &'static Layout {
                match self {
                    $(TaskSpec::$kind(_) => &<$task as TaskKind>::LAYOUT,)*
                }
            }

            /// What is a flow; of hierarchical heavy hitters the address whose prefixes they are.
            pub fn key(&self) -> KeyDefinition {
                match self {
                    $(TaskSpec::$kind(task) => TaskKind::key(task),)*
                }
            }

            /// What is counted: packets, where there is no choice.
            pub fn weight(&self) -> Weight {
                match self {
                    $(TaskSpec::$kind(task) => TaskKind::weight(task),)*
                }
            }

            /// Length of the periods that the task compares; `None` of one that speaks at the end of each window.
            pub fn period(&self) -> Option<Nanos> {
                match self {
                    $(TaskSpec::$kind(task) => TaskKind::period(task),)*
                }
            }

            pub(super) fn parameters(&self) -> String {
                match self {
                    $(TaskSpec::$kind(task) => task.parameters(),)*
                }
            }

            pub(super) fn key_is_parameter(&self) -> bool {
                match self {
                    $(TaskSpec::$kind(task) => task.key_is_parameter(),)*
                }
            }

            pub(super) fn set_key(&mut self, key: KeyDefinition) -> Result<(), &'static str> {
                match self {
                    $(TaskSpec::$kind(task) => task.set_key(key),)*
                }
            }

            pub(super) fn set_weight(&mut self, weight: Weight) -> Result<(), &'static str> {
                match self {
                    $(TaskSpec::$kind(task) => task.set_weight(weight),)*
                }
            }

            pub(super) fn worth(&self) -> u64 {
                match self {
                    $(TaskSpec::$kind(task) => task.worth(),)*
                }
            }

            pub(super) fn size(&self, step: u32) -> Option<TaskSize> {
                match self {
                    $(TaskSpec::$kind(task) => task.size(step),)*
                }
            }

            pub(super) fn empty(&self, size: TaskSize, hasher: Hasher) -> TaskState {
                match self {
                    $(TaskSpec::$kind(task) => task.empty(size, hasher),)*
                }
            }

            pub(super) fn value(&self, state: &TaskState, total: u64) -> Option<TaskValue> {
                match self {
                    $(TaskSpec::$kind(task) => task.value(state, total).map(TaskValue::$kind),)*
                }
            }

            pub(super) fn compare(
                &self,
                now: (&TaskState, Period),
                before: (&TaskState, Period),
            ) -> Option<TaskValue> {
                match self {
                    $(TaskSpec::$kind(task) => task.compare(now, before).map(TaskValue::$kind),)*
                }
            }
        }

        impl TaskValue {
            /// In the shape that all kinds share; `weight` is what the task counts ([`TaskSpec::weight`]).
            pub fn table(&self, weight: Weight) -> Table {
                match self {
                    $(TaskValue::$kind(value) => <$task as TaskKind>::table(value, weight),)*
                }
            }
        }
    };
}

kinds! {
    /// Keys with at least a share of all traffic.
    Heavy(HeavyTask) => HeavyHitters;
    /// Keys whose traffic has changed from one period to the next.
    Change(ChangeTask) => Changes;
    /// The number of different keys.
    Distinct(DistinctTask) => Estimate;
    /// The entropy of the distribution of packets over keys.
    Entropy(EntropyTask) => Entropy;
    /// Keys that have been seen with many different peers.
    Spread(SpreadTask) => Spreaders;
    /// L1 and L2 norm of the keys' sizes.
    Moments(MomentsTask) => Moments;
    /// Hierarchical heavy hitters.
    Hierarchy(HierarchyTask) => HeavyPrefixes;
}

impl TaskSpec {
    /// The task's name: `heavy`, `change`, `distinct`, `entropy`, `spread`, `moments` or `hhh`.
    pub fn name(&self) -> &'static str {
        self.layout().kind
    }
}
