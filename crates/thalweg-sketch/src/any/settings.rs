//! Kind, shape and mode of a sketch.

use super::error::AnyError;
use super::typed::{Typed, new_rows, new_univmon};
use crate::count_min::CountMin;
use crate::count_sketch::CountSketch;
use crate::counters::Counter;
use crate::digest::Hasher;
use crate::k_ary::KAry;
use crate::nitro::{LineRate, Mode, Probability, Target, table_bytes};
use crate::shape::{Shape, ShapeError};
use crate::state::{AnyState, KeyBytes, Kind, Linear};
use crate::top_k::TopK;
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
        check_mode(self.mode)?;
        if self.top_k > TopK::<KeyBytes>::MAX_K {
            return Err(AnyError::TopK { top_k: self.top_k });
        }
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
        let rows = |guarantee: fn(f64, f64) -> Result<Shape, ShapeError>| {
            let shape = match self.size {
                Size::Shape { rows, width } => Shape::new(rows, width),
                Size::Memory { bytes, rows } => Shape::for_memory(bytes, rows, C::BYTES),
                Size::Guarantee { eps, delta } => guarantee(eps, delta),
            }?;
            let candidates = if self.top_k == 0 { 0 } else { TopK::<KeyBytes>::bytes_for(self.top_k) };
            check_memory(shape.bytes(C::BYTES) + candidates)?;
            Ok::<Shape, AnyError>(shape)
        };
        Ok(match self.kind {
            Kind::CountMin => new_rows(CountMin::<C>::new(rows(CountMin::<C>::shape_for)?, hasher), self),
            Kind::CountSketch => {
                new_rows(CountSketch::<C>::new(rows(CountSketch::<C>::shape_for)?, hasher), self)
            }
            Kind::KAry => new_rows(KAry::<C>::new(rows(KAry::<C>::shape_for)?, hasher), self),
            Kind::UnivMon => {
                let shape = self.univmon_shape::<C>()?;
                check_memory(shape.bytes::<KeyBytes, C>())?;
                let sketch = UnivMon::<KeyBytes, C>::new(shape, hasher);
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

/// Asks the system for memory and gives it back, because the allocations of a sketch end the process where there is none.
fn check_memory(bytes: u64) -> Result<(), AnyError> {
    let fits = usize::try_from(bytes).is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
    if fits { Ok(()) } else { Err(AnyError::OutOfMemory { bytes }) }
}

/// Returns an error if a field of a mode is out of range.
pub(super) fn check_mode(mode: Mode) -> Result<(), AnyError> {
    let check = |field, value: f64, is_valid: bool, expected| {
        if is_valid { Ok(()) } else { Err(AnyError::Mode { field, value, expected }) }
    };
    let is_time = |ns: f64| ns > 0.0 && ns.is_finite();
    match mode {
        Mode::Fixed(_) => Ok(()),
        Mode::AlwaysLineRate(LineRate { epoch_ns, share, row_ns, sampled_row_ns, .. }) => {
            check("epoch_ns", epoch_ns as f64, epoch_ns > 0, "at least 1")?;
            check("share", share, share > 0.0 && share <= 1.0, "more than 0, at most 1")?;
            check("row_ns", row_ns, is_time(row_ns), "a time above 0")?;
            check("sampled_row_ns", sampled_row_ns, is_time(sampled_row_ns), "a time above 0")
        }
        Mode::AlwaysCorrect(Target { eps, .. }) => {
            check("the error of AlwaysCorrect", eps, eps > 0.0 && eps.is_finite(), "a number above 0")
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_no_system_has_is_an_error() {
        assert_eq!(check_memory(1 << 20), Ok(()));
        for bytes in [1 << 60, u64::MAX] {
            assert_eq!(check_memory(bytes), Err(AnyError::OutOfMemory { bytes }));
        }
    }
}
