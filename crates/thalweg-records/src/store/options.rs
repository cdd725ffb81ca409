//! What a store is told.

use std::path::PathBuf;

use thalweg_wire::Nanos;

use super::StoreError;

/// Seconds of an hour.
pub(super) const HOUR: Nanos = Nanos::from_secs(3600);

/// What a store is told.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Where the datasets' directories are, and the spool.
    pub directory: PathBuf,
    /// Begins the names of this store's files. Stores that write into one directory at the same time must have different names.
    pub name: String,
    /// What is older than this has reached the disk (`fdatasync`) and survives a crash, as long as the disk keeps up.
    pub loss_bound: Nanos,
    /// A file has the records received in so long a time. Must divide the hour, so that no file is of two hours.
    pub file_span: Nanos,
    /// A file has no more rows, give or take a page.
    pub file_rows: u64,
    /// A file has no more bytes, give or take a page of each column.
    pub file_bytes: u64,
    /// Rows of a row group. Dictionaries are of a row group; it is in memory, encoded, until it is full.
    pub row_group_rows: usize,
    /// zstd level.
    pub compression_level: i32,
    /// Rows that may wait for the disk, in memory; what comes when so many do is lost, and counted.
    pub queue_rows: usize,
    /// Bytes that the spool may have; what comes when it is so large is lost, and counted.
    pub spool_bytes: u64,
    /// Files are removed when all their records are this old.
    pub keep: Option<Nanos>,
    /// The oldest files are removed while all files of the dataset have more bytes.
    pub keep_bytes: Option<u64>,
}

impl StoreOptions {
    /// The defaults, for a directory.
    pub fn new(directory: impl Into<PathBuf>) -> StoreOptions {
        StoreOptions {
            directory: directory.into(),
            name: "collect".to_owned(),
            loss_bound: Nanos::from_secs(1),
            // As long as nfcapd's files by default: what is queried is at most so far behind.
            file_span: Nanos::from_secs(300),
            file_rows: 1 << 24,
            file_bytes: 512 << 20,
            row_group_rows: 1 << 20,
            compression_level: 1,
            queue_rows: 1 << 20,
            spool_bytes: 8 << 30,
            keep: None,
            keep_bytes: None,
        }
    }

    pub(super) fn check(&self) -> Result<(), StoreError> {
        let wrong = |what: &'static str| Err(StoreError::Options { what });
        if self.name.is_empty() || !self.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            return wrong("name: expected letters, digits and underscores");
        }
        if self.loss_bound == Nanos::ZERO {
            return wrong("loss_bound: expected more than nothing");
        }
        if self.file_span == Nanos::ZERO || !HOUR.0.is_multiple_of(self.file_span.0) {
            return wrong("file_span: expected a part of an hour that divides it");
        }
        if self.file_rows == 0 || self.row_group_rows == 0 || self.queue_rows == 0 {
            return wrong("file_rows, row_group_rows, queue_rows: expected at least 1");
        }
        if self.file_bytes == 0 || self.spool_bytes == 0 {
            return wrong("file_bytes, spool_bytes: expected at least 1");
        }
        if !(1..=22).contains(&self.compression_level) {
            return wrong("compression_level: expected zstd's 1 to 22");
        }
        Ok(())
    }
}
