//! `distinct:src`: the number of distinct keys. A HyperLogLog.

use thalweg_sketch::Estimate;

use crate::tasks::fields::{Fields, ParseTaskError};
use crate::tasks::key::KeyDefinition;
use crate::tasks::kind::{TaskKind, wrong_state};
use crate::tasks::size::TaskSize;
use crate::tasks::state::TaskState;
use crate::tasks::table::{Cell, Field, FieldKind, Headline, Layout, Table};
use crate::tasks::weight::Weight;

/// Counts distinct keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DistinctTask {
    /// The flow key.
    pub key: KeyDefinition,
}

impl TaskKind for DistinctTask {
    type Value = Estimate;

    const LAYOUT: Layout = Layout {
        kind: "distinct",
        meaning: "The number of distinct keys.",
        facts: &[Field { name: "distinct", kind: FieldKind::Estimate, meaning: "Number of distinct keys." }],
        keys: None,
    };

    fn parse(_fields: &mut Fields<'_>) -> Result<DistinctTask, ParseTaskError> {
        Ok(DistinctTask { key: KeyDefinition::default() })
    }

    fn key(&self) -> KeyDefinition {
        self.key
    }

    fn set_key(&mut self, key: KeyDefinition) -> Result<(), &'static str> {
        self.key = key;
        Ok(())
    }

    fn set_weight(&mut self, _weight: Weight) -> Result<(), &'static str> {
        Err("a flow key")
    }

    fn memory_weight(&self) -> u64 {
        1
    }

    fn size(&self, step: u32) -> Option<TaskSize> {
        TaskSize::registers(step)
    }

    fn value(&self, state: &TaskState, _total: u64) -> Option<Self::Value> {
        let TaskState::HyperLogLog(counter) = state else { wrong_state(self) };
        Some(counter.estimate())
    }

    fn table(distinct: &Estimate, weight: Weight) -> Table {
        let headline =
            Headline::Estimate { estimate: *distinct, unit: "keys", decimals: 0, more: Vec::new() };
        Table {
            layout: &DistinctTask::LAYOUT,
            headline,
            unit: weight.name(),
            facts: vec![Cell::Estimate(*distinct)],
            rows: Vec::new(),
            span: None,
        }
    }
}
