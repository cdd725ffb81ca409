//! How large the sketches of a task are: steps of a ladder, each about twice the one before.

use std::fmt;

use thalweg_sketch::{
    CountSketch, Hasher, HyperLogLog, KAry, Shape, Spread, TopK, UnivMon, UnivMonShape, WithTopK,
};

use super::flow_bytes::FlowBytes;
use super::hierarchy::{LEVELS, Levels};
use super::spec::{Share, TaskSpec, Weight};
use super::state::TaskState;

/// Rows of sketches whose estimate is a median: a bound fails one time in thirty (see [`thalweg_sketch::Noise`]).
const ROWS: usize = 5;

/// Counters of a row for each key that is remembered: then counters and candidates take about as much memory.
const COUNTERS_PER_KEY: usize = 8;

/// Levels of a UnivMon: the deepest sees one key in 32,768.
const UNIVMON_LEVELS: usize = 16;

/// Error of 0.4 %: more registers than these are of use to nobody who watches.
const MAX_PRECISION: u8 = 16;

/// Error of 0.8 % of L2.
const MAX_MOMENTS_WIDTH: usize = 1 << 17;

/// How large the sketches of a task are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskSize {
    /// A sketch with its largest keys (`heavy`, `change`).
    Ranked {
        /// Rows and columns.
        shape: Shape,
        /// Keys that are remembered.
        k: usize,
    },
    /// A sketch alone (`moments`).
    Counters(Shape),
    /// A distinct counter (`distinct`).
    Registers {
        /// Binary logarithm of their number.
        precision: u8,
    },
    /// A UnivMon (`entropy`).
    UnivMon(UnivMonShape),
    /// Distinct counters in cells (`spread`).
    Cells {
        /// Rows and cells in each.
        shape: Shape,
        /// Keys that are remembered.
        k: usize,
    },
    /// A sketch with its largest keys for each length of prefix (`hhh`).
    Levels {
        /// Rows and columns of each.
        shape: Shape,
        /// Keys that each remembers.
        k: usize,
    },
}

/// Beyond these the processor's caches are long left behind, and step numbers stay small.
const MAX_STEPS: u32 = 24;

impl TaskSize {
    /// The size of a task's sketches on a step, from zero; `None` beyond the last.
    pub(super) fn on_step(spec: &TaskSpec, step: u32) -> Option<TaskSize> {
        if step > MAX_STEPS {
            return None;
        }
        let shape = |rows, narrowest: usize| Shape::new(rows, narrowest << step).ok();
        match *spec {
            TaskSpec::Heavy { share, .. } | TaskSpec::Change { share, .. } => {
                let shape = shape(ROWS, 32)?;
                Some(TaskSize::Ranked { shape, k: keys_beside(shape, share) })
            }
            TaskSpec::Distinct { .. } => {
                let precision = 8 + step as u8;
                (precision <= MAX_PRECISION).then_some(TaskSize::Registers { precision })
            }
            TaskSpec::Entropy { .. } => {
                let shape = shape(ROWS, 8)?;
                let k = shape.width() / COUNTERS_PER_KEY;
                UnivMonShape::new(UNIVMON_LEVELS, shape, k).ok().map(TaskSize::UnivMon)
            }
            TaskSpec::Spread { .. } => {
                let shape = shape(Spread::<FlowBytes>::ROWS, 8)?;
                Some(TaskSize::Cells { shape, k: shape.width() / 4 })
            }
            TaskSpec::Moments { .. } => {
                shape(ROWS, 32).filter(|shape| shape.width() <= MAX_MOMENTS_WIDTH).map(TaskSize::Counters)
            }
            TaskSpec::Hierarchy { share, .. } => {
                let shape = shape(ROWS, 32)?;
                Some(TaskSize::Levels { shape, k: keys_beside(shape, share) })
            }
        }
    }

    /// Memory of one such state, in bytes.
    pub(super) fn bytes(self, weight: Weight) -> u64 {
        let counter_bytes = match weight {
            Weight::Packets => size_of::<i32>(),
            Weight::Bytes => size_of::<i64>(),
        };
        let ranked = |shape: Shape, k| shape.bytes(counter_bytes) + TopK::<FlowBytes>::bytes_for(k);
        match self {
            TaskSize::Ranked { shape, k } => ranked(shape, k),
            TaskSize::Counters(shape) => shape.bytes(counter_bytes),
            TaskSize::Registers { precision } => 1 << precision,
            TaskSize::UnivMon(shape) => shape.bytes::<FlowBytes, i32>(),
            TaskSize::Cells { shape, k } => {
                shape.bytes(1 << Spread::<FlowBytes>::CELL_PRECISION) + TopK::<FlowBytes>::bytes_for(k)
            }
            TaskSize::Levels { shape, k } => LEVELS.len() as u64 * ranked(shape, k),
        }
    }

    /// Sketches whose updates are sampled, and the width of each.
    pub(super) fn sampled(self) -> (usize, usize) {
        match self {
            TaskSize::Ranked { shape, .. } | TaskSize::Counters(shape) => (1, shape.width()),
            TaskSize::UnivMon(shape) => (1, shape.shape().width()),
            TaskSize::Levels { shape, .. } => (LEVELS.len(), shape.width()),
            TaskSize::Registers { .. } | TaskSize::Cells { .. } => (0, 0),
        }
    }

    /// The state of a task of this size that has seen nothing.
    pub(super) fn empty(self, spec: &TaskSpec, hasher: Hasher) -> TaskState {
        match (self, spec, spec.weight()) {
            (TaskSize::Ranked { shape, k }, TaskSpec::Change { .. }, Weight::Packets) => {
                TaskState::ChangePackets(WithTopK::new(KAry::new(shape, hasher), k))
            }
            (TaskSize::Ranked { shape, k }, TaskSpec::Change { .. }, Weight::Bytes) => {
                TaskState::ChangeBytes(WithTopK::new(KAry::new(shape, hasher), k))
            }
            (TaskSize::Ranked { shape, k }, _, Weight::Packets) => {
                TaskState::HeavyPackets(WithTopK::new(CountSketch::new(shape, hasher), k))
            }
            (TaskSize::Ranked { shape, k }, _, Weight::Bytes) => {
                TaskState::HeavyBytes(WithTopK::new(CountSketch::new(shape, hasher), k))
            }
            (TaskSize::Counters(shape), _, Weight::Packets) => {
                TaskState::MomentsPackets(CountSketch::new(shape, hasher))
            }
            (TaskSize::Counters(shape), _, Weight::Bytes) => {
                TaskState::MomentsBytes(CountSketch::new(shape, hasher))
            }
            (TaskSize::Levels { shape, k }, _, Weight::Packets) => {
                TaskState::HierarchyPackets(Levels::new(shape, k, hasher))
            }
            (TaskSize::Levels { shape, k }, _, Weight::Bytes) => {
                TaskState::HierarchyBytes(Levels::new(shape, k, hasher))
            }
            (TaskSize::UnivMon(shape), ..) => TaskState::Entropy(UnivMon::new(shape, hasher)),
            (TaskSize::Registers { precision }, ..) => {
                TaskState::Distinct(HyperLogLog::new(precision, hasher).expect("steps are within the range"))
            }
            (TaskSize::Cells { shape, k }, ..) => {
                let precision = Spread::<FlowBytes>::CELL_PRECISION;
                TaskState::Spread(
                    Spread::new(shape, precision, k, hasher).expect("it is the usual precision"),
                )
            }
        }
    }
}

/// Keys to remember beside a sketch: no more than can have the share.
fn keys_beside(shape: Shape, share: Share) -> usize {
    (shape.width() / COUNTERS_PER_KEY).min(share.most_keys())
}

/// `5 x 4096 counters, 256 keys`, `2^12 registers`.
impl fmt::Display for TaskSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            TaskSize::Ranked { shape, k } => format!("{shape} counters, {k} keys"),
            TaskSize::Counters(shape) => format!("{shape} counters"),
            TaskSize::Registers { precision } => format!("2^{precision} registers"),
            TaskSize::UnivMon(shape) => {
                format!("{} levels of {} counters, {} keys", shape.levels(), shape.shape(), shape.k())
            }
            TaskSize::Cells { shape, k } => {
                format!("{shape} cells of 2^{} registers, {k} keys", Spread::<FlowBytes>::CELL_PRECISION)
            }
            TaskSize::Levels { shape, k } => format!("{} levels of {shape} counters, {k} keys", LEVELS.len()),
        };
        f.pad(&text)
    }
}
