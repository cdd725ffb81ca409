//! `spread:dst>1000`: addresses with many distinct peers. HyperLogLogs in the cells of a Count-Min.

use thalweg_sketch::Estimate;

use crate::tasks::fields::{Fields, ParseTaskError};
use crate::tasks::flow_bytes::FlowBytes;
use crate::tasks::flow_name::FlowName;
use crate::tasks::key::KeyDefinition;
use crate::tasks::kind::{TaskKind, name, wrong_state};
use crate::tasks::prefix::Side;
use crate::tasks::size::TaskSize;
use crate::tasks::state::TaskState;
use crate::tasks::table::{
    Cell, Field, FieldKind, Headline, KeyLayout, Layout, Row, Table, Word, keys_in_words,
};
use crate::tasks::weight::Weight;

/// Finds keys with many distinct peers: the addresses of the other side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpreadTask {
    /// An address or a prefix of one side.
    pub key: KeyDefinition,
    /// The side of `key`.
    pub side: Side,
    /// Keys with more peers than this are listed.
    pub threshold: u64,
}

/// Keys with many distinct peers.
#[derive(Clone, Debug, PartialEq)]
pub struct Spreaders {
    /// Most peers first.
    pub keys: Vec<SpreadKey>,
    /// Keys with estimates up to this may be missing ([`thalweg_sketch::Spread::missed_up_to`]).
    pub missed_up_to: u64,
}

/// A key with many distinct peers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpreadKey {
    /// The key.
    pub key: FlowBytes,
    /// The readable form of the key.
    pub name: FlowName,
    /// The number of distinct peers.
    pub peers: Estimate,
}

const EXPECTED: &str =
    "src or dst or a prefix of them, optionally followed by > and a number of peers, as in spread:dst>1000";

impl SpreadTask {
    /// The default threshold.
    pub const DEFAULT_THRESHOLD: u64 = 1000;

    /// Parses `dst` or `src/24>1000`.
    fn read(text: &str) -> Option<SpreadTask> {
        let (key, threshold) = match text.split_once('>') {
            Some((key, threshold)) => (key, threshold.trim().parse().ok()?),
            None => (text, SpreadTask::DEFAULT_THRESHOLD),
        };
        let key: KeyDefinition = key.trim().parse().ok()?;
        Some(SpreadTask { key, side: key.side()?, threshold })
    }
}

impl TaskKind for SpreadTask {
    type Value = Spreaders;

    const LAYOUT: Layout = Layout {
        kind: "spread",
        meaning: "Keys with many distinct peers.",
        facts: &[Field {
            name: "missed_up_to",
            kind: FieldKind::Count,
            meaning: "Keys with estimates up to this may be missing.",
        }],
        keys: Some(KeyLayout {
            type_name: "SpreadKey",
            meaning: "A key with many distinct peers.",
            order: "Most peers first.",
            key_meaning: "The key in readable form.",
            may_be_flows: false,
            columns: &[Field {
                name: "peers",
                kind: FieldKind::Estimate,
                meaning: "Number of distinct peers.",
            }],
            listed_for: 0,
            aside_name: "",
            aside: &[],
        }),
    };

    fn parse(fields: &mut Fields<'_>) -> Result<SpreadTask, ParseTaskError> {
        fields.first(EXPECTED, SpreadTask::read)
    }

    fn parameters(&self) -> String {
        format!(":{}>{}", self.key, self.threshold)
    }

    fn key(&self) -> KeyDefinition {
        self.key
    }

    fn key_is_parameter(&self) -> bool {
        true
    }

    fn set_key(&mut self, _key: KeyDefinition) -> Result<(), &'static str> {
        Err("nothing more")
    }

    fn set_weight(&mut self, _weight: Weight) -> Result<(), &'static str> {
        Err("nothing more")
    }

    fn memory_weight(&self) -> u64 {
        4
    }

    fn size(&self, step: u32) -> Option<TaskSize> {
        TaskSize::cells(step)
    }

    fn value(&self, state: &TaskState, _total: u64) -> Option<Self::Value> {
        let TaskState::Spread(spread) = state else { wrong_state(self) };
        let spread_key = |(bytes, peers)| SpreadKey { key: bytes, name: name(self.key, &bytes), peers };
        let keys = spread.above(self.threshold).into_iter().map(spread_key).collect();
        Some(Spreaders { keys, missed_up_to: spread.missed_up_to() })
    }

    fn table(spreaders: &Spreaders, _weight: Weight) -> Table {
        let mut words = keys_in_words(spreaders.keys.len(), None);
        if spreaders.missed_up_to > 0 {
            words.extend([
                Word::Text(", incomplete below "),
                Word::Count(spreaders.missed_up_to),
                Word::Text(" peers"),
            ]);
        }
        let row = |key: &SpreadKey| Row { name: key.name, cells: vec![Cell::Estimate(key.peers)] };
        Table {
            layout: &SpreadTask::LAYOUT,
            headline: Headline::Keys(words),
            unit: "peers",
            facts: vec![Cell::Count(spreaders.missed_up_to)],
            rows: spreaders.keys.iter().map(row).collect(),
            span: None,
        }
    }
}
