//! What a measurement task says, under the name of its kind.

use thalweg_api::{ChangedKey, FlowName, HeavyKey, HeavyPrefix, Period, SpreadKey, TaskView};
use thalweg_measure::tasks::{self, FlowName as Key, TaskValue};

use super::rate;

/// What a measurement task says.
pub fn task_view(value: &TaskValue) -> TaskView {
    match value {
        TaskValue::Heavy(heavy) => TaskView::Heavy {
            total: heavy.total,
            room: heavy.room,
            keys: heavy.keys.iter().map(heavy_key).collect(),
        },
        TaskValue::Change(changes) => TaskView::Change {
            before: period(&changes.before),
            now: period(&changes.now),
            room: changes.room,
            keys: changes.keys.iter().map(changed_key).collect(),
        },
        TaskValue::Distinct(distinct) => TaskView::Distinct { distinct: rate(*distinct) },
        TaskValue::Entropy(entropy) => {
            TaskView::Entropy { bits: rate(entropy.bits), normalised: entropy.normalised }
        }
        TaskValue::Spread(spreaders) => TaskView::Spread {
            missed_up_to: spreaders.missed_up_to,
            keys: spreaders.keys.iter().map(spread_key).collect(),
        },
        TaskValue::Moments(moments) => TaskView::Moments { l1: moments.l1, l2: rate(moments.l2) },
        TaskValue::Hierarchy(prefixes) => TaskView::Hhh {
            total: prefixes.total,
            room: prefixes.room,
            keys: prefixes.prefixes.iter().map(heavy_prefix).collect(),
        },
        _ => TaskView::Unknown,
    }
}

fn flow(key: &Key) -> Option<FlowName> {
    match key {
        Key::Flow(key) => Some(FlowName::from(key)),
        _ => None,
    }
}

fn heavy_key(heavy: &tasks::HeavyKey) -> HeavyKey {
    let (key, flow) = (heavy.name.to_string(), flow(&heavy.name));
    HeavyKey { key, flow, share: heavy.share, estimate: rate(heavy.estimate) }
}

fn changed_key(changed: &tasks::ChangedKey) -> ChangedKey {
    ChangedKey {
        key: changed.name.to_string(),
        flow: flow(&changed.name),
        change: rate(changed.change),
        from: rate(changed.from),
        to: rate(changed.to),
    }
}

fn spread_key(spread: &tasks::SpreadKey) -> SpreadKey {
    SpreadKey { key: spread.name.to_string(), peers: rate(spread.peers) }
}

fn heavy_prefix(prefix: &tasks::HeavyPrefix) -> HeavyPrefix {
    HeavyPrefix {
        key: prefix.name.to_string(),
        share: prefix.share,
        estimate: rate(prefix.estimate),
        beyond: rate(prefix.beyond),
    }
}

fn period(period: &tasks::Period) -> Period {
    let tasks::Period { start, end, total, is_partial } = *period;
    Period { start: start.into(), end: end.into(), total, partial: is_partial }
}
