//! The kinds of tasks, one module each. The list at the end of this file is the only place that names them all: to
//! add a kind, write its module and add a line there.

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

/// Parses the fields after the name of a task.
type Parse = fn(&mut Fields<'_>) -> Result<TaskSpec, ParseTaskError>;

/// Generates the enums over all kinds from the list.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($task:ty) => $value:ty;)*) => {
        /// One measurement task.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum TaskSpec {
            $($(#[$doc])* $kind($task),)*
        }

        /// The answer of a task; estimates have error bounds.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum TaskValue {
            $($(#[$doc])* $kind($value),)*
        }

        /// The layouts of the answers, in the order of the list of kinds.
        pub const LAYOUTS: &[&Layout] = &[$(&<$task as TaskKind>::LAYOUT),*];

        /// The parser of each kind, in the order of [`LAYOUTS`].
        pub(super) const PARSE: &[Parse] =
            &[$(|fields| <$task as TaskKind>::parse(fields).map(TaskSpec::$kind)),*];

        impl TaskSpec {
            /// Returns the layout of this task's answers.
            pub fn layout(&self) -> &'static Layout {
                match self {
                    $(TaskSpec::$kind(_) => &<$task as TaskKind>::LAYOUT,)*
                }
            }

            /// Returns the flow key; for hierarchical heavy hitters the address whose prefixes they are.
            pub fn key(&self) -> KeyDefinition {
                match self {
                    $(TaskSpec::$kind(task) => TaskKind::key(task),)*
                }
            }

            /// Returns what is counted; packets if the kind has no choice.
            pub fn weight(&self) -> Weight {
                match self {
                    $(TaskSpec::$kind(task) => TaskKind::weight(task),)*
                }
            }

            /// Returns the length of the periods that the task compares; `None` for tasks that answer at the end of
            /// each window.
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

            pub(super) fn memory_weight(&self) -> u64 {
                match self {
                    $(TaskSpec::$kind(task) => task.memory_weight(),)*
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
            /// Returns the answer in the common format; `weight` is what the task counts ([`TaskSpec::weight`]).
            pub fn table(&self, weight: Weight) -> Table {
                match self {
                    $(TaskValue::$kind(value) => <$task as TaskKind>::table(value, weight),)*
                }
            }
        }
    };
}

kinds! {
    /// Keys with at least a given share of all traffic.
    Heavy(HeavyTask) => HeavyHitters;
    /// Keys whose traffic changed between two periods.
    Change(ChangeTask) => Changes;
    /// The number of distinct keys.
    Distinct(DistinctTask) => Estimate;
    /// The entropy of the distribution of packets over keys.
    Entropy(EntropyTask) => Entropy;
    /// Keys with many distinct peers.
    Spread(SpreadTask) => Spreaders;
    /// L1 and L2 norm of the keys' sizes.
    Moments(MomentsTask) => Moments;
    /// Hierarchical heavy hitters.
    Hierarchy(HierarchyTask) => HeavyPrefixes;
}

impl TaskSpec {
    /// Returns the task's name: `heavy`, `change`, `distinct`, `entropy`, `spread`, `moments` or `hhh`.
    pub fn name(&self) -> &'static str {
        self.layout().kind
    }
}
