//! Writes a table row by row. A file gets its name when it is complete.
//!
//! **Memory**: the rows of one row group, [`ROWS_PER_GROUP`](super::parquet::ROWS_PER_GROUP) at most.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use super::columns::Row;
use super::{Format, WriteError, csv, parquet};

/// Where tables go.
#[derive(Clone, Copy, Debug)]
pub struct Output<'a> {
    /// The directory, which is created if missing.
    pub folder: &'a Path,
    /// The file format.
    pub format: Format,
}

impl Output<'_> {
    /// Removes the table of rows `R` of an earlier run in all formats, except this run's if there `is_new` one.
    ///
    /// # Errors
    /// If there is one that cannot be removed.
    pub(super) fn remove_old<R: Row>(&self, is_new: bool) -> Result<(), WriteError> {
        for format in Format::ALL.into_iter().filter(|&format| !is_new || format != self.format) {
            let path = path_of::<R>(self.folder, format);
            match fs::remove_file(&path) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(WriteError::File { path, source });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn path_of<R: Row>(folder: &Path, format: Format) -> PathBuf {
    folder.join(R::FILE).with_extension(format.extension())
}

/// A table that is being written. Dropping it removes the unfinished file.
pub struct RowWriter<R: Row> {
    path: PathBuf,
    unfinished: Unfinished,
    encoder: Encoder<R>,
    /// Rows of the next group.
    rows: Vec<R>,
}

/// The file until it is complete.
struct Unfinished(PathBuf);

enum Encoder<R: Row> {
    Parquet(parquet::Writer<R, BufWriter<File>>),
    Csv(csv::Writer<BufWriter<File>>),
}

impl<R: Row> RowWriter<R> {
    /// Creates the file, and its directory if missing.
    ///
    /// # Errors
    /// If either cannot be created.
    pub fn create(output: Output<'_>) -> Result<RowWriter<R>, WriteError> {
        let Output { folder, format } = output;
        fs::create_dir_all(folder)
            .map_err(|source| WriteError::Folder { folder: folder.to_owned(), source })?;
        let path = path_of::<R>(folder, format);
        let unfinished = Unfinished(path.with_added_extension("unfinished"));
        let file =
            File::create(&unfinished.0).map_err(|source| WriteError::File { path: path.clone(), source })?;
        let out = BufWriter::new(file);
        let encoder = match format {
            Format::Parquet => {
                parquet::Writer::new(out).map(Encoder::Parquet).map_err(|error| of_parquet(&path, error))?
            }
            Format::Csv => {
                csv::Writer::new::<R>(out).map(Encoder::Csv).map_err(|error| of_csv(&path, error))?
            }
        };
        Ok(RowWriter { path, unfinished, encoder, rows: Vec::new() })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn push(&mut self, row: R) -> Result<(), WriteError> {
        self.rows.push(row);
        match self.rows.len() < parquet::ROWS_PER_GROUP {
            true => Ok(()),
            false => self.flush(),
        }
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        let written = self.encoder.write(&self.path, &self.rows);
        self.rows.clear();
        written
    }

    /// Adds rows, if none were pushed.
    pub(super) fn write_all(&mut self, rows: &[R]) -> Result<(), WriteError> {
        rows.chunks(parquet::ROWS_PER_GROUP).try_for_each(|group| self.encoder.write(&self.path, group))
    }

    /// Completes the file and returns its path.
    ///
    /// # Errors
    /// If the file cannot be written. An existing file then stays.
    pub fn finish(mut self) -> Result<PathBuf, WriteError> {
        if !self.rows.is_empty() {
            self.flush()?;
        }
        let RowWriter { path, unfinished, encoder, .. } = self;
        match encoder {
            Encoder::Parquet(writer) => writer.close().map_err(|error| of_parquet(&path, error))?,
            Encoder::Csv(writer) => writer.close().map_err(|error| of_csv(&path, error))?,
        }
        match fs::rename(&unfinished.0, &path) {
            Ok(()) => Ok(path),
            Err(source) => Err(WriteError::File { path, source }),
        }
    }
}

impl<R: Row> Encoder<R> {
    fn write(&mut self, path: &Path, rows: &[R]) -> Result<(), WriteError> {
        match self {
            Encoder::Parquet(writer) => writer.group(rows).map_err(|error| of_parquet(path, error)),
            Encoder::Csv(writer) => writer.rows(rows).map_err(|error| of_csv(path, error)),
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // A complete file has its own name, and of an error the first one is reported.
        let _ = fs::remove_file(&self.0);
    }
}

fn of_parquet(path: &Path, source: ::parquet::errors::ParquetError) -> WriteError {
    WriteError::Parquet { path: path.to_owned(), source }
}

fn of_csv(path: &Path, source: ::csv::Error) -> WriteError {
    WriteError::Csv { path: path.to_owned(), source }
}
