//! Errors of a ranking.

use crate::read::ReadError;

/// Why a ranking failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopError {
    /// A file of records cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Too many groups, or too many records of one key, for the memory limit. An engine that uses the disk may succeed.
    #[error("more than {groups} groups or records do not fit in {memory_bytes} bytes of memory")]
    Memory {
        /// Number of groups or records at the limit.
        groups: u64,
        /// The memory limit.
        memory_bytes: u64,
    },
    /// The records have too many observation points.
    #[error("more than {0} observation points; expected fewer routers, domains and directions")]
    ObservationPoints(usize),
    /// An option is out of range.
    #[error("{option}: expected {expected}, found {found}")]
    Option {
        /// Name of the option.
        option: &'static str,
        /// Accepted values.
        expected: &'static str,
        /// Value that was given.
        found: String,
    },
    /// The progress callback stopped the ranking.
    #[error("interrupted")]
    Interrupted,
}
