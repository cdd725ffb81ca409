//! Writes records to one Parquet file per hour of reception, with the collector's layout:
//! `DIR/flows/date=2014-06-19/hour=13/synth-20140619T130000.parquet`.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use thalweg_wire::Timestamp;
use thalweg_wire::flow_export::RecordBatch;

use thalweg_records::schema::Dataset;
use thalweg_records::store::parquet::FileWriter;

const HOUR_US: i64 = 3_600_000_000;

/// Rows per row group, and zstd level: the store's defaults.
const ROW_GROUP_ROWS: usize = 1 << 20;
const COMPRESSION_LEVEL: i32 = 1;

/// Writes rows in order of reception. A file gets its final name when it is complete.
pub struct HourFiles {
    directory: PathBuf,
    open: Option<Open>,
    /// The rows of one hour of a batch that spans several.
    part: RecordBatch,
    files: u64,
    bytes: u64,
}

struct Open {
    hour: i64,
    part: PathBuf,
    path: PathBuf,
    writer: FileWriter<RecordBatch, File>,
}

impl HourFiles {
    /// Writes files below `directory`, which is created if missing.
    pub fn new(directory: impl Into<PathBuf>) -> HourFiles {
        HourFiles {
            directory: directory.into(),
            open: None,
            part: RecordBatch::default(),
            files: 0,
            bytes: 0,
        }
    }

    /// Adds rows.
    ///
    /// # Errors
    /// If a file or directory cannot be created or written.
    pub fn push(&mut self, rows: &RecordBatch) -> io::Result<()> {
        let hour_of = |row: usize| rows.received_us[row].div_euclid(HOUR_US);
        let mut from = 0;
        while from < rows.len() {
            let hour = hour_of(from);
            let to = from + rows.received_us[from..].partition_point(|&us| us.div_euclid(HOUR_US) <= hour);
            if (from, to) == (0, rows.len()) {
                return self.writer(hour)?.push(rows);
            }
            let mut part = std::mem::take(&mut self.part);
            part.clear();
            part.append_rows(rows, from..to);
            self.writer(hour)?.push(&part)?;
            self.part = part;
            from = to;
        }
        Ok(())
    }

    /// Completes the last file. Returns the number of files and their total bytes.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(mut self) -> io::Result<(u64, u64)> {
        self.close()?;
        Ok((self.files, self.bytes))
    }

    fn writer(&mut self, hour: i64) -> io::Result<&mut FileWriter<RecordBatch, File>> {
        if self.open.as_ref().is_some_and(|open| open.hour != hour) {
            self.close()?;
        }
        let open = match self.open.take() {
            Some(open) => open,
            None => self.create(hour)?,
        };
        Ok(&mut self.open.insert(open).writer)
    }

    fn create(&self, hour: i64) -> io::Result<Open> {
        let time = Timestamp((hour * HOUR_US).max(0) as u64 * 1_000).to_string();
        let (date, hour_of_day) = (&time[..10], &time[11..13]);
        let directory = self.directory.join(format!("flows/date={date}/hour={hour_of_day}"));
        fs::create_dir_all(&directory).map_err(with_path(&directory))?;
        let name = format!("synth-{}T{hour_of_day}0000.parquet", date.replace('-', ""));
        let part = directory.join(format!(".{name}.part"));
        let file = File::create(&part).map_err(with_path(&part))?;
        let writer = FileWriter::new(file, ROW_GROUP_ROWS, COMPRESSION_LEVEL)?;
        Ok(Open { hour, part, path: directory.join(name), writer })
    }

    fn close(&mut self) -> io::Result<()> {
        let Some(Open { part, path, writer, .. }) = self.open.take() else { return Ok(()) };
        let (file, _) = writer.finish().map_err(with_path(&part))?;
        self.bytes += file.metadata()?.len();
        self.files += 1;
        fs::rename(&part, &path).map_err(with_path(&path))
    }
}

impl Drop for HourFiles {
    /// Removes a file that is not complete.
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            // The error that led here is the one to report.
            let _ = fs::remove_file(open.part);
        }
    }
}

/// Adds the path to an error.
fn with_path(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hour_of_reception_becomes_a_complete_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut files = HourFiles::new(directory.path());
        let mut rows = RecordBatch::default();
        rows.resize(3);
        let new_year_us = 946_684_800_000_000;
        rows.received_us = vec![new_year_us - 1, new_year_us, new_year_us + HOUR_US - 1];
        files.push(&rows).unwrap();
        rows.received_us = vec![new_year_us + HOUR_US; 3];
        files.push(&rows).unwrap();
        assert_eq!(files.finish().unwrap().0, 3);
        for (path, rows) in [
            ("flows/date=1999-12-31/hour=23/synth-19991231T230000.parquet", 1),
            ("flows/date=2000-01-01/hour=00/synth-20000101T000000.parquet", 2),
            ("flows/date=2000-01-01/hour=01/synth-20000101T010000.parquet", 3),
        ] {
            use parquet::file::reader::{FileReader, SerializedFileReader};
            let file = SerializedFileReader::new(File::open(directory.path().join(path)).unwrap()).unwrap();
            assert_eq!(file.metadata().file_metadata().num_rows(), rows, "{path}");
        }
    }
}
