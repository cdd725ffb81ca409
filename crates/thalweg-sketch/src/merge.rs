//! Why two sketches cannot be merged.

use thiserror::Error;

use crate::digest::Hasher;
use crate::shape::Shape;

/// The property in which two sketches differ that were to be merged or subtracted.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum MergeError {
    /// Rows or columns.
    #[error("shapes differ: {mine} and {theirs}")]
    Shape {
        /// The value of the receiving sketch.
        mine: Shape,
        /// The value of the other sketch.
        theirs: Shape,
    },
    /// The hash seed: the same key has different counters.
    #[error("hash seeds differ: {mine:#x} and {theirs:#x}")]
    Seed {
        /// The value of the receiving sketch.
        mine: u64,
        /// The value of the other sketch.
        theirs: u64,
    },
    /// The number of levels of a UnivMon.
    #[error("numbers of levels differ: {mine} and {theirs}")]
    Levels {
        /// The value of the receiving sketch.
        mine: usize,
        /// The value of the other sketch.
        theirs: usize,
    },
    /// The precision of a distinct counter.
    #[error("precisions differ: 2^{mine} and 2^{theirs} registers")]
    Precision {
        /// The value of the receiving sketch.
        mine: u8,
        /// The value of the other sketch.
        theirs: u8,
    },
}

impl MergeError {
    pub(crate) fn unless_same_shape(mine: Shape, theirs: Shape) -> Result<(), MergeError> {
        if mine == theirs { Ok(()) } else { Err(MergeError::Shape { mine, theirs }) }
    }

    pub(crate) fn unless_same_precision(mine: u8, theirs: u8) -> Result<(), MergeError> {
        if mine == theirs { Ok(()) } else { Err(MergeError::Precision { mine, theirs }) }
    }

    pub(crate) fn unless_same_seed(mine: Hasher, theirs: Hasher) -> Result<(), MergeError> {
        let (mine, theirs) = (mine.seed(), theirs.seed());
        if mine == theirs { Ok(()) } else { Err(MergeError::Seed { mine, theirs }) }
    }
}
