//! Counts packets in the sketches of a task: the hot path.
//!
//! A task processes a whole batch at a time, so dispatching on the kind of task costs one virtual call per batch.
//! Sampled sketches build keys only for the packets that they sample.

use std::fmt::Debug;
use std::marker::PhantomData;

use thalweg_sketch::nitro::RowWise;
use thalweg_sketch::{
    Batch, CountSketch, Counter, Digest, HyperLogLog, KAry, Key, Mode, Nitro, RowSketch, Spread, UnivMon,
};
use thalweg_sketch::{Hasher, Sums};
use thalweg_wire::{Packet, Timestamp};

use super::flow_bytes::{FlowBytes, Ranked};
use super::hierarchy::{LEVELS, Levels};
use super::key::KeyDefinition;
use super::kinds::TaskSpec;
use super::plan::Plan;
use super::prefix::Side;
use super::state::TaskState;

/// The counting of one task by one worker.
pub(super) trait Count: Debug + Send {
    /// Counts a batch.
    fn packets(&mut self, packets: &[Packet]);

    /// Advances the time.
    fn advance(&mut self, _now: Timestamp) {}

    /// Returns a copy of the state and starts again.
    fn take_state(&mut self) -> TaskState;
}

/// Creates the counting of `task` by `worker`.
pub(super) fn counting(plan: &Plan, task: usize, worker: usize) -> Box<dyn Count> {
    let planned = &plan.tasks()[task];
    let key = planned.spec.key();
    let (_, width) = planned.size.sampled();
    let mode = plan.sampling().mode(width, plan.sampled_sketches());
    // Each sampler uses its own random stream.
    let seed = |level: usize| {
        let place = (worker as u64) << 32 | (task as u64) << 8 | level as u64;
        plan.options().seed ^ place.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    };
    match plan.empty(task) {
        TaskState::RankedCountSketch32(sketch) => Box::new(Sampled::new(sketch, key, mode, seed(0))),
        TaskState::RankedCountSketch64(sketch) => Box::new(Sampled::new(sketch, key, mode, seed(0))),
        TaskState::RankedKAry32(sketch) => Box::new(Sampled::new(sketch, key, mode, seed(0))),
        TaskState::RankedKAry64(sketch) => Box::new(Sampled::new(sketch, key, mode, seed(0))),
        TaskState::UnivMon32(sketch) => Box::new(Sampled::new(sketch, key, mode, seed(0))),
        TaskState::CountSketch32(sketch) => Box::new(Sampled::new(sketch, key, mode, seed(0))),
        TaskState::CountSketch64(sketch) => Box::new(Sampled::new(sketch, key, mode, seed(0))),
        TaskState::HyperLogLog(counter) => Box::new(DistinctCounting { counter, key }),
        TaskState::Spread(spread) => Box::new(SpreadCounting { spread, key, peer: peer(&planned.spec) }),
        TaskState::Levels32(levels) => Box::new(LevelsCounting::new(levels, &planned.spec, mode, seed)),
        TaskState::Levels64(levels) => Box::new(LevelsCounting::new(levels, &planned.spec, mode, seed)),
    }
}

fn peer(spec: &TaskSpec) -> KeyDefinition {
    KeyDefinition::Address(side(spec).opposite())
}

fn side(spec: &TaskSpec) -> Side {
    spec.key().side().expect("spread and hhh are of one side")
}

/// What counters of this type count per packet.
pub(super) trait WeightCounter: Counter {
    fn weight(packet: &Packet) -> i64;

    /// Returns the totals of the packets' weights.
    #[inline(always)]
    fn sums(packets: &[Packet]) -> Sums {
        Sums::of(packets.iter().map(Self::weight))
    }
}

/// Packets.
impl WeightCounter for i32 {
    #[inline(always)]
    fn weight(_packet: &Packet) -> i64 {
        1
    }

    #[inline(always)]
    fn sums(packets: &[Packet]) -> Sums {
        Sums::ones(packets.len())
    }
}

/// Bytes.
impl WeightCounter for i64 {
    #[inline(always)]
    fn weight(packet: &Packet) -> i64 {
        i64::from(packet.ip_length)
    }
}

/// Packets as keys and weights.
struct Keyed<'a, C> {
    packets: &'a [Packet],
    key: KeyDefinition,
    weight: PhantomData<C>,
}

impl<C: WeightCounter> Batch for Keyed<'_, C> {
    type Key = FlowBytes;

    fn len(&self) -> usize {
        self.packets.len()
    }

    #[inline(always)]
    fn key(&self, number: usize) -> FlowBytes {
        self.key.of(&self.packets[number].key)
    }

    #[inline(always)]
    fn weight(&self, number: usize) -> i64 {
        C::weight(&self.packets[number])
    }

    #[inline(always)]
    fn sums(&self, from: usize, to: usize) -> Sums {
        C::sums(&self.packets[from..to])
    }
}

/// A sketch of a task whose updates may be sampled.
pub(super) trait Linear: RowWise<FlowBytes> + Clone + Debug + Send + Into<TaskState> {
    type Counter: WeightCounter;

    fn clear_state(&mut self);
}

/// Implements `Into<TaskState>` for a sketch.
macro_rules! is_state {
    ($($sketch:ty => $state:ident),* $(,)?) => {
        $(impl From<$sketch> for TaskState {
            fn from(sketch: $sketch) -> TaskState {
                TaskState::$state(sketch)
            }
        })*
    };
}

is_state! {
    Ranked<CountSketch<i32>> => RankedCountSketch32,
    Ranked<CountSketch<i64>> => RankedCountSketch64,
    Ranked<KAry<i32>> => RankedKAry32,
    Ranked<KAry<i64>> => RankedKAry64,
    UnivMon<FlowBytes, i32> => UnivMon32,
    CountSketch<i32> => CountSketch32,
    CountSketch<i64> => CountSketch64,
    Levels<i32> => Levels32,
    Levels<i64> => Levels64,
}

impl<C: WeightCounter> Linear for CountSketch<C>
where
    TaskState: From<CountSketch<C>>,
{
    type Counter = C;

    fn clear_state(&mut self) {
        RowSketch::clear(self);
    }
}

impl<S, C> Linear for Ranked<S>
where
    S: RowSketch<Counter = C> + Clone + Debug + Send,
    C: WeightCounter,
    TaskState: From<Ranked<S>>,
{
    type Counter = C;

    fn clear_state(&mut self) {
        self.clear();
    }
}

impl Linear for UnivMon<FlowBytes, i32> {
    type Counter = i32;

    fn clear_state(&mut self) {
        self.clear();
    }
}

/// A sketch whose updates are sampled.
#[derive(Debug)]
struct Sampled<S> {
    nitro: Nitro<S>,
    key: KeyDefinition,
}

impl<S: Linear> Sampled<S> {
    fn new(sketch: S, key: KeyDefinition, mode: Mode, seed: u64) -> Sampled<S> {
        Sampled { nitro: Nitro::new(sketch, mode, seed), key }
    }

    #[inline(always)]
    fn update(&mut self, packets: &[Packet]) {
        self.nitro.update(&Keyed::<S::Counter> { packets, key: self.key, weight: PhantomData });
    }

    /// Returns a copy of the sketch and clears it.
    fn take(&mut self) -> S {
        let sketch = self.nitro.sketch().clone();
        self.nitro.sketch_mut().clear_state();
        self.nitro.begin_window();
        sketch
    }
}

impl<S: Linear> Count for Sampled<S> {
    fn packets(&mut self, packets: &[Packet]) {
        self.update(packets);
    }

    fn advance(&mut self, now: Timestamp) {
        self.nitro.advance(now.0);
    }

    fn take_state(&mut self) -> TaskState {
        self.take().into()
    }
}

/// A sketch for each prefix length.
#[derive(Debug)]
struct LevelsCounting<C: Counter> {
    levels: [Sampled<Ranked<CountSketch<C>>>; LEVELS.len()],
}

impl<C: WeightCounter> LevelsCounting<C>
where
    Ranked<CountSketch<C>>: Linear<Counter = C>,
{
    fn new(levels: Levels<C>, spec: &TaskSpec, mode: Mode, seed: impl Fn(usize) -> u64) -> LevelsCounting<C> {
        let mut number = 0;
        let levels = levels.into_levels().map(|sketch| {
            let key = KeyDefinition::Prefix(side(spec), LEVELS[number]);
            number += 1;
            Sampled::new(sketch, key, mode, seed(number))
        });
        LevelsCounting { levels }
    }
}

impl<C: WeightCounter> Count for LevelsCounting<C>
where
    Ranked<CountSketch<C>>: Linear<Counter = C>,
    TaskState: From<Levels<C>>,
{
    fn packets(&mut self, packets: &[Packet]) {
        for level in &mut self.levels {
            level.update(packets);
        }
    }

    fn advance(&mut self, now: Timestamp) {
        for level in &mut self.levels {
            level.nitro.advance(now.0);
        }
    }

    fn take_state(&mut self) -> TaskState {
        Levels::from_levels(self.levels.each_mut().map(Sampled::take)).into()
    }
}

/// Packets whose digests are computed together: 4 KiB of digests.
const GROUP: usize = 256;

/// Computes the digests of the keys of up to [`GROUP`] packets.
#[inline(always)]
fn digests(packets: &[Packet], key: KeyDefinition, hasher: Hasher, digests: &mut [Digest; GROUP]) {
    for (digest, packet) in digests.iter_mut().zip(packets) {
        *digest = hasher.digest(key.of(&packet.key).as_bytes());
    }
}

/// Counts distinct keys.
#[derive(Debug)]
struct DistinctCounting {
    counter: HyperLogLog,
    key: KeyDefinition,
}

impl Count for DistinctCounting {
    fn packets(&mut self, packets: &[Packet]) {
        let mut keys = [Digest::default(); GROUP];
        for group in packets.chunks(GROUP) {
            digests(group, self.key, self.counter.hasher(), &mut keys);
            self.counter.add_batch(&keys[..group.len()]);
        }
    }

    fn take_state(&mut self) -> TaskState {
        let counter = self.counter.clone();
        self.counter.clear();
        TaskState::HyperLogLog(counter)
    }
}

/// Counts distinct peers of each key.
#[derive(Debug)]
struct SpreadCounting {
    spread: Spread<FlowBytes>,
    key: KeyDefinition,
    peer: KeyDefinition,
}

impl Count for SpreadCounting {
    fn packets(&mut self, packets: &[Packet]) {
        let (mut keys, mut peers) = ([Digest::default(); GROUP], [Digest::default(); GROUP]);
        let hasher = self.spread.hasher();
        for group in packets.chunks(GROUP) {
            digests(group, self.key, hasher, &mut keys);
            digests(group, self.peer, hasher, &mut peers);
            let key = self.key;
            let key = |number: usize| key.of(&group[number].key);
            self.spread.add_batch(&keys[..group.len()], &peers[..group.len()], key);
        }
    }

    fn take_state(&mut self) -> TaskState {
        let spread = self.spread.clone();
        self.spread.clear();
        TaskState::Spread(spread)
    }
}
