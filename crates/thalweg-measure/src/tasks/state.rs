//! The state of a task in one window.

use thalweg_sketch::{CountSketch, Counter, HyperLogLog, KAry, RowSketch, Spread, TopK, UnivMon};
use thalweg_wire::{Bytes, Timestamp};

use super::flow_bytes::{FlowBytes, Ranked};
use super::hierarchy::{LEVELS, Levels};
use super::key::KeyDefinition;
use super::weight::Weight;

/// The state of a task in one window, or in several merged ones: one of the sketches that tasks use.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TaskState {
    /// A Count Sketch of packets and its largest keys.
    RankedCountSketch32(Ranked<CountSketch<i32>>),
    /// A Count Sketch of bytes and its largest keys.
    RankedCountSketch64(Ranked<CountSketch<i64>>),
    /// A K-ary sketch of packets and its largest keys.
    RankedKAry32(Ranked<KAry<i32>>),
    /// A K-ary sketch of bytes and its largest keys.
    RankedKAry64(Ranked<KAry<i64>>),
    /// A distinct counter.
    HyperLogLog(HyperLogLog),
    /// A UnivMon of packets.
    UnivMon32(UnivMon<FlowBytes, i32>),
    /// Distinct peers of keys.
    Spread(Spread<FlowBytes>),
    /// A Count Sketch of packets.
    CountSketch32(CountSketch<i32>),
    /// A Count Sketch of bytes.
    CountSketch64(CountSketch<i64>),
    /// Count Sketches of packets and their largest keys, for each prefix length.
    Levels32(Levels<i32>),
    /// Count Sketches of bytes and their largest keys, for each prefix length.
    Levels64(Levels<i64>),
}

impl TaskState {
    /// Merges the state of the same task from another worker or window.
    ///
    /// # Panics
    /// If it is of another task or plan: shapes and seeds of one plan are the same everywhere.
    pub(super) fn merge(&mut self, other: &TaskState) {
        let merged = match (self, other) {
            (TaskState::RankedCountSketch32(ours), TaskState::RankedCountSketch32(theirs)) => {
                ours.merge(theirs)
            }
            (TaskState::RankedCountSketch64(ours), TaskState::RankedCountSketch64(theirs)) => {
                ours.merge(theirs)
            }
            (TaskState::RankedKAry32(ours), TaskState::RankedKAry32(theirs)) => ours.merge(theirs),
            (TaskState::RankedKAry64(ours), TaskState::RankedKAry64(theirs)) => ours.merge(theirs),
            (TaskState::HyperLogLog(ours), TaskState::HyperLogLog(theirs)) => ours.merge(theirs),
            (TaskState::UnivMon32(ours), TaskState::UnivMon32(theirs)) => ours.merge(theirs),
            (TaskState::Spread(ours), TaskState::Spread(theirs)) => ours.merge(theirs),
            (TaskState::CountSketch32(ours), TaskState::CountSketch32(theirs)) => ours.merge(theirs),
            (TaskState::CountSketch64(ours), TaskState::CountSketch64(theirs)) => ours.merge(theirs),
            (TaskState::Levels32(ours), TaskState::Levels32(theirs)) => ours.merge(theirs),
            (TaskState::Levels64(ours), TaskState::Levels64(theirs)) => ours.merge(theirs),
            _ => panic!("cannot merge states of different tasks"),
        };
        if let Err(error) = merged {
            panic!("cannot merge states of different plans: {error}");
        }
    }

    /// Returns the memory of its sketches.
    pub fn bytes(&self) -> Bytes {
        Bytes(match self {
            TaskState::RankedCountSketch32(ranked) => ranked.sketch.bytes() + ranked.top.bytes(),
            TaskState::RankedCountSketch64(ranked) => ranked.sketch.bytes() + ranked.top.bytes(),
            TaskState::RankedKAry32(ranked) => ranked.sketch.bytes() + ranked.top.bytes(),
            TaskState::RankedKAry64(ranked) => ranked.sketch.bytes() + ranked.top.bytes(),
            TaskState::HyperLogLog(counter) => counter.bytes(),
            TaskState::UnivMon32(univmon) => univmon.bytes(),
            TaskState::Spread(spread) => spread.bytes(),
            TaskState::CountSketch32(sketch) => sketch.bytes(),
            TaskState::CountSketch64(sketch) => sketch.bytes(),
            TaskState::Levels32(levels) => levels.bytes(),
            TaskState::Levels64(levels) => levels.bytes(),
        })
    }

    /// Returns its sketches, each with the definition of its keys: one, or for `hhh` one per prefix length, longest
    /// first. `key` is that of the state's task.
    pub fn sketches(&self, key: KeyDefinition) -> Vec<(KeyDefinition, SketchRef<'_>)> {
        let sketch = match self {
            TaskState::RankedCountSketch32(Ranked { sketch, top }) => {
                SketchRef::CountSketch32(sketch, Some(top))
            }
            TaskState::RankedCountSketch64(Ranked { sketch, top }) => {
                SketchRef::CountSketch64(sketch, Some(top))
            }
            TaskState::RankedKAry32(Ranked { sketch, top }) => SketchRef::KAry32(sketch, Some(top)),
            TaskState::RankedKAry64(Ranked { sketch, top }) => SketchRef::KAry64(sketch, Some(top)),
            TaskState::HyperLogLog(counter) => SketchRef::HyperLogLog(counter),
            TaskState::UnivMon32(univmon) => SketchRef::UnivMon32(univmon),
            TaskState::Spread(spread) => SketchRef::Spread(spread),
            TaskState::CountSketch32(sketch) => SketchRef::CountSketch32(sketch, None),
            TaskState::CountSketch64(sketch) => SketchRef::CountSketch64(sketch, None),
            TaskState::Levels32(levels) => {
                return levels
                    .sketches(key, |ranked| SketchRef::CountSketch32(&ranked.sketch, Some(&ranked.top)));
            }
            TaskState::Levels64(levels) => {
                return levels
                    .sketches(key, |ranked| SketchRef::CountSketch64(&ranked.sketch, Some(&ranked.top)));
            }
        };
        vec![(key, sketch)]
    }
}

impl<C: Counter> Levels<C> {
    fn sketches<'a>(
        &'a self,
        key: KeyDefinition,
        sketch: impl Fn(&'a Ranked<CountSketch<C>>) -> SketchRef<'a>,
    ) -> Vec<(KeyDefinition, SketchRef<'a>)> {
        let key = |lengths| match key.side() {
            Some(side) => KeyDefinition::Prefix(side, lengths),
            None => key,
        };
        LEVELS.iter().zip(self.levels()).map(|(&lengths, level)| (key(lengths), sketch(level))).collect()
    }
}

/// A sketch of any kind, with its largest keys if it tracks them; for saving.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum SketchRef<'a> {
    /// A Count Sketch of packets.
    CountSketch32(&'a CountSketch<i32>, Option<&'a TopK<FlowBytes>>),
    /// A Count Sketch of bytes.
    CountSketch64(&'a CountSketch<i64>, Option<&'a TopK<FlowBytes>>),
    /// A K-ary sketch of packets.
    KAry32(&'a KAry<i32>, Option<&'a TopK<FlowBytes>>),
    /// A K-ary sketch of bytes.
    KAry64(&'a KAry<i64>, Option<&'a TopK<FlowBytes>>),
    /// A UnivMon of packets.
    UnivMon32(&'a UnivMon<FlowBytes, i32>),
    /// A distinct counter.
    HyperLogLog(&'a HyperLogLog),
    /// Distinct peers of keys.
    Spread(&'a Spread<FlowBytes>),
}

/// A completed window of one worker.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowState {
    /// The number of the worker.
    pub worker: usize,
    /// The number of the window: its start divided by its length. Of several windows, the last.
    pub index: u64,
    /// The number of windows: one, or a stretch of windows without packets.
    pub windows: u64,
    /// The packets counted.
    pub tally: WindowTally,
    /// A state for each task of the plan; empty if there were no packets.
    pub states: Vec<TaskState>,
}

/// The packets of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowTally {
    /// The number of packets.
    pub packets: u64,
    /// Their bytes, of the IP layer.
    pub bytes: Bytes,
    /// The number of late packets, older than the window.
    pub late: u64,
}

impl WindowTally {
    /// Returns the total of this weight.
    pub(super) fn total(&self, weight: Weight) -> u64 {
        match weight {
            Weight::Packets => self.packets,
            Weight::Bytes => self.bytes.0,
        }
    }
}

impl std::ops::AddAssign for WindowTally {
    fn add_assign(&mut self, other: WindowTally) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.late += other.late;
    }
}

/// A completed window of all workers together.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptWindow {
    /// The number of the window: its start divided by its length.
    pub index: u64,
    /// The start.
    pub start: Timestamp,
    /// The end, exclusive.
    pub end: Timestamp,
    /// The packets counted.
    pub tally: WindowTally,
    /// A state for each task of the plan.
    pub states: Vec<TaskState>,
}
