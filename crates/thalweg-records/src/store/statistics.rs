//! Counters of a store.

use std::path::PathBuf;

/// Counters of records since the store was opened: `records` + `recovered` = `queued` + `written` + `in_spool` + all of
/// `lost`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Records appended.
    pub records: u64,
    /// Records found in the spool of an earlier run.
    pub recovered: u64,
    /// Records in memory, not yet in the spool.
    pub queued: u64,
    /// Records in the spool, not yet in a file.
    pub in_spool: u64,
    /// Size of the spool in bytes.
    pub spool_bytes: u64,
    /// Segments whose files could not be written yet; they are retried.
    pub pending_segments: u64,
    /// Segments of an earlier run whose layout is unknown, or which are damaged. They stay in the spool, and what was not read of them is
    /// not counted as records.
    pub kept_segments: u64,
    /// Records in files.
    pub written: u64,
    /// Files written.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Records lost, by reason.
    pub lost: Lost,
    /// Values above the maximum of Parquet's `INT64`, which were clamped to it.
    pub saturated: u64,
    /// Files removed by retention.
    pub removed_files: u64,
    /// Bytes of these files.
    pub removed_bytes: u64,
    /// The last error.
    pub last_error: Option<String>,
    /// Number of errors.
    pub errors: u64,
}

/// Records lost, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// The queue was full: the disk was too slow.
    pub queue_full: u64,
    /// The spool was full.
    pub spool_full: u64,
    /// The spool could not be written: the disk was full or failed.
    pub spool_failed: u64,
    /// A segment could not be read back after its file had failed.
    pub spool_damaged: u64,
}

impl Lost {
    /// Returns the sum of all reasons.
    pub fn total(&self) -> u64 {
        self.queue_full + self.spool_full + self.spool_failed + self.spool_damaged
    }
}

/// What was recovered from the spool of an earlier run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Spool segments found.
    pub segments: u64,
    /// Segments whose file was already complete: the crash preceded their removal.
    pub already_written: u64,
    /// Segments that could not be converted yet; they are retried.
    pub pending: u64,
    /// Files converted from segments.
    pub files: u64,
    /// Records in these files.
    pub records: u64,
    /// Segments that ended in an incomplete block.
    pub torn: u64,
    /// Bytes discarded from these.
    pub torn_bytes: u64,
    /// Unfinished files that were removed; their records are in segments.
    pub unfinished_files: u64,
    /// Segments whose layout is unknown, or which are damaged; they stay in the spool.
    pub kept: Vec<KeptSegment>,
}

/// A segment that was not read, or not as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptSegment {
    /// Its path.
    pub path: PathBuf,
    /// Why it is kept.
    pub reason: String,
}
