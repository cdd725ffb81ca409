//! `hhh:1%`: hierarchical heavy hitters. A Count Sketch and its largest keys for each prefix length
//! ([`crate::tasks::hierarchy`]).

use thalweg_sketch::{Counter, Estimate};

use crate::tasks::fields::{Fields, ParseTaskError, SHARE, share};
use crate::tasks::flow_bytes::FlowBytes;
use crate::tasks::flow_name::FlowName;
use crate::tasks::hierarchy::{LEVELS, Levels};
use crate::tasks::key::KeyDefinition;
use crate::tasks::kind::{TaskKind, name, wrong_state};
use crate::tasks::prefix::Side;
use crate::tasks::size::TaskSize;
use crate::tasks::state::TaskState;
use crate::tasks::table::{
    Cell, Field, FieldKind, Headline, KeyLayout, Layout, Row, Table, Word, keys_in_words,
};
use crate::tasks::weight::{Share, Weight};

/// Finds hierarchical heavy hitters: prefixes with at least a given share of all traffic, not counting longer
/// prefixes which are hierarchical heavy hitters themselves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HierarchyTask {
    /// The share.
    pub share: Share,
    /// Source or destination addresses.
    pub side: Side,
    /// What is counted.
    pub weight: Weight,
}

/// Hierarchical heavy hitters.
#[derive(Clone, Debug, PartialEq)]
pub struct HeavyPrefixes {
    /// All traffic, exactly: packets or bytes.
    pub total: u64,
    /// Longest prefixes first, then largest first.
    pub prefixes: Vec<HeavyPrefix>,
    /// The maximum number of prefixes tracked per length: if as many of a length are listed, more may be missing.
    pub room: usize,
}

/// A prefix with much traffic beyond that of the longer ones listed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeavyPrefix {
    /// The key.
    pub key: FlowBytes,
    /// The readable form of the key: always a [`FlowName::Prefix`].
    pub name: FlowName,
    /// All its traffic: packets or bytes.
    pub estimate: Estimate,
    /// Its traffic without that of longer listed prefixes (the discounted or conditioned count).
    pub beyond: Estimate,
    /// The value of `beyond` as a share of all traffic.
    pub share: f64,
}

impl TaskKind for HierarchyTask {
    type Value = HeavyPrefixes;

    const LAYOUT: Layout = Layout {
        kind: "hhh",
        meaning: "Prefixes with at least a given share of all traffic, without that of longer listed prefixes.",
        facts: &[
            Field { name: "total", kind: FieldKind::Count, meaning: "All traffic, exactly." },
            Field {
                name: "capacity",
                kind: FieldKind::Count,
                meaning: "Maximum number of prefixes tracked per length.",
            },
        ],
        keys: Some(KeyLayout {
            type_name: "HeavyPrefix",
            meaning: "A prefix with much traffic.",
            order: "Longest prefixes first.",
            key_meaning: "The prefix, such as `192.0.2.0/24`.",
            may_be_flows: false,
            columns: &[
                Field {
                    name: "share",
                    kind: FieldKind::Share,
                    meaning: "`conditioned` as a share of all traffic.",
                },
                Field { name: "estimate", kind: FieldKind::Estimate, meaning: "Traffic of the prefix." },
                Field {
                    name: "conditioned",
                    kind: FieldKind::Estimate,
                    meaning: "Traffic of the prefix without that of longer listed prefixes.",
                },
            ],
            listed_for: 2,
            aside_name: "share",
            aside: &[0],
        }),
    };

    fn parse(fields: &mut Fields<'_>) -> Result<HierarchyTask, ParseTaskError> {
        let share = fields.first(SHARE, share)?;
        Ok(HierarchyTask { share, side: Side::Source, weight: Weight::default() })
    }

    fn parameters(&self) -> String {
        match self.side {
            Side::Source => format!(":{}", self.share),
            Side::Destination => format!(":{}:{}", self.share, self.side.name()),
        }
    }

    fn key(&self) -> KeyDefinition {
        KeyDefinition::Address(self.side)
    }

    fn key_is_parameter(&self) -> bool {
        true
    }

    fn weight(&self) -> Weight {
        self.weight
    }

    fn set_key(&mut self, key: KeyDefinition) -> Result<(), &'static str> {
        let KeyDefinition::Address(side) = key else { return Err("src or dst, packets or bytes") };
        self.side = side;
        Ok(())
    }

    fn set_weight(&mut self, weight: Weight) -> Result<(), &'static str> {
        self.weight = weight;
        Ok(())
    }

    /// One sketch per level.
    fn memory_weight(&self) -> u64 {
        8
    }

    fn size(&self, step: u32) -> Option<TaskSize> {
        TaskSize::levels(step, self.share)
    }

    fn value(&self, state: &TaskState, total: u64) -> Option<Self::Value> {
        Some(match state {
            TaskState::Levels32(levels) => self.above(levels, total),
            TaskState::Levels64(levels) => self.above(levels, total),
            _ => wrong_state(self),
        })
    }

    fn table(prefixes: &HeavyPrefixes, weight: Weight) -> Table {
        let mut words = keys_in_words(prefixes.prefixes.len(), None);
        words.extend([
            Word::Text(" of "),
            Word::Count(prefixes.total),
            Word::Text(" "),
            Word::Text(weight.name()),
        ]);
        let row = |prefix: &HeavyPrefix| Row {
            name: prefix.name,
            cells: vec![
                Cell::Share(Some(prefix.share)),
                Cell::Estimate(prefix.estimate),
                Cell::Estimate(prefix.beyond),
            ],
        };
        Table {
            layout: &HierarchyTask::LAYOUT,
            headline: Headline::Keys(words),
            unit: weight.name(),
            facts: vec![Cell::Count(prefixes.total), Cell::Count(prefixes.room as u64)],
            rows: prefixes.prefixes.iter().map(row).collect(),
            span: None,
        }
    }
}

impl HierarchyTask {
    fn above<C: Counter>(&self, levels: &Levels<C>, total: u64) -> HeavyPrefixes {
        let room = levels.levels()[0].top.k();
        if total == 0 {
            return HeavyPrefixes { total, prefixes: Vec::new(), room };
        }
        let above = levels.above(self.share.get() * total as f64).into_iter();
        let prefixes = above.map(|prefix| HeavyPrefix {
            key: prefix.key,
            name: name(KeyDefinition::Prefix(self.side, LEVELS[prefix.level]), &prefix.key),
            estimate: prefix.estimate,
            beyond: prefix.beyond,
            share: prefix.beyond.value / total as f64,
        });
        HeavyPrefixes { total, prefixes: prefixes.collect(), room }
    }
}
