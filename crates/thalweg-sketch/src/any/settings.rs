//! Kind, shape and mode of a sketch.

use super::error::AnyError;
use super::typed::{Typed, new_rows, new_univmon};
use crate::count_min::CountMin;
use crate::count_sketch::CountSketch;
use crate::counters::Counter;
use crate::digest::Hasher;
use crate::k_ary::KAry;
use crate::nitro::{Mode, Probability, table_bytes};
use crate::shape::Shape;
use crate::state::{AnyState, KeyBytes, Kind, Linear};
use crate::univmon::{UnivMon, UnivMonShape};

/// What a new sketch is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The kind: one with counters.
    pub kind: Kind,
    /// Rows and columns; of a UnivMon those of each level.
    pub size: Size,
    /// The levels of a UnivMon, 1 to 17; other kinds have none.
    pub levels: usize,
    /// The largest keys to track, or none; of a UnivMon for each level.
    pub top_k: usize,
    /// Bits of a counter: 32 or 64.
    pub counter_bits: u32,
    /// The seed of the hash: equal in sketches to be merged, and secret where traffic may be hostile.
    pub hash_seed: u64,
    /// The seed of the draws.
    pub sampler_seed: u64,
    /// How p is chosen.
    pub mode: Mode,
}

/// The size of a sketch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// Rows and counters in each.
    Shape {
        /// The number of rows, 1 to 8.
        rows: usize,
        /// The counters of a row, a power of two.
        width: usize,
    },
    /// The widest shape for a memory; in a UnivMon for counters and candidates together, and `top_k` is not used.
    Memory {
        /// The memory in bytes.
        bytes: u64,
        /// The number of rows.
        rows: usize,
    },
    /// The smallest shape for a guarantee: an error of at most `eps` times L1 (Count-Min) or L2, with probability 1 -
    /// `delta`.
    Guarantee {
        /// The error, as a share of the norm.
        eps: f64,
        /// The probability of a larger one.
        delta: f64,
    },
}

/// A Count Sketch of 5 rows of 1,024 counters with the 100 largest keys, without sampling.
impl Default for Settings {
    fn default() -> Settings {
        Settings {
            kind: Kind::CountSketch,
            size: Size::Shape { rows: 5, width: 1024 },
            levels: 16,
            top_k: 100,
            counter_bits: 32,
            hash_seed: 0,
            sampler_seed: 1,
            mode: Mode::Fixed(Probability::ONE),
        }
    }
}

impl Settings {
    pub(super) fn build(&self) -> Result<Box<dyn Typed>, AnyError> {
        prepare_tables(self.mode);
        match self.counter_bits {
            32 => self.with_counter::<i32>(),
            64 => self.with_counter::<i64>(),
            bits => Err(AnyError::CounterBits { bits }),
        }
    }

    fn with_counter<C: Counter + Send + Sync + 'static>(&self) -> Result<Box<dyn Typed>, AnyError>
    where
        AnyState<KeyBytes>: From<Linear<KeyBytes, C>>,
    {
        let hasher = Hasher::new(self.hash_seed);
        let rows = |guarantee: fn(f64, f64) -> _| match self.size {
            Size::Shape { rows, width } => Shape::new(rows, width),
            Size::Memory { bytes, rows } => Shape::for_memory(bytes, rows, C::BYTES),
            Size::Guarantee { eps, delta } => guarantee(eps, delta),
        };
        Ok(match self.kind {
            Kind::CountMin => new_rows(CountMin::<C>::new(rows(CountMin::<C>::shape_for)?, hasher), self),
            Kind::CountSketch => {
                new_rows(CountSketch::<C>::new(rows(CountSketch::<C>::shape_for)?, hasher), self)
            }
            Kind::KAry => new_rows(KAry::<C>::new(rows(KAry::<C>::shape_for)?, hasher), self),
            Kind::UnivMon => {
                let sketch = UnivMon::<KeyBytes, C>::new(self.univmon_shape::<C>()?, hasher);
                new_univmon(sketch, self)
            }
            kind @ (Kind::HyperLogLog | Kind::Spread) => return Err(AnyError::NotLinear { kind }),
        })
    }

    fn univmon_shape<C: Counter>(&self) -> Result<UnivMonShape, AnyError> {
        if self.top_k == 0 {
            return Err(AnyError::NoCandidates);
        }
        Ok(match self.size {
            Size::Shape { rows, width } => {
                UnivMonShape::new(self.levels, Shape::new(rows, width)?, self.top_k)?
            }
            Size::Memory { bytes, rows } => {
                UnivMonShape::for_memory::<KeyBytes, C>(bytes, self.levels, rows)?
            }
            Size::Guarantee { eps, delta } => {
                UnivMonShape::for_guarantee(eps, delta, self.levels, self.top_k)?
            }
        })
    }
}

/// Builds the tables of all probabilities that a mode may use, so that no update has to.
pub(super) fn prepare_tables(mode: Mode) {
    table_bytes(match mode {
        Mode::Fixed(probability) => probability,
        Mode::AlwaysLineRate(line_rate) => line_rate.min_probability,
        Mode::AlwaysCorrect(target) => target.min_probability,
    });
}
