//! Recordings of traffic: time and length of each packet, in one Parquet file (Maji, dissertation, University of Virginia 2018,
//! section 4.2: the vector P).
//!
//! Other tools read it as well:
//!
//! | column | type | contents |
//! |---|---|---|
//! | `time` | timestamp, nanoseconds, UTC | when the packet was captured |
//! | `length` | 32-bit integer | bytes of the IP layer |
//!
//! A packet takes about 3 bytes: bit-packed differences of times, and a dictionary of lengths. A file without its end, after a
//! crash, is not readable. Its name ends in `.part`.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use thalweg_wire::Timestamp;
use thiserror::Error;

/// Packets per row group: 12 MiB before they are encoded.
const ROW_GROUP: usize = 1 << 20;

/// The columns.
const SCHEMA: &str =
    "message packets { required int64 time (TIMESTAMP(NANOS, true)); required int32 length; }";

/// A recorded packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedPacket {
    /// When it was captured.
    pub time: Timestamp,
    /// Bytes of the IP layer.
    pub length: u16,
}

/// Why a recording cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// It cannot be opened or read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// It is not a Parquet file, or damaged.
    #[error("{path}: {source}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: ParquetError,
    },
    /// It has other columns, or values out of range.
    #[error(
        "{path}: expected a column time with nanoseconds since 1970 and a column length of up to 65,535 bytes"
    )]
    Columns {
        /// The file.
        path: PathBuf,
    },
}

/// Writes a recording.
pub struct RecordingWriter {
    path: PathBuf,
    part: PathBuf,
    file: SerializedFileWriter<File>,
    times: Vec<i64>,
    lengths: Vec<i32>,
    packets: u64,
}

impl std::fmt::Debug for RecordingWriter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RecordingWriter").field("path", &self.path).finish_non_exhaustive()
    }
}

impl RecordingWriter {
    /// Begins a recording, which appears under its name when it is finished.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: &Path) -> io::Result<RecordingWriter> {
        let part = part_of(path);
        let schema = parse_message_type(SCHEMA).map_err(io::Error::other)?;
        let time = ColumnPath::from("time");
        let properties = WriterProperties::builder()
            .set_created_by(concat!("thalweg version ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).map_err(io::Error::other)?))
            .set_column_dictionary_enabled(time.clone(), false)
            .set_column_encoding(time, Encoding::DELTA_BINARY_PACKED)
            .build();
        let file = SerializedFileWriter::new(File::create(&part)?, Arc::new(schema), Arc::new(properties))
            .map_err(io::Error::other)?;
        let (times, lengths) = (Vec::with_capacity(ROW_GROUP), Vec::with_capacity(ROW_GROUP));
        Ok(RecordingWriter { path: path.to_owned(), part, file, times, lengths, packets: 0 })
    }

    /// Adds packets in order of time.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn add(&mut self, packets: &[RecordedPacket]) -> io::Result<()> {
        for packet in packets {
            self.times.push(packet.time.0 as i64);
            self.lengths.push(i32::from(packet.length));
            if self.times.len() == ROW_GROUP {
                self.flush()?;
            }
        }
        self.packets += packets.len() as u64;
        Ok(())
    }

    /// Returns the number of packets added.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the bytes written so far. What is not written yet takes at most 16 bytes a packet.
    pub fn bytes(&self) -> u64 {
        self.file.bytes_written() as u64
    }

    /// Finishes the recording: it is durable afterwards.
    ///
    /// # Errors
    /// If it cannot be written. Nothing is left then.
    pub fn finish(mut self) -> io::Result<()> {
        let (path, part) = (self.path.clone(), self.part.clone());
        let written = self.flush().and_then(|()| {
            let file = self.file.into_inner().map_err(io::Error::other)?;
            file.sync_all()?;
            std::fs::rename(&part, &path)?;
            File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
        });
        written.inspect_err(|_| drop(std::fs::remove_file(&part)))
    }

    /// Discards the recording.
    pub fn discard(self) {
        let _ = std::fs::remove_file(&self.part);
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.times.is_empty() {
            return Ok(());
        }
        let write = || -> Result<(), ParquetError> {
            let mut group = self.file.next_row_group()?;
            let mut column = group.next_column()?.ok_or_else(missing)?;
            column.typed::<Int64Type>().write_batch(&self.times, None, None)?;
            column.close()?;
            let mut column = group.next_column()?.ok_or_else(missing)?;
            column.typed::<Int32Type>().write_batch(&self.lengths, None, None)?;
            column.close()?;
            group.close()?;
            Ok(())
        };
        let mut write = write;
        write().map_err(io::Error::other)?;
        self.times.clear();
        self.lengths.clear();
        Ok(())
    }
}

/// Returns the name of an unfinished recording.
pub fn part_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    path.with_file_name(name)
}

fn missing() -> ParquetError {
    ParquetError::General("a column is missing".to_owned())
}

/// Reads a recording, a row group at a time.
pub struct RecordingReader {
    path: PathBuf,
    file: SerializedFileReader<File>,
    next_group: usize,
    times: Vec<i64>,
    lengths: Vec<i32>,
}

impl std::fmt::Debug for RecordingReader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RecordingReader").field("path", &self.path).finish_non_exhaustive()
    }
}

impl RecordingReader {
    /// Opens a recording.
    ///
    /// # Errors
    /// If it cannot be opened, is damaged, or has other columns.
    pub fn open(path: &Path) -> Result<RecordingReader, RecordingError> {
        let io = |source| RecordingError::Io { path: path.to_owned(), source };
        let file = SerializedFileReader::new(File::open(path).map_err(io)?);
        let file = file.map_err(|source| RecordingError::Damaged { path: path.to_owned(), source })?;
        let names = file.metadata().file_metadata().schema_descr().columns().iter();
        let names: Vec<String> = names.map(|column| column.path().string()).collect();
        if names != ["time", "length"] {
            return Err(RecordingError::Columns { path: path.to_owned() });
        }
        let (times, lengths) = (Vec::new(), Vec::new());
        Ok(RecordingReader { path: path.to_owned(), file, next_group: 0, times, lengths })
    }

    /// Returns the number of packets.
    pub fn packets(&self) -> u64 {
        u64::try_from(self.file.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    /// Replaces the contents of `packets` by the next ones, about a million. Returns `false` at the end.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn next(&mut self, packets: &mut Vec<RecordedPacket>) -> Result<bool, RecordingError> {
        packets.clear();
        if self.next_group >= self.file.num_row_groups() {
            return Ok(false);
        }
        self.read_group().map_err(|source| RecordingError::Damaged { path: self.path.clone(), source })?;
        self.next_group += 1;
        let convert = |(time, length): (&i64, &i32)| {
            let time = Timestamp(u64::try_from(*time).ok()?);
            Some(RecordedPacket { time, length: u16::try_from(*length).ok()? })
        };
        packets.extend(self.times.iter().zip(&self.lengths).filter_map(convert));
        match packets.len() == self.times.len() && self.times.len() == self.lengths.len() {
            true => Ok(true),
            false => Err(RecordingError::Columns { path: self.path.clone() }),
        }
    }

    fn read_group(&mut self) -> Result<(), ParquetError> {
        let group = self.file.get_row_group(self.next_group)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        self.times.clear();
        self.lengths.clear();
        let other = || ParquetError::General("expected integers".to_owned());
        let ColumnReader::Int64ColumnReader(mut times) = group.get_column_reader(0)? else {
            return Err(other());
        };
        times.read_records(rows, None, None, &mut self.times)?;
        let ColumnReader::Int32ColumnReader(mut lengths) = group.get_column_reader(1)? else {
            return Err(other());
        };
        lengths.read_records(rows, None, None, &mut self.lengths)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(count: u64) -> Vec<RecordedPacket> {
        let packet = |n: u64| RecordedPacket {
            time: Timestamp(1_700_000_000_000_000_000 + 48_000 * n + n * n % 9_973),
            length: [1_500, 52, 1_500, 576][(n % 4) as usize],
        };
        (0..count).map(packet).collect()
    }

    fn read(path: &Path) -> Result<Vec<RecordedPacket>, RecordingError> {
        let mut reader = RecordingReader::open(path)?;
        let (mut all, mut some) = (Vec::new(), Vec::new());
        while reader.next(&mut some)? {
            all.extend_from_slice(&some);
        }
        assert_eq!(reader.packets(), all.len() as u64);
        Ok(all)
    }

    #[test]
    fn what_was_written_is_read_and_takes_three_bytes_a_packet() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.parquet");
        let packets = packets(ROW_GROUP as u64 + 1_000);
        let mut writer = RecordingWriter::create(&path).unwrap();
        packets.chunks(4_096).for_each(|some| writer.add(some).unwrap());
        assert!(!path.exists() && part_of(&path).exists());
        writer.finish().unwrap();
        assert!(path.exists() && !part_of(&path).exists());
        assert_eq!(read(&path).unwrap(), packets);
        let bytes = std::fs::metadata(&path).unwrap().len();
        assert!(bytes < 3 * packets.len() as u64, "{bytes}");
    }

    #[test]
    fn damage_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.parquet");
        let mut writer = RecordingWriter::create(&path).unwrap();
        writer.add(&packets(50_000)).unwrap();
        writer.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for cut in [0, 10, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let error = read(&path).unwrap_err();
            assert!(error.to_string().contains("p.parquet"), "{error}");
        }
        let error = read(&folder.path().join("none")).unwrap_err();
        assert!(matches!(error, RecordingError::Io { .. }), "{error}");
    }

    #[test]
    fn a_discarded_recording_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = RecordingWriter::create(&folder.path().join("p.parquet")).unwrap();
        writer.add(&packets(10)).unwrap();
        writer.discard();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
