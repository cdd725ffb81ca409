//! `heavy:0.1%`: keys with at least a given share of all traffic. A Count Sketch and its largest keys.

use thalweg_sketch::{CountSketch, Counter, Estimate};

use crate::tasks::fields::{Fields, ParseTaskError, SHARE, share};
use crate::tasks::flow_bytes::{FlowBytes, Ranked};
use crate::tasks::flow_name::FlowName;
use crate::tasks::key::KeyDefinition;
use crate::tasks::kind::{TaskKind, name, wrong_state};
use crate::tasks::size::TaskSize;
use crate::tasks::state::TaskState;
use crate::tasks::table::{
    Cell, Field, FieldKind, Headline, KeyLayout, Layout, Row, Table, Word, keys_in_words,
};
use crate::tasks::weight::{Share, Weight};

/// Finds keys with at least a given share of all traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeavyTask {
    /// The share, called alpha in most papers.
    pub share: Share,
    /// The flow key.
    pub key: KeyDefinition,
    /// What is counted.
    pub weight: Weight,
}

/// Keys with at least a given share of all traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct HeavyHitters {
    /// All traffic, exactly: packets or bytes.
    pub total: u64,
    /// Largest first.
    pub keys: Vec<HeavyKey>,
    /// The maximum number of keys tracked: if as many are listed, more may be missing.
    pub room: usize,
}

/// A key with much traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeavyKey {
    /// The key.
    pub key: FlowBytes,
    /// The readable form of the key.
    pub name: FlowName,
    /// Its traffic: packets or bytes.
    pub estimate: Estimate,
    /// The estimate's value as a share of all traffic, 0 to 1 except for errors.
    pub share: f64,
}

impl TaskKind for HeavyTask {
    type Value = HeavyHitters;

    const LAYOUT: Layout = Layout {
        kind: "heavy",
        meaning: "Keys with at least a given share of all traffic.",
        facts: &[
            Field { name: "total", kind: FieldKind::Count, meaning: "All traffic, exactly." },
            Field {
                name: "capacity",
                kind: FieldKind::Count,
                meaning: "Maximum number of keys tracked. If as many are listed, more may be missing.",
            },
        ],
        keys: Some(KeyLayout {
            type_name: "HeavyKey",
            meaning: "A key with much traffic.",
            order: "Largest first.",
            key_meaning: "The key in readable form.",
            may_be_flows: true,
            columns: &[
                Field { name: "share", kind: FieldKind::Share, meaning: "Share of all traffic." },
                Field { name: "estimate", kind: FieldKind::Estimate, meaning: "Traffic of the key." },
            ],
            listed_for: 1,
            aside_name: "share",
            aside: &[0],
        }),
    };

    fn parse(fields: &mut Fields<'_>) -> Result<HeavyTask, ParseTaskError> {
        let (key, weight) = Default::default();
        Ok(HeavyTask { share: fields.first(SHARE, share)?, key, weight })
    }

    fn parameters(&self) -> String {
        format!(":{}", self.share)
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
        4
    }

    fn size(&self, step: u32) -> Option<TaskSize> {
        TaskSize::ranked(step, self.share)
    }

    fn value(&self, state: &TaskState, total: u64) -> Option<Self::Value> {
        Some(match state {
            TaskState::RankedCountSketch32(ranked) => self.above(ranked, total),
            TaskState::RankedCountSketch64(ranked) => self.above(ranked, total),
            _ => wrong_state(self),
        })
    }

    fn table(heavy: &HeavyHitters, weight: Weight) -> Table {
        let mut words = keys_in_words(heavy.keys.len(), Some(heavy.room));
        words.extend([
            Word::Text(" of "),
            Word::Count(heavy.total),
            Word::Text(" "),
            Word::Text(weight.name()),
        ]);
        let row = |key: &HeavyKey| Row {
            name: key.name,
            cells: vec![Cell::Share(Some(key.share)), Cell::Estimate(key.estimate)],
        };
        Table {
            layout: &HeavyTask::LAYOUT,
            headline: Headline::Keys(words),
            unit: weight.name(),
            facts: vec![Cell::Count(heavy.total), Cell::Count(heavy.room as u64)],
            rows: heavy.keys.iter().map(row).collect(),
            span: None,
        }
    }
}

impl HeavyTask {
    fn above<C: Counter>(&self, ranked: &Ranked<CountSketch<C>>, total: u64) -> HeavyHitters {
        let threshold = self.share.get() * total as f64;
        let largest = ranked.largest().into_iter();
        let above = largest.take_while(|(_, estimate)| estimate.value > 0.0 && estimate.value >= threshold);
        let keys = above.map(|(key, estimate)| {
            let share = estimate.value / total as f64;
            HeavyKey { key, name: name(self.key, &key), estimate, share }
        });
        HeavyHitters { total, keys: keys.collect(), room: ranked.top.k() }
    }
}
