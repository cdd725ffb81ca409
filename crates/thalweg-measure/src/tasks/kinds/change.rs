//! `change:30s`: keys whose traffic has changed from one period to the next. A K-ary sketch and its largest keys; the
//! sketches of two periods are subtracted.

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

/// Asks for keys whose traffic has changed from one period to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeTask {
    /// Length of a period: a whole number of windows.
    pub period: Nanos,
    /// The least change, as a share of the traffic of both periods together: an upper bound of all change.
    pub share: Share,
    /// What is a flow.
    pub key: KeyDefinition,
    /// What is counted.
    pub weight: Weight,
}

/// Keys whose traffic has changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// The earlier period.
    pub before: Period,
    /// The later one.
    pub now: Period,
    /// Largest change first, whatever its sign.
    pub keys: Vec<ChangedKey>,
    /// Keys that each period remembers: when as many are listed, more may be missing.
    pub room: usize,
}

/// A key whose traffic has changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangedKey {
    /// The key.
    pub key: FlowBytes,
    /// What it says.
    pub name: FlowName,
    /// How much more it is; below zero if it is less.
    pub change: Estimate,
    /// What it was before.
    pub from: Estimate,
    /// What it is now.
    pub to: Estimate,
}

const EXPECTED: &str =
    "a length of time, and after > the least share if you wish, as in change:30s or change:30s>5%";

impl ChangeTask {
    /// The least change that is told of unless a specification says otherwise: 1 %.
    pub const DEFAULT_SHARE: Share = Share::ONE_PERCENT;

    /// Reads `30s` or `30s>5%`.
    fn read(text: &str) -> Option<ChangeTask> {
        let (period, share) = match text.split_once('>') {
            Some((period, least)) => (period, share(least.trim())?),
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
        meaning: "Keys whose traffic has changed between two periods.",
        facts: &[
            Field { name: "before", kind: FieldKind::Period, meaning: "The earlier period." },
            Field { name: "now", kind: FieldKind::Period, meaning: "The later one." },
            Field {
                name: "capacity",
                kind: FieldKind::Count,
                meaning: "Keys that each period remembers: when as many are listed, more may be missing.",
            },
        ],
        keys: Some(KeyLayout {
            type_name: "ChangedKey",
            meaning: "A key whose traffic has changed.",
            order: "Largest change first, whatever its sign.",
            key_meaning: "The key, as people write it.",
            may_be_flows: true,
            columns: &[
                Field {
                    name: "change",
                    kind: FieldKind::Estimate,
                    meaning: "How much more it is; below zero if less.",
                },
                Field { name: "before", kind: FieldKind::Estimate, meaning: "What it was before." },
                Field { name: "now", kind: FieldKind::Estimate, meaning: "What it is now." },
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

    fn worth(&self) -> u64 {
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

/// Keys that have changed by at least `threshold` above zero, of those that are among the largest of either period.
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

/// The candidates of both, each once.
fn candidates(now: &TopK<FlowBytes>, before: &TopK<FlowBytes>) -> impl Iterator<Item = (FlowBytes, Digest)> {
    let both = now.candidates().iter().chain(before.candidates());
    let mut keys: Vec<_> = both.map(|candidate| (candidate.key, candidate.digest)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter()
}
