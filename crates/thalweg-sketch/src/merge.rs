//! Why two sketches cannot be merged.

use thiserror::Error;

use crate::digest::Hasher;
use crate::shape::Shape;

/// The property in which two sketches differ that were to be merged or subtracted.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum MergeError {
    /// Rows or columns.
    #[error("sizes differ: {ours} and {theirs} counters")]
    Shape {
        /// The value of the receiving sketch.
        ours: Shape,
        /// The value of the other sketch.
        theirs: Shape,
    },
    /// The hash seed: the same key has different counters.
    #[error("hash seeds differ: {ours:#x} and {theirs:#x}")]
    Seed {
        /// The value of the receiving sketch.
        ours: u64,
        /// The value of the other sketch.
        theirs: u64,
    },
    /// The number of levels of a UnivMon.
    #[error("numbers of levels differ: {ours} and {theirs}")]
    Levels {
        /// The value of the receiving sketch.
        ours: usize,
        /// The value of the other sketch.
        theirs: usize,
    },
    /// The precision of a distinct counter.
    #[error("precisions differ: 2^{ours} and 2^{theirs} registers")]
    Precision {
        /// The value of the receiving sketch.
        ours: u8,
        /// The value of the other sketch.
        theirs: u8,
    },
}

impl MergeError {
    pub(crate) fn unless_same_shape(ours: Shape, theirs: Shape) -> Result<(), MergeError> {
        if ours == theirs { Ok(()) } else { Err(MergeError::Shape { ours, theirs }) }
    }

    pub(crate) fn unless_same_precision(ours: u8, theirs: u8) -> Result<(), MergeError> {
        if ours == theirs { Ok(()) } else { Err(MergeError::Precision { ours, theirs }) }
    }

    pub(crate) fn unless_same_seed(ours: Hasher, theirs: Hasher) -> Result<(), MergeError> {
        let (ours, theirs) = (ours.seed(), theirs.seed());
        if ours == theirs { Ok(()) } else { Err(MergeError::Seed { ours, theirs }) }
    }
}
