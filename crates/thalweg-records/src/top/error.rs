//! What can go wrong in a ranking.

use crate::read::ReadError;

/// Why there is no ranking.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopError {
    /// A file of records cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There are more groups than memory was given for; an engine that goes to disk may have them.
    #[error("more than {groups} groups so far, which is what {memory_bytes} bytes of memory hold")]
    Memory {
        /// How many groups there were when it was too much.
        groups: u64,
        /// The memory given.
        memory_bytes: u64,
    },
    /// A parameter out of range.
    #[error("{option}: expected {expected}, found {found}")]
    Option {
        /// Its name.
        option: &'static str,
        /// Its range.
        expected: &'static str,
        /// What was given.
        found: String,
    },
    /// The caller's progress function said stop.
    #[error("interrupted")]
    Interrupted,
}
