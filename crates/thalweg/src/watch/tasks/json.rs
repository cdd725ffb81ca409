//! JSON lines of the tasks: `window` for each window that is over, `kept_windows` for all that are kept, last.

use serde::Serialize;
use thalweg_measure::tasks::{FlowName, Period, TaskResult, TaskValue, WindowReport};

use super::collector::{Finished, Health};
use super::ledger::TaskLedger;
use crate::figures::Number;
use crate::watch::json::Flow;

/// A window, or several.
#[derive(Debug, Serialize)]
pub(in crate::watch) struct WindowLine {
    start_ns: u64,
    end_ns: u64,
    windows: u64,
    packets: u64,
    bytes: u64,
    late: u64,
    tasks: Vec<TaskAnswer>,
}

/// What is said of the tasks at the end.
#[derive(Debug, Serialize)]
pub(in crate::watch) struct TasksSummary {
    windows: u64,
    empty_windows: u64,
    late: u64,
    saturations: u64,
    window_ns: u64,
    sampling: String,
    memory_bytes: u64,
    memory_bound_bytes: u64,
    sizes: Vec<TaskSizeLine>,
}

#[derive(Debug, Serialize)]
struct TaskSizeLine {
    task: String,
    size: String,
    bytes_each: u64,
    copies: u64,
}

#[derive(Debug, Serialize)]
struct TaskAnswer {
    task: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<f64>,
    saturations: u64,
    #[serde(flatten)]
    value: Value,
}

/// What a task says, under the name of its kind.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Value {
    Heavy { total: u64, room: usize, keys: Vec<HeavyKey> },
    Change { before: PeriodLine, now: PeriodLine, room: usize, keys: Vec<ChangedKey> },
    Distinct { distinct: Number },
    Entropy { bits: Number, normalised: Option<f64> },
    Spread { missed_up_to: u64, keys: Vec<SpreadKey> },
    Moments { l1: u64, l2: Number },
    Hhh { total: u64, room: usize, keys: Vec<HeavyPrefix> },
    Unknown,
}

#[derive(Debug, Serialize)]
struct KeyName {
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<Flow>,
}

#[derive(Debug, Serialize)]
struct HeavyKey {
    #[serde(flatten)]
    name: KeyName,
    share: f64,
    estimate: Number,
}

#[derive(Debug, Serialize)]
struct ChangedKey {
    #[serde(flatten)]
    name: KeyName,
    change: Number,
    from: Number,
    to: Number,
}

#[derive(Debug, Serialize)]
struct SpreadKey {
    #[serde(flatten)]
    name: KeyName,
    peers: Number,
}

#[derive(Debug, Serialize)]
struct HeavyPrefix {
    #[serde(flatten)]
    name: KeyName,
    share: f64,
    estimate: Number,
    beyond: Number,
}

#[derive(Debug, Serialize)]
struct PeriodLine {
    start_ns: u64,
    end_ns: u64,
    total: u64,
    partial: bool,
}

impl From<&Finished> for WindowLine {
    fn from(finished: &Finished) -> WindowLine {
        let WindowReport { windows, start, end, tally, results, .. } = &finished.report;
        let answer = |result: &TaskResult| {
            let health = finished.health.get(result.task).copied().unwrap_or_default();
            TaskAnswer::new(result, health)
        };
        WindowLine {
            start_ns: start.0,
            end_ns: end.0,
            windows: *windows,
            packets: tally.packets,
            bytes: tally.bytes.0,
            late: tally.late,
            tasks: results.iter().map(answer).collect(),
        }
    }
}

impl From<&TaskLedger> for TasksSummary {
    fn from(ledger: &TaskLedger) -> TasksSummary {
        let options = ledger.plan.options();
        let sizes = ledger.plan.tasks().iter().map(|planned| TaskSizeLine {
            task: planned.spec.to_string(),
            size: planned.size.to_string(),
            bytes_each: planned.bytes_each().0,
            copies: planned.copies,
        });
        TasksSummary {
            windows: ledger.windows,
            empty_windows: ledger.empty_windows,
            late: ledger.tally.late,
            saturations: ledger.saturations,
            window_ns: options.window.0,
            sampling: options.sampling.to_string(),
            memory_bytes: ledger.plan.bytes().0,
            memory_bound_bytes: options.memory.0,
            sizes: sizes.collect(),
        }
    }
}

impl TaskAnswer {
    fn new(result: &TaskResult, health: Health) -> TaskAnswer {
        TaskAnswer {
            task: result.spec.to_string(),
            sampled: health.sampled.map(|probability| probability.get()),
            saturations: health.saturations,
            value: Value::from(&result.value),
        }
    }
}

impl From<&TaskValue> for Value {
    fn from(value: &TaskValue) -> Value {
        match value {
            TaskValue::Heavy(heavy) => {
                let key = |key: &thalweg_measure::tasks::HeavyKey| HeavyKey {
                    name: KeyName::from(&key.name),
                    share: key.share,
                    estimate: Number::from(&key.estimate),
                };
                Value::Heavy {
                    total: heavy.total,
                    room: heavy.room,
                    keys: heavy.keys.iter().map(key).collect(),
                }
            }
            TaskValue::Change(changes) => {
                let key = |key: &thalweg_measure::tasks::ChangedKey| ChangedKey {
                    name: KeyName::from(&key.name),
                    change: Number::from(&key.change),
                    from: Number::from(&key.from),
                    to: Number::from(&key.to),
                };
                Value::Change {
                    before: PeriodLine::from(&changes.before),
                    now: PeriodLine::from(&changes.now),
                    room: changes.room,
                    keys: changes.keys.iter().map(key).collect(),
                }
            }
            TaskValue::Distinct(estimate) => Value::Distinct { distinct: Number::from(estimate) },
            TaskValue::Entropy(entropy) => {
                Value::Entropy { bits: Number::from(&entropy.bits), normalised: entropy.normalised }
            }
            TaskValue::Spread(spreaders) => {
                let key = |key: &thalweg_measure::tasks::SpreadKey| SpreadKey {
                    name: KeyName::from(&key.name),
                    peers: Number::from(&key.peers),
                };
                Value::Spread {
                    missed_up_to: spreaders.missed_up_to,
                    keys: spreaders.keys.iter().map(key).collect(),
                }
            }
            TaskValue::Moments(moments) => Value::Moments { l1: moments.l1, l2: Number::from(&moments.l2) },
            TaskValue::Hierarchy(prefixes) => {
                let key = |prefix: &thalweg_measure::tasks::HeavyPrefix| HeavyPrefix {
                    name: KeyName::from(&prefix.name),
                    share: prefix.share,
                    estimate: Number::from(&prefix.estimate),
                    beyond: Number::from(&prefix.beyond),
                };
                Value::Hhh {
                    total: prefixes.total,
                    room: prefixes.room,
                    keys: prefixes.prefixes.iter().map(key).collect(),
                }
            }
            _ => Value::Unknown,
        }
    }
}

impl From<&FlowName> for KeyName {
    fn from(name: &FlowName) -> KeyName {
        let flow = match name {
            FlowName::Flow(key) => Some(Flow::from(key)),
            _ => None,
        };
        KeyName { key: name.to_string(), flow }
    }
}

impl From<&Period> for PeriodLine {
    fn from(period: &Period) -> PeriodLine {
        let Period { start, end, total, is_partial } = *period;
        PeriodLine { start_ns: start.0, end_ns: end.0, total, partial: is_partial }
    }
}
