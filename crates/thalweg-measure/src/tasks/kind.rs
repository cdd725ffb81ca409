//! What a kind of task is: all that differs between one and another.
//!
//! A kind has a module of its own in [`super::kinds`]. What sketches it counts with, how they are fed, put together and
//! saved is a matter of the sketches ([`super::state`], [`super::size`], [`super::counting`]), which kinds share.

use std::fmt::Debug;

use thalweg_sketch::Hasher;
use thalweg_wire::Nanos;

use super::fields::{Fields, ParseTaskError};
use super::flow_bytes::FlowBytes;
use super::flow_name::FlowName;
use super::key::KeyDefinition;
use super::size::TaskSize;
use super::state::TaskState;
use super::table::{Layout, Period, Table};
use super::weight::Weight;

/// A kind of task; a value is one task of it.
pub(super) trait TaskKind: Debug + Sized {
    /// What it says.
    type Value;

    /// Its name, and what its answers consist of.
    const LAYOUT: Layout;

    /// Reads what stands behind the name and must be there; a key and a weight may follow.
    ///
    /// # Errors
    /// If something is missing, or is not as it should be.
    fn parse(fields: &mut Fields<'_>) -> Result<Self, ParseTaskError>;

    /// What is behind the name when the task is shown: `:0.1%`. Key and weight follow, where they are not the usual ones.
    fn parameters(&self) -> String {
        String::new()
    }

    /// What is a flow.
    fn key(&self) -> KeyDefinition;

    /// Whether the key is one of the parameters, and is not shown again.
    fn key_is_parameter(&self) -> bool {
        false
    }

    /// What is counted: packets, where there is no choice.
    fn weight(&self) -> Weight {
        Weight::Packets
    }

    /// Takes a key that was given.
    ///
    /// # Errors
    /// What is expected, if the task has no use for this one.
    fn set_key(&mut self, key: KeyDefinition) -> Result<(), &'static str>;

    /// Takes a weight that was given.
    ///
    /// # Errors
    /// What is expected, if the task has no use for one.
    fn set_weight(&mut self, weight: Weight) -> Result<(), &'static str>;

    /// Length of the periods that it compares, if that is what it does.
    fn period(&self) -> Option<Nanos> {
        None
    }

    /// What its memory is worth, compared with that of other tasks.
    fn worth(&self) -> u64;

    /// The size of its sketches on a step, from zero; `None` beyond the last.
    fn size(&self, step: u32) -> Option<TaskSize>;

    /// The state that has seen nothing.
    fn empty(&self, size: TaskSize, hasher: Hasher) -> TaskState {
        size.empty(self.weight(), hasher)
    }

    /// What it says of a window in which `total` came; `None` if it speaks at the end of a period.
    fn value(&self, state: &TaskState, total: u64) -> Option<Self::Value>;

    /// What it says of two periods; `None` if it does not compare any.
    fn compare(&self, _now: (&TaskState, Period), _before: (&TaskState, Period)) -> Option<Self::Value> {
        None
    }

    /// What it says, in the shape that all kinds share; `weight` is what was counted.
    fn table(value: &Self::Value, weight: Weight) -> Table;
}

/// What a key is called.
pub(super) fn name(definition: KeyDefinition, key: &FlowBytes) -> FlowName {
    definition.name(key).expect("keys are of the task's definition")
}

/// A state of sketches that the task does not count with.
pub(super) fn wrong_state(task: &impl Debug) -> ! {
    panic!("a state of another task than {task:?}")
}
