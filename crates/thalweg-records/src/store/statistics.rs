//! What became of the records.

/// What became of the records since the store was opened: `records` + `recovered` = `queued` + `written` + `in_spool` + all
/// of `lost`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Records appended.
    pub records: u64,
    /// Records that the spool of an earlier run held.
    pub recovered: u64,
    /// Records in memory, not in the spool yet.
    pub queued: u64,
    /// Records in the spool and in no file yet.
    pub in_spool: u64,
    /// Bytes of the spool.
    pub spool_bytes: u64,
    /// Spool segments whose files could not be written yet: each is tried again.
    pub waiting_segments: u64,
    /// Records in files.
    pub written: u64,
    /// Files written.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Records lost, by reason.
    pub lost: Lost,
    /// Values above the range of Parquet's `INT64`, written as its largest.
    pub saturated: u64,
    /// Files that retention removed.
    pub removed_files: u64,
    /// Bytes of these files.
    pub removed_bytes: u64,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// Errors so far.
    pub errors: u64,
}

/// Records lost, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// The disk was slower than the records came: the queue was full.
    pub queue_full: u64,
    /// The spool had reached its limit.
    pub spool_full: u64,
    /// The spool could not be written: the disk was full, or failed.
    pub spool_failed: u64,
    /// A spool segment could not be read back when its file had failed.
    pub spool_damaged: u64,
}

impl Lost {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.queue_full + self.spool_full + self.spool_failed + self.spool_damaged
    }
}

/// What an earlier run had left in the spool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Spool segments found.
    pub segments: u64,
    /// Of these, segments whose file was complete already: the crash came before they were removed.
    pub already_written: u64,
    /// Of these, segments that could not be turned into files now, and are tried again.
    pub waiting: u64,
    /// Files written from them.
    pub files: u64,
    /// Records in these files.
    pub records: u64,
    /// Segments whose last frame was torn or damaged, and cut.
    pub torn: u64,
    /// Bytes so cut.
    pub torn_bytes: u64,
    /// Unfinished files removed: their records are in segments.
    pub unfinished_files: u64,
    /// Segments written with another list of columns: they are left where they are.
    pub foreign: u64,
}
