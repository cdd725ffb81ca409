//! The interface of a kind of task: everything that differs between kinds.
//!
//! Each kind has a module in [`super::kinds`]. Kinds share the sketches, and how these are updated, merged and saved
//! ([`super::state`], [`super::size`], [`super::counting`]).

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
    /// The type of its answer.
    type Value;

    /// The name, and the layout of its answers.
    const LAYOUT: Layout;

    /// Parses the required parameters after the name; a key and a weight may follow.
    ///
    /// # Errors
    /// If a parameter is missing or invalid.
    fn parse(fields: &mut Fields<'_>) -> Result<Self, ParseTaskError>;

    /// Formats the parameters after the name: `:0.1%`. Key and weight follow unless they are the defaults.
    fn parameters(&self) -> String {
        String::new()
    }

    /// Returns the definition of a flow key.
    fn key(&self) -> KeyDefinition;

    /// Whether the key is one of the parameters, and is not repeated.
    fn key_is_parameter(&self) -> bool {
        false
    }

    /// Returns what is counted; packets if the kind has no choice.
    fn weight(&self) -> Weight {
        Weight::Packets
    }

    /// Sets the key.
    ///
    /// # Errors
    /// The accepted values, if the task does not accept this key.
    fn set_key(&mut self, key: KeyDefinition) -> Result<(), &'static str>;

    /// Sets the weight.
    ///
    /// # Errors
    /// The accepted values, if the task does not accept a weight.
    fn set_weight(&mut self, weight: Weight) -> Result<(), &'static str>;

    /// Returns the length of the periods that it compares, if it compares periods.
    fn period(&self) -> Option<Nanos> {
        None
    }

    /// Returns the relative weight of its memory, compared with other tasks.
    fn memory_weight(&self) -> u64;

    /// Returns the size of its sketches at a step, from zero; `None` beyond the last.
    fn size(&self, step: u32) -> Option<TaskSize>;

    /// Returns an empty state.
    fn empty(&self, size: TaskSize, hasher: Hasher) -> TaskState {
        size.empty(self.weight(), hasher)
    }

    /// Returns the answer for a window with `total` traffic; `None` if it answers at the end of a period.
    fn value(&self, state: &TaskState, total: u64) -> Option<Self::Value>;

    /// Returns the answer for two periods; `None` if it does not compare periods.
    fn compare(&self, _now: (&TaskState, Period), _before: (&TaskState, Period)) -> Option<Self::Value> {
        None
    }

    /// Returns the answer in the common format; `weight` is what was counted.
    fn table(value: &Self::Value, weight: Weight) -> Table;
}

/// Returns the readable form of a key.
pub(super) fn name(definition: KeyDefinition, key: &FlowBytes) -> FlowName {
    definition.name(key).expect("keys are of the task's definition")
}

/// Panics about a state that does not belong to the task.
pub(super) fn wrong_state(task: &impl Debug) -> ! {
    panic!("the state belongs to another task than {task:?}")
}
