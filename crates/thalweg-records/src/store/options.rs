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
    /// Records are synced to disk (`fdatasync`) within this time and survive a crash, as long as the disk keeps up.
    pub sync_interval: Nanos,
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
            sync_interval: Nanos::from_secs(1),
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

    /// Returns the path of the store's folder in the spool: `DIR/spool/NAME`.
    pub(crate) fn spool(&self) -> PathBuf {
        self.directory.join("spool").join(&self.name)
    }

    pub(super) fn check(&self) -> Result<(), StoreError> {
        let invalid = |name, value, expected| Err(StoreError::Options { name, value, expected });
        if self.name.is_empty() || !self.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            let value = format!("{:?}", self.name);
            return invalid("name", value, "letters, digits and underscores");
        }
        if self.sync_interval == Nanos::ZERO {
            return invalid("sync interval", self.sync_interval.to_string(), "a time above zero");
        }
        if self.file_span == Nanos::ZERO || !HOUR.0.is_multiple_of(self.file_span.0) {
            let expected = "a time that divides one hour, such as 30s, 1min, 5min, 15min or 1h";
            return invalid("file span", self.file_span.to_string(), expected);
        }
        let sizes = [
            ("file rows", self.file_rows),
            ("file bytes", self.file_bytes),
            ("row group rows", self.row_group_rows as u64),
            ("queue rows", self.queue_rows as u64),
            ("spool bytes", self.spool_bytes),
        ];
        if let Some((name, size)) = sizes.into_iter().find(|&(_, size)| size == 0) {
            return invalid(name, size.to_string(), "at least 1");
        }
        if !(1..=22).contains(&self.compression_level) {
            return invalid("compression level", self.compression_level.to_string(), "a zstd level, 1 to 22");
        }
        Ok(())
    }
}
