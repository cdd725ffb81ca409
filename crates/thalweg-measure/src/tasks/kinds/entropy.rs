//! `entropy:dst`: the entropy of the distribution of packets over keys. A UnivMon.

use thalweg_sketch::{Estimate, UnivMon};

use crate::tasks::fields::{Fields, ParseTaskError};
use crate::tasks::flow_bytes::FlowBytes;
use crate::tasks::key::KeyDefinition;
use crate::tasks::kind::{TaskKind, wrong_state};
use crate::tasks::size::TaskSize;
use crate::tasks::state::TaskState;
use crate::tasks::table::{Cell, Field, FieldKind, Headline, Layout, Table, Word};
use crate::tasks::weight::Weight;

/// Measures the entropy of the distribution of packets over keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EntropyTask {
    /// The flow key.
    pub key: KeyDefinition,
}

/// The entropy of the distribution of packets over keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entropy {
    /// In bits: from zero, if all packets have one key, to log2 of the number of keys, if all have equally many.
    pub bits: Estimate,
    /// As a share of the maximum for that number of keys (which is also estimated), 0 to 1; `None` for fewer than two
    /// keys.
    pub normalised: Option<f64>,
}

impl TaskKind for EntropyTask {
    type Value = Entropy;

    const LAYOUT: Layout = Layout {
        kind: "entropy",
        meaning: "How evenly packets are distributed over keys.",
        facts: &[
            Field {
                name: "entropy",
                kind: FieldKind::Estimate,
                meaning: "Entropy of the distribution of packets over keys, in bits.",
            },
            Field {
                name: "normalised",
                kind: FieldKind::OptionalShare,
                meaning: "Entropy as a share of the maximum for that number of keys; null for fewer than two keys.",
            },
        ],
        keys: None,
    };

    fn parse(_fields: &mut Fields<'_>) -> Result<EntropyTask, ParseTaskError> {
        Ok(EntropyTask { key: KeyDefinition::default() })
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

    /// One sketch per level.
    fn memory_weight(&self) -> u64 {
        8
    }

    fn size(&self, step: u32) -> Option<TaskSize> {
        TaskSize::univmon(step)
    }

    fn value(&self, state: &TaskState, _total: u64) -> Option<Self::Value> {
        let TaskState::UnivMon32(univmon) = state else { wrong_state(self) };
        Some(Entropy::of(univmon))
    }

    fn table(entropy: &Entropy, weight: Weight) -> Table {
        let of_most = [Word::Text(" of the maximum for that number of keys")];
        let more =
            entropy.normalised.map(|share| [Word::Percent(share)].into_iter().chain(of_most).collect());
        let more = more.unwrap_or_default();
        Table {
            layout: &EntropyTask::LAYOUT,
            headline: Headline::Estimate { estimate: entropy.bits, unit: "bits", decimals: 3, more },
            unit: weight.name(),
            facts: vec![Cell::Estimate(entropy.bits), Cell::Share(entropy.normalised)],
            rows: Vec::new(),
            span: None,
        }
    }
}

impl Entropy {
    fn of(univmon: &UnivMon<FlowBytes, i32>) -> Entropy {
        let bits = univmon.entropy();
        let max = univmon.distinct().value.log2();
        Entropy { bits, normalised: (max >= 1.0).then(|| (bits.value / max).clamp(0.0, 1.0)) }
    }
}
