//! From a task's state to what it says.

use thalweg_sketch::{Bound, CountSketch, Counter, Estimate, UnivMon};

use super::flow_bytes::FlowBytes;
use super::flow_name::FlowName;
use super::hierarchy::{LEVELS, Levels};
use super::key::KeyDefinition;
use super::plan::PlannedTask;
use super::report::{
    Entropy, HeavyHitters, HeavyKey, HeavyPrefix, HeavyPrefixes, Moments, SpreadKey, Spreaders, TaskResult,
    TaskValue,
};
use super::spec::{TaskSpec, Weight};
use super::state::{Ranked, TaskState, WindowTally};

/// What a task says of `state`, which has counted what `tally` says; `None` of `change`, which speaks at the end of
/// a period.
pub(super) fn answer(
    task: usize,
    planned: &PlannedTask,
    state: &TaskState,
    tally: &WindowTally,
) -> Option<TaskResult> {
    let spec = planned.spec;
    let total = match spec.weight() {
        Weight::Packets => tally.packets,
        Weight::Bytes => tally.bytes.0,
    };
    let value = match state {
        TaskState::HeavyPackets(ranked) => TaskValue::Heavy(heavy(&spec, ranked, total)),
        TaskState::HeavyBytes(ranked) => TaskValue::Heavy(heavy(&spec, ranked, total)),
        TaskState::ChangePackets(_) | TaskState::ChangeBytes(_) => return None,
        TaskState::Distinct(counter) => TaskValue::Distinct(counter.estimate()),
        TaskState::Entropy(univmon) => TaskValue::Entropy(entropy(univmon)),
        TaskState::Spread(spread) => {
            let TaskSpec::Spread { key, threshold, .. } = spec else {
                unreachable!("the state is of spread")
            };
            let spread_key = |(bytes, peers)| SpreadKey { key: bytes, name: name(key, &bytes), peers };
            let keys = spread.above(threshold).into_iter().map(spread_key).collect();
            TaskValue::Spread(Spreaders { keys, missed_up_to: spread.missed_up_to() })
        }
        TaskState::MomentsPackets(sketch) => TaskValue::Moments(Moments { l1: total, l2: root(sketch.f2()) }),
        TaskState::MomentsBytes(sketch) => TaskValue::Moments(Moments { l1: total, l2: root(sketch.f2()) }),
        TaskState::HierarchyPackets(levels) => TaskValue::Hierarchy(hierarchy(&spec, levels, total)),
        TaskState::HierarchyBytes(levels) => TaskValue::Hierarchy(hierarchy(&spec, levels, total)),
    };
    Some(TaskResult { task, spec, value })
}

fn name(definition: KeyDefinition, key: &FlowBytes) -> FlowName {
    definition.name(key).expect("keys are of the task's definition")
}

fn heavy<C: Counter>(spec: &TaskSpec, ranked: &Ranked<CountSketch<C>>, total: u64) -> HeavyHitters {
    let TaskSpec::Heavy { share, key: definition, .. } = *spec else { unreachable!("the state is of heavy") };
    let threshold = share.get() * total as f64;
    let largest = ranked.largest().into_iter();
    let above = largest.take_while(|(_, estimate)| estimate.value > 0.0 && estimate.value >= threshold);
    let keys = above.map(|(key, estimate)| {
        let share = estimate.value / total as f64;
        HeavyKey { key, name: name(definition, &key), estimate, share }
    });
    HeavyHitters { total, keys: keys.collect(), room: ranked.top.k() }
}

fn entropy(univmon: &UnivMon<FlowBytes, i32>) -> Entropy {
    let bits = univmon.entropy();
    let most = univmon.distinct().value.log2();
    Entropy { bits, normalised: (most >= 1.0).then(|| (bits.value / most).clamp(0.0, 1.0)) }
}

fn hierarchy<C: Counter>(spec: &TaskSpec, levels: &Levels<C>, total: u64) -> HeavyPrefixes {
    let TaskSpec::Hierarchy { share, side, .. } = *spec else { unreachable!("the state is of hhh") };
    let room = levels.levels()[0].top.k();
    if total == 0 {
        return HeavyPrefixes { total, prefixes: Vec::new(), room };
    }
    let above = levels.above(share.get() * total as f64).into_iter();
    let prefixes = above.map(|prefix| HeavyPrefix {
        key: prefix.key,
        name: name(KeyDefinition::Prefix(side, LEVELS[prefix.level]), &prefix.key),
        estimate: prefix.estimate,
        beyond: prefix.beyond,
        share: prefix.beyond.value / total as f64,
    });
    HeavyPrefixes { total, prefixes: prefixes.collect(), room }
}

/// The square root of a quantity that is not below zero.
fn root(of: Estimate) -> Estimate {
    let bound = match of.bound {
        Bound::Interval { lower, upper, confidence } => {
            Bound::Interval { lower: lower.max(0.0).sqrt(), upper: upper.max(0.0).sqrt(), confidence }
        }
        other => other,
    };
    Estimate { value: of.value.max(0.0).sqrt(), bound }
}
