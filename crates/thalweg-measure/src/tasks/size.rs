//! The sizes of the sketches of a task: steps of a ladder, each about twice the previous one.

use std::fmt;

use thalweg_sketch::{
    CountSketch, Hasher, HyperLogLog, KAry, Shape, Spread, TopK, UnivMon, UnivMonShape, WithTopK,
};

use super::flow_bytes::FlowBytes;
use super::hierarchy::{LEVELS, Levels};
use super::state::TaskState;
use super::weight::{Share, Weight};

/// The rows of sketches whose estimate is a median: a bound fails one time in thirty (see [`thalweg_sketch::Noise`]).
const ROWS: usize = 5;

/// Counters per row for each key tracked: then counters and candidates take about as much memory.
const COUNTERS_PER_KEY: usize = 8;

/// The levels of a UnivMon: the deepest has one key in 32,768.
const UNIVMON_LEVELS: usize = 16;

/// An error of 0.4 %: more registers than that are of no practical use.
const MAX_PRECISION: u8 = 16;

/// An error of 0.8 % of L2.
const MAX_MOMENTS_WIDTH: usize = 1 << 17;

/// The size of the sketches of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskSize {
    /// A sketch with its largest keys (`heavy`, `change`).
    Ranked {
        /// Rows and columns.
        shape: Shape,
        /// The number of keys tracked.
        k: usize,
    },
    /// A sketch alone (`moments`).
    Counters(Shape),
    /// A distinct counter (`distinct`).
    Registers {
        /// The binary logarithm of their number.
        precision: u8,
    },
    /// A UnivMon (`entropy`).
    UnivMon(UnivMonShape),
    /// Distinct counters in cells (`spread`).
    Cells {
        /// Rows and cells in each.
        shape: Shape,
        /// The number of keys tracked.
        k: usize,
    },
    /// A sketch with its largest keys for each prefix length (`hhh`).
    Levels {
        /// Rows and columns of each.
        shape: Shape,
        /// The number of keys that each tracks.
        k: usize,
    },
}

/// Beyond these steps a sketch far exceeds the processor's caches; the limit keeps step numbers small.
const MAX_STEPS: u32 = 24;

impl TaskSize {
    /// The size of a sketch with its largest keys, at most as many as can have `share`. Here as below: the size at a
    /// step, from zero; `None` beyond the last.
    pub(super) fn ranked(step: u32, share: Share) -> Option<TaskSize> {
        let shape = shape(ROWS, 32, step)?;
        Some(TaskSize::Ranked { shape, k: keys_beside(shape, share) })
    }

    /// The size of a sketch with its largest keys for each prefix length.
    pub(super) fn levels(step: u32, share: Share) -> Option<TaskSize> {
        let shape = shape(ROWS, 32, step)?;
        Some(TaskSize::Levels { shape, k: keys_beside(shape, share) })
    }

    /// The size of a sketch alone.
    pub(super) fn counters(step: u32) -> Option<TaskSize> {
        shape(ROWS, 32, step).filter(|shape| shape.width() <= MAX_MOMENTS_WIDTH).map(TaskSize::Counters)
    }

    /// The size of a distinct counter.
    pub(super) fn registers(step: u32) -> Option<TaskSize> {
        let precision = 8 + step as u8;
        (precision <= MAX_PRECISION).then_some(TaskSize::Registers { precision })
    }

    /// The size of a UnivMon. With fewer than eight keys per level, sums over keys are off by a factor.
    pub(super) fn univmon(step: u32) -> Option<TaskSize> {
        let shape = shape(ROWS, 8 * COUNTERS_PER_KEY, step)?;
        let k = shape.width() / COUNTERS_PER_KEY;
        UnivMonShape::new(UNIVMON_LEVELS, shape, k).ok().map(TaskSize::UnivMon)
    }

    /// The size of distinct counters in cells.
    pub(super) fn cells(step: u32) -> Option<TaskSize> {
        let shape = shape(Spread::<FlowBytes>::ROWS, 8, step)?;
        Some(TaskSize::Cells { shape, k: shape.width() / 4 })
    }

    /// Returns the memory of one such state, in bytes.
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

    /// Returns the number of sketches whose updates are sampled, and the width of each.
    pub(super) fn sampled(self) -> (usize, usize) {
        match self {
            TaskSize::Ranked { shape, .. } | TaskSize::Counters(shape) => (1, shape.width()),
            TaskSize::UnivMon(shape) => (1, shape.shape().width()),
            TaskSize::Levels { shape, .. } => (LEVELS.len(), shape.width()),
            TaskSize::Registers { .. } | TaskSize::Cells { .. } => (0, 0),
        }
    }

    /// Returns an empty state of this size; for a ranked sketch a Count Sketch.
    pub(super) fn empty(self, weight: Weight, hasher: Hasher) -> TaskState {
        match (self, weight) {
            (TaskSize::Ranked { shape, k }, Weight::Packets) => {
                TaskState::RankedCountSketch32(WithTopK::new(CountSketch::new(shape, hasher), k))
            }
            (TaskSize::Ranked { shape, k }, Weight::Bytes) => {
                TaskState::RankedCountSketch64(WithTopK::new(CountSketch::new(shape, hasher), k))
            }
            (TaskSize::Counters(shape), Weight::Packets) => {
                TaskState::CountSketch32(CountSketch::new(shape, hasher))
            }
            (TaskSize::Counters(shape), Weight::Bytes) => {
                TaskState::CountSketch64(CountSketch::new(shape, hasher))
            }
            (TaskSize::Levels { shape, k }, Weight::Packets) => {
                TaskState::Levels32(Levels::new(shape, k, hasher))
            }
            (TaskSize::Levels { shape, k }, Weight::Bytes) => {
                TaskState::Levels64(Levels::new(shape, k, hasher))
            }
            (TaskSize::UnivMon(shape), _) => TaskState::UnivMon32(UnivMon::new(shape, hasher)),
            (TaskSize::Registers { precision }, _) => TaskState::HyperLogLog(
                HyperLogLog::new(precision, hasher).expect("steps are within the range"),
            ),
            (TaskSize::Cells { shape, k }, _) => {
                let precision = Spread::<FlowBytes>::CELL_PRECISION;
                TaskState::Spread(
                    Spread::new(shape, precision, k, hasher).expect("the precision is the default"),
                )
            }
        }
    }

    /// Returns the same with a K-ary sketch instead of a Count Sketch, so that states can be subtracted.
    pub(super) fn empty_k_ary(self, weight: Weight, hasher: Hasher) -> TaskState {
        let TaskSize::Ranked { shape, k } = self else { return self.empty(weight, hasher) };
        match weight {
            Weight::Packets => TaskState::RankedKAry32(WithTopK::new(KAry::new(shape, hasher), k)),
            Weight::Bytes => TaskState::RankedKAry64(WithTopK::new(KAry::new(shape, hasher), k)),
        }
    }
}

/// Returns the shape at a step; `None` beyond the last.
fn shape(rows: usize, narrowest: usize, step: u32) -> Option<Shape> {
    if step > MAX_STEPS { None } else { Shape::new(rows, narrowest << step).ok() }
}

/// Returns the number of keys to track beside a sketch: at most as many as can have the share.
fn keys_beside(shape: Shape, share: Share) -> usize {
    (shape.width() / COUNTERS_PER_KEY).min(share.max_keys())
}

/// Formats as `5 x 4096 counters, 256 keys` or `2^12 registers`.
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
