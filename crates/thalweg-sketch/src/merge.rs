//! Why two summaries cannot be put together.

use thiserror::Error;

use crate::digest::Hasher;
use crate::shape::Shape;

/// What differs between two summaries that were to be merged or subtracted.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum MergeError {
    /// Rows or columns.
    #[error("shapes differ: {mine} here, {theirs} there")]
    Shape {
        /// Of the one that was to take in the other.
        mine: Shape,
        /// Of the other.
        theirs: Shape,
    },
    /// Seed of the hash: the same key is in other places.
    #[error("seeds of the hash differ: {mine:#x} here, {theirs:#x} there")]
    Seed {
        /// Of the one that was to take in the other.
        mine: u64,
        /// Of the other.
        theirs: u64,
    },
    /// Levels of a UnivMon.
    #[error("levels differ: {mine} here, {theirs} there")]
    Levels {
        /// Of the one that was to take in the other.
        mine: usize,
        /// Of the other.
        theirs: usize,
    },
    /// Precision of a distinct counter.
    #[error("precisions differ: 2^{mine} registers here, 2^{theirs} there")]
    Precision {
        /// Of the one that was to take in the other.
        mine: u8,
        /// Of the other.
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
