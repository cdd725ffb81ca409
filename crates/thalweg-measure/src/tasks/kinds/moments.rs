//! `moments`: L1 and L2 norm of the keys' sizes. A Count Sketch.

use thalweg_sketch::{Bound, Estimate};

use crate::tasks::fields::{Fields, ParseTaskError};
use crate::tasks::key::KeyDefinition;
use crate::tasks::kind::{TaskKind, wrong_state};
use crate::tasks::size::TaskSize;
use crate::tasks::state::TaskState;
use crate::tasks::table::{Cell, Field, FieldKind, Headline, Layout, Table, Word};
use crate::tasks::weight::Weight;

/// Measures L1 and L2 norm of the keys' sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MomentsTask {
    /// The flow key.
    pub key: KeyDefinition,
    /// What is counted.
    pub weight: Weight,
}

/// Norms of the keys' sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// The sum of all sizes, exactly: packets or bytes.
    pub l1: u64,
    /// The square root of the sum of their squares.
    pub l2: Estimate,
}

impl TaskKind for MomentsTask {
    type Value = Moments;

    const LAYOUT: Layout = Layout {
        kind: "moments",
        meaning: "Moments of the keys' sizes.",
        facts: &[
            Field { name: "l1", kind: FieldKind::Count, meaning: "The sum of all sizes, exactly." },
            Field {
                name: "l2",
                kind: FieldKind::Estimate,
                meaning: "The square root of the sum of their squares.",
            },
        ],
        keys: None,
    };

    fn parse(_fields: &mut Fields<'_>) -> Result<MomentsTask, ParseTaskError> {
        let (key, weight) = Default::default();
        Ok(MomentsTask { key, weight })
    }

    fn key(&self) -> KeyDefinition {
        self.key
    }

    fn weight(&self) -> Weight {
        self.weight
    }

    fn set_key(&mut self, key: KeyDefinition) -> Result<(), &'static str> {
        self.key = key;
        Ok(())
    }

    fn set_weight(&mut self, weight: Weight) -> Result<(), &'static str> {
        self.weight = weight;
        Ok(())
    }

    fn memory_weight(&self) -> u64 {
        1
    }

    fn size(&self, step: u32) -> Option<TaskSize> {
        TaskSize::counters(step)
    }

    fn value(&self, state: &TaskState, total: u64) -> Option<Self::Value> {
        let f2 = match state {
            TaskState::CountSketch32(sketch) => sketch.f2(),
            TaskState::CountSketch64(sketch) => sketch.f2(),
            _ => wrong_state(self),
        };
        Some(Moments { l1: total, l2: root(f2) })
    }

    fn table(moments: &Moments, weight: Weight) -> Table {
        let more = vec![Word::Text("L1 "), Word::Count(moments.l1), Word::Text(" exactly")];
        Table {
            layout: &MomentsTask::LAYOUT,
            headline: Headline::Estimate { estimate: moments.l2, unit: "L2", decimals: 0, more },
            unit: weight.name(),
            facts: vec![Cell::Count(moments.l1), Cell::Estimate(moments.l2)],
            rows: Vec::new(),
            span: None,
        }
    }
}

/// Returns the square root of a quantity that is not negative.
fn root(of: Estimate) -> Estimate {
    let bound = match of.bound {
        Bound::Interval { lower, upper, confidence } => {
            Bound::Interval { lower: lower.max(0.0).sqrt(), upper: upper.max(0.0).sqrt(), confidence }
        }
        other => other,
    };
    Estimate { value: of.value.max(0.0).sqrt(), bound }
}
