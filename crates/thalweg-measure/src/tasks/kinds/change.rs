//! `change:30s`: keys whose traffic changed between two periods. A K-ary sketch and its largest keys; the sketches of
//! two periods are subtracted.

use thalweg_sketch::{Change, Digest, Estimate, Hasher, RowSketch, TopK};
use thalweg_wire::Nanos;

use crate::tasks::fields::{Fields, ParseTaskError, period_text, share};
use crate::tasks::flow_bytes::{FlowBytes, Ranked};
use crate::tasks::flow_name::FlowName;
use crate::tasks::key::KeyDefinition;
use crate::tasks::kind::{TaskKind, name, wrong_state};
use crate::tasks::size::TaskSize;
use crate::tasks::state::TaskState;
use crate::tasks::table::{
    Cell, Field, FieldKind, Headline, KeyLayout, Layout, Period, Row, Table, Word, keys_in_words,
};
use crate::tasks::weight::{Share, Weight};

/// Finds keys whose traffic changed between two periods.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeTask {
    /// The length of a period: a whole number of windows.
    pub period: Nanos,
    /// The minimum change, as a share of the traffic of both periods together, which is an upper bound of all change.
    pub share: Share,
    /// The flow key.
    pub key: KeyDefinition,
    /// What is counted.
    pub weight: Weight,
}

/// Keys whose traffic changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// The earlier period.
    pub before: Period,
    /// The later one.
    pub now: Period,
    /// Largest magnitude of change first.
    pub keys: Vec<ChangedKey>,
    /// The maximum number of keys tracked per period: if as many are listed, more may be missing.
    pub room: usize,
}

/// A key whose traffic changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangedKey {
    /// The key.
    pub key: FlowBytes,
    /// The readable form of the key.
    pub name: FlowName,
    /// The increase; negative for a decrease.
    pub change: Estimate,
    /// The traffic in the earlier period.
    pub from: Estimate,
    /// The traffic in the later period.
    pub to: Estimate,
}

const EXPECTED: &str =
    "a duration, optionally followed by > and a minimum share, as in change:30s or change:30s>5%";

impl ChangeTask {
    /// The default minimum change: 1 %.
    pub const DEFAULT_SHARE: Share = Share::ONE_PERCENT;

    /// Parses `30s` or `30s>5%`.
    fn read(text: &str) -> Option<ChangeTask> {
        let (period, share) = match text.split_once('>') {
            Some((period, min)) => (period, share(min.trim())?),
            None => (text, ChangeTask::DEFAULT_SHARE),
        };
        let period: Nanos = period.parse().ok().filter(|&period| period > Nanos::ZERO)?;
        Some(ChangeTask { period, share, key: KeyDefinition::default(), weight: Weight::default() })
    }
}

impl TaskKind for ChangeTask {
    type Value = Changes;

    const LAYOUT: Layout = Layout {
        kind: "change",
        meaning: "Keys whose traffic changed between two periods.",
        facts: &[
            Field { name: "before", kind: FieldKind::Period, meaning: "The earlier period." },
            Field { name: "now", kind: FieldKind::Period, meaning: "The later period." },
            Field {
                name: "capacity",
                kind: FieldKind::Count,
                meaning: "Maximum number of keys tracked per period. If as many are listed, more may be missing.",
            },
        ],
        keys: Some(KeyLayout {
            type_name: "ChangedKey",
            meaning: "A key whose traffic changed.",
            order: "Largest magnitude of change first.",
            key_meaning: "The key in readable form.",
            may_be_flows: true,
            columns: &[
                Field {
                    name: "change",
                    kind: FieldKind::Estimate,
                    meaning: "Increase of the traffic; negative for a decrease.",
                },
                Field {
                    name: "before",
                    kind: FieldKind::Estimate,
                    meaning: "Traffic in the earlier period.",
                },
                Field { name: "now", kind: FieldKind::Estimate, meaning: "Traffic in the later period." },
            ],
            listed_for: 0,
            aside_name: "before > after",
            aside: &[1, 2],
        }),
    };

    fn parse(fields: &mut Fields<'_>) -> Result<ChangeTask, ParseTaskError> {
        fields.first(EXPECTED, ChangeTask::read)
    }

    fn parameters(&self) -> String {
        let period = period_text(self.period);
        match self.share == ChangeTask::DEFAULT_SHARE {
            true => format!(":{period}"),
            false => format!(":{period}>{}", self.share),
        }
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

    fn period(&self) -> Option<Nanos> {
        Some(self.period)
    }

    fn memory_weight(&self) -> u64 {
        4
    }

    fn size(&self, step: u32) -> Option<TaskSize> {
        TaskSize::ranked(step, self.share)
    }

    fn empty(&self, size: TaskSize, hasher: Hasher) -> TaskState {
        size.empty_k_ary(self.weight, hasher)
    }

    fn value(&self, _state: &TaskState, _total: u64) -> Option<Self::Value> {
        None
    }

    fn compare(&self, now: (&TaskState, Period), before: (&TaskState, Period)) -> Option<Self::Value> {
        let threshold = self.share.get() * (now.1.total as f64 + before.1.total as f64);
        let (keys, room) = match (now.0, before.0) {
            (TaskState::RankedKAry32(now), TaskState::RankedKAry32(before)) => {
                (changed(now, before, threshold, self.key), now.top.k())
            }
            (TaskState::RankedKAry64(now), TaskState::RankedKAry64(before)) => {
                (changed(now, before, threshold, self.key), now.top.k())
            }
            _ => wrong_state(self),
        };
        Some(Changes { before: before.1, now: now.1, keys, room })
    }

    fn table(changes: &Changes, weight: Weight) -> Table {
        let mut words = keys_in_words(changes.keys.len(), Some(changes.room));
        words.extend([Word::Text("; "), Word::Count(changes.before.total)]);
        if changes.before.is_partial {
            words.push(Word::Text(" (a part of a period)"));
        }
        words.extend([Word::Text(", then "), Word::Count(changes.now.total)]);
        words.extend([Word::Text(" "), Word::Text(weight.name())]);
        let row = |key: &ChangedKey| Row {
            name: key.name,
            cells: [key.change, key.from, key.to].map(Cell::Estimate).to_vec(),
        };
        Table {
            layout: &ChangeTask::LAYOUT,
            headline: Headline::Keys(words),
            unit: weight.name(),
            facts: vec![
                Cell::Period(changes.before),
                Cell::Period(changes.now),
                Cell::Count(changes.room as u64),
            ],
            rows: changes.keys.iter().map(row).collect(),
            span: Some((changes.before.start, changes.now.end)),
        }
    }
}

/// Returns the keys that changed by at least `threshold`, a number above zero, among the largest keys of both
/// periods.
fn changed<S: RowSketch + Clone>(
    now: &Ranked<S>,
    before: &Ranked<S>,
    threshold: f64,
    definition: KeyDefinition,
) -> Vec<ChangedKey> {
    let change = match Change::between(&now.sketch, &before.sketch) {
        Ok(change) => change,
        Err(error) => panic!("states of different plans were compared: {error}"),
    };
    let (noise_now, noise_before) = (now.sketch.noise(), before.sketch.noise());
    let mut keys = Vec::new();
    for (key, digest) in candidates(&now.top, &before.top) {
        let changed = change.estimate(digest);
        if changed.value.abs() < threshold || changed.value == 0.0 {
            continue;
        }
        let from = before.sketch.estimate(digest, &noise_before);
        let to = now.sketch.estimate(digest, &noise_now);
        keys.push(ChangedKey { key, name: name(definition, &key), change: changed, from, to });
    }
    let magnitude = |estimate: &Estimate| estimate.value.abs();
    keys.sort_by(|a, b| magnitude(&b.change).total_cmp(&magnitude(&a.change)).then(a.key.cmp(&b.key)));
    keys
}

/// Returns the candidates of both, each once.
fn candidates(now: &TopK<FlowBytes>, before: &TopK<FlowBytes>) -> impl Iterator<Item = (FlowBytes, Digest)> {
    let both = now.candidates().iter().chain(before.candidates());
    let mut keys: Vec<_> = both.map(|candidate| (candidate.key, candidate.digest)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter()
}
