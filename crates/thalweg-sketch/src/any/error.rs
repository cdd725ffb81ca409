//! Why a sketch cannot be made, updated, queried or combined.

use thiserror::Error;

use crate::shape::ShapeError;
use crate::state::{CombineError, KeyBytes, Kind, StateError};
use crate::top_k::TopK;

/// A request that a sketch chosen at run time refuses; nothing has changed then.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum AnyError {
    /// The shape.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The length of keys.
    #[error("keys of {key_bytes} bytes: expected 1 to {}", KeyBytes::MAX_LENGTH)]
    KeyBytes {
        /// The length.
        key_bytes: usize,
    },
    /// The size of a counter.
    #[error("counters of {bits} bits: expected 32 or 64")]
    CounterBits {
        /// The size.
        bits: u32,
    },
    /// A UnivMon without candidates answers nothing.
    #[error("a UnivMon that tracks no keys: expected at least 1 for each level")]
    NoCandidates,
    /// More candidates than any sketch tracks.
    #[error("{top_k} largest keys: expected at most {}", TopK::<KeyBytes>::MAX_K)]
    TopK {
        /// The number.
        top_k: usize,
    },
    /// A field of the mode that is out of range.
    #[error("{field} = {value}: expected {expected}")]
    Mode {
        /// The field.
        field: &'static str,
        /// Its value.
        value: f64,
        /// What it may be.
        expected: &'static str,
    },
    /// The system does not give that much memory.
    #[error("no memory for a sketch of {bytes} bytes")]
    OutOfMemory {
        /// The memory of counters and candidates.
        bytes: u64,
    },
    /// A batch that ends within a key.
    #[error("{bytes} bytes are not a whole number of keys of {key_bytes} bytes")]
    PartOfAKey {
        /// The length of the batch.
        bytes: usize,
        /// The length of a key.
        key_bytes: usize,
    },
    /// More or fewer weights than keys.
    #[error("{weights} weights for {keys} keys")]
    Weights {
        /// The number of weights.
        weights: usize,
        /// The number of keys.
        keys: usize,
    },
    /// A question that this kind of sketch does not answer.
    #[error("a {kind} does not estimate {question}")]
    Unanswered {
        /// The kind.
        kind: Kind,
        /// What was asked for.
        question: &'static str,
    },
    /// A kind without counters.
    #[error("a {kind} has no counters to sample: expected a Count-Min, Count Sketch, K-ary or UnivMon")]
    NotLinear {
        /// The kind.
        kind: Kind,
    },
    /// A saved state that cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// Two sketches that cannot be combined.
    #[error("{0}")]
    Combine(CombineError),
}
