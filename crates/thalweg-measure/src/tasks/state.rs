//! What a task has counted in one window.

use thalweg_sketch::{CountSketch, Counter, HyperLogLog, KAry, RowSketch, Spread, TopK, UnivMon, WithTopK};
use thalweg_wire::{Bytes, Timestamp};

use super::flow_bytes::FlowBytes;
use super::hierarchy::{LEVELS, Levels};
use super::key::KeyDefinition;
use super::spec::TaskSpec;

/// A sketch of keys' weights, with the largest keys.
pub type Ranked<S> = WithTopK<S, FlowBytes>;

/// What a task has counted in one window, or in several put together.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TaskState {
    /// Heavy hitters by packets.
    HeavyPackets(Ranked<CountSketch<i32>>),
    /// Heavy hitters by bytes.
    HeavyBytes(Ranked<CountSketch<i64>>),
    /// Packets, to be compared with another period's.
    ChangePackets(Ranked<KAry<i32>>),
    /// Bytes, to be compared with another period's.
    ChangeBytes(Ranked<KAry<i64>>),
    /// Different keys.
    Distinct(HyperLogLog),
    /// Entropy of packets over keys.
    Entropy(UnivMon<FlowBytes, i32>),
    /// Different peers of each key.
    Spread(Spread<FlowBytes>),
    /// Moments of keys' sizes in packets.
    MomentsPackets(CountSketch<i32>),
    /// Moments of keys' sizes in bytes.
    MomentsBytes(CountSketch<i64>),
    /// Hierarchical heavy hitters by packets.
    HierarchyPackets(Levels<i32>),
    /// Hierarchical heavy hitters by bytes.
    HierarchyBytes(Levels<i64>),
}

impl TaskState {
    /// Takes in what the same task has counted elsewhere.
    ///
    /// # Panics
    /// If it is of another task or plan: shapes and seeds of one plan are the same everywhere.
    pub(super) fn merge(&mut self, other: &TaskState) {
        let merged = match (self, other) {
            (TaskState::HeavyPackets(mine), TaskState::HeavyPackets(theirs)) => mine.merge(theirs),
            (TaskState::HeavyBytes(mine), TaskState::HeavyBytes(theirs)) => mine.merge(theirs),
            (TaskState::ChangePackets(mine), TaskState::ChangePackets(theirs)) => mine.merge(theirs),
            (TaskState::ChangeBytes(mine), TaskState::ChangeBytes(theirs)) => mine.merge(theirs),
            (TaskState::Distinct(mine), TaskState::Distinct(theirs)) => mine.merge(theirs),
            (TaskState::Entropy(mine), TaskState::Entropy(theirs)) => mine.merge(theirs),
            (TaskState::Spread(mine), TaskState::Spread(theirs)) => mine.merge(theirs),
            (TaskState::MomentsPackets(mine), TaskState::MomentsPackets(theirs)) => mine.merge(theirs),
            (TaskState::MomentsBytes(mine), TaskState::MomentsBytes(theirs)) => mine.merge(theirs),
            (TaskState::HierarchyPackets(mine), TaskState::HierarchyPackets(theirs)) => mine.merge(theirs),
            (TaskState::HierarchyBytes(mine), TaskState::HierarchyBytes(theirs)) => mine.merge(theirs),
            _ => panic!("states of different tasks were put together"),
        };
        if let Err(error) = merged {
            panic!("states of different plans were put together: {error}");
        }
    }

    /// Memory of its sketches.
    pub fn bytes(&self) -> Bytes {
        Bytes(match self {
            TaskState::HeavyPackets(ranked) => ranked.sketch.bytes() + ranked.top.bytes(),
            TaskState::HeavyBytes(ranked) => ranked.sketch.bytes() + ranked.top.bytes(),
            TaskState::ChangePackets(ranked) => ranked.sketch.bytes() + ranked.top.bytes(),
            TaskState::ChangeBytes(ranked) => ranked.sketch.bytes() + ranked.top.bytes(),
            TaskState::Distinct(counter) => counter.bytes(),
            TaskState::Entropy(univmon) => univmon.bytes(),
            TaskState::Spread(spread) => spread.bytes(),
            TaskState::MomentsPackets(sketch) => sketch.bytes(),
            TaskState::MomentsBytes(sketch) => sketch.bytes(),
            TaskState::HierarchyPackets(levels) => levels.bytes(),
            TaskState::HierarchyBytes(levels) => levels.bytes(),
        })
    }

    /// Its sketches, each with the definition of its keys: one, but for `hhh` one for each length of prefix,
    /// longest first. `spec` is the task whose state it is.
    pub fn sketches(&self, spec: &TaskSpec) -> Vec<(KeyDefinition, SketchRef<'_>)> {
        let sketch = match self {
            TaskState::HeavyPackets(Ranked { sketch, top }) => SketchRef::CountSketch32(sketch, Some(top)),
            TaskState::HeavyBytes(Ranked { sketch, top }) => SketchRef::CountSketch64(sketch, Some(top)),
            TaskState::ChangePackets(Ranked { sketch, top }) => SketchRef::KAry32(sketch, Some(top)),
            TaskState::ChangeBytes(Ranked { sketch, top }) => SketchRef::KAry64(sketch, Some(top)),
            TaskState::Distinct(counter) => SketchRef::HyperLogLog(counter),
            TaskState::Entropy(univmon) => SketchRef::UnivMon32(univmon),
            TaskState::Spread(spread) => SketchRef::Spread(spread),
            TaskState::MomentsPackets(sketch) => SketchRef::CountSketch32(sketch, None),
            TaskState::MomentsBytes(sketch) => SketchRef::CountSketch64(sketch, None),
            TaskState::HierarchyPackets(levels) => {
                return levels
                    .sketches(spec, |ranked| SketchRef::CountSketch32(&ranked.sketch, Some(&ranked.top)));
            }
            TaskState::HierarchyBytes(levels) => {
                return levels
                    .sketches(spec, |ranked| SketchRef::CountSketch64(&ranked.sketch, Some(&ranked.top)));
            }
        };
        vec![(spec.key(), sketch)]
    }
}

impl<C: Counter> Levels<C> {
    fn sketches<'a>(
        &'a self,
        spec: &TaskSpec,
        sketch: impl Fn(&'a Ranked<CountSketch<C>>) -> SketchRef<'a>,
    ) -> Vec<(KeyDefinition, SketchRef<'a>)> {
        let key = |lengths| match spec.key().side() {
            Some(side) => KeyDefinition::Prefix(side, lengths),
            None => spec.key(),
        };
        LEVELS.iter().zip(self.levels()).map(|(&lengths, level)| (key(lengths), sketch(level))).collect()
    }
}

/// A sketch of any kind, with its largest keys if it has them; to be saved.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum SketchRef<'a> {
    /// Count Sketch of packets.
    CountSketch32(&'a CountSketch<i32>, Option<&'a TopK<FlowBytes>>),
    /// Count Sketch of bytes.
    CountSketch64(&'a CountSketch<i64>, Option<&'a TopK<FlowBytes>>),
    /// K-ary sketch of packets.
    KAry32(&'a KAry<i32>, Option<&'a TopK<FlowBytes>>),
    /// K-ary sketch of bytes.
    KAry64(&'a KAry<i64>, Option<&'a TopK<FlowBytes>>),
    /// UnivMon of packets.
    UnivMon32(&'a UnivMon<FlowBytes, i32>),
    /// Distinct counter.
    HyperLogLog(&'a HyperLogLog),
    /// Distinct peers of keys.
    Spread(&'a Spread<FlowBytes>),
}

/// A window of one worker, finished.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowState {
    /// Which worker.
    pub worker: usize,
    /// Number of the window: its start divided by its length. Of several the last.
    pub index: u64,
    /// Windows that it stands for: one, or a stretch of windows without packets.
    pub windows: u64,
    /// What was counted.
    pub tally: WindowTally,
    /// A state for each task of the plan; none at all if there were no packets.
    pub states: Vec<TaskState>,
}

/// Packets of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowTally {
    /// How many.
    pub packets: u64,
    /// Their bytes, of the IP layer.
    pub bytes: Bytes,
    /// How many of them were older than the window, whose own was over.
    pub late: u64,
}

impl std::ops::AddAssign for WindowTally {
    fn add_assign(&mut self, other: WindowTally) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.late += other.late;
    }
}

/// A finished window of all workers together.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptWindow {
    /// Number of the window: its start divided by its length.
    pub index: u64,
    /// Its first moment.
    pub start: Timestamp,
    /// The first moment after it.
    pub end: Timestamp,
    /// What was counted.
    pub tally: WindowTally,
    /// A state for each task of the plan.
    pub states: Vec<TaskState>,
}
