//! Options of a store.

use std::path::PathBuf;

use thalweg_wire::Nanos;

use super::StoreError;

/// One hour.
pub(super) const HOUR: Nanos = Nanos::from_secs(3600);

/// Options of a store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Directory of the datasets and the spool.
    pub directory: PathBuf,
    /// Prefix of this store's file names. Stores that share a directory need different names.
    pub name: String,
    /// Records older than this are on the disk (`fdatasync`) and survive a crash, as long as the disk keeps up.
    pub loss_bound: Nanos,
    /// Time span of a file, by reception. Must divide an hour, so that a file belongs to one hour.
    pub file_span: Nanos,
    /// Maximum number of rows per file, exceeded by at most a page.
    pub file_rows: u64,
    /// Maximum number of bytes per file, exceeded by at most a page of each column.
    pub file_bytes: u64,
    /// Rows per row group. A row group has its own dictionaries, and is kept in memory, encoded, until it is full.
    pub row_group_rows: usize,
    /// zstd level.
    pub compression_level: i32,
    /// Queue length in rows; when the queue is full, rows are lost and counted.
    pub queue_rows: usize,
    /// Maximum size of the spool in bytes; when it is full, rows are lost and counted.
    pub spool_bytes: u64,
    /// Files are removed when all their records are older than this.
    pub keep: Option<Nanos>,
    /// The oldest files are removed while the dataset's files exceed this number of bytes.
    pub keep_bytes: Option<u64>,
}

impl StoreOptions {
    /// Returns the default options.
    pub fn new(directory: impl Into<PathBuf>) -> StoreOptions {
        StoreOptions {
            directory: directory.into(),
            name: "collect".to_owned(),
            loss_bound: Nanos::from_secs(1),
            // As nfcapd's default; queries lag behind by at most this.
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
            return wrong("loss_bound: expected more than 0");
        }
        if self.file_span == Nanos::ZERO || !HOUR.0.is_multiple_of(self.file_span.0) {
            return wrong("file_span: expected a duration that divides an hour");
        }
        if self.file_rows == 0 || self.row_group_rows == 0 || self.queue_rows == 0 {
            return wrong("file_rows, row_group_rows, queue_rows: expected at least 1");
        }
        if self.file_bytes == 0 || self.spool_bytes == 0 {
            return wrong("file_bytes, spool_bytes: expected at least 1");
        }
        if !(1..=22).contains(&self.compression_level) {
            return wrong("compression_level: expected a zstd level, 1 to 22");
        }
        Ok(())
    }
}
