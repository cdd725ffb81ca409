//! Files of one dataset: creation, publication, and conversion from segments.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::schema::Dataset;

use super::StoreOptions;
use super::layout::Stem;
use super::parquet::{FileWriter, publish, sync_directory, temporary_path};
use super::spool::Reader;

/// Paths of one dataset's files and segments.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    /// `DIR/flows`
    pub(super) dataset: PathBuf,
    /// `DIR/spool/NAME/flows`
    pub(super) spool: PathBuf,
    row_group_rows: usize,
    compression_level: i32,
}

impl Paths {
    pub(crate) fn new<D: Dataset>(options: &StoreOptions) -> Paths {
        Paths {
            dataset: options.directory.join(D::NAME),
            spool: options.spool().join(D::NAME),
            row_group_rows: options.row_group_rows,
            compression_level: options.compression_level,
        }
    }

    pub(super) fn segment(&self, stem: &Stem) -> PathBuf {
        self.spool.join(format!("{stem}.spool"))
    }

    pub(super) fn file(&self, stem: &Stem) -> PathBuf {
        self.dataset.join(stem.file())
    }
}

/// A file under its temporary name. Removed on drop unless [`publish`](Unpublished::publish) was called.
pub(crate) struct Unpublished<D: Dataset> {
    writer: Option<FileWriter<D, File>>,
    part: PathBuf,
    path: PathBuf,
}

impl<D: Dataset> Unpublished<D> {
    pub(crate) fn create(paths: &Paths, stem: &Stem) -> io::Result<Unpublished<D>> {
        let path = paths.file(stem);
        let hour = path.parent().unwrap_or(&paths.dataset);
        if !hour.is_dir() {
            make_directories(&paths.dataset, hour)?;
        }
        let part = temporary_path(&path);
        let writer = FileWriter::new(File::create(&part)?, paths.row_group_rows, paths.compression_level)?;
        Ok(Unpublished { writer: Some(writer), part, path })
    }

    pub(crate) fn writer(&mut self) -> &mut FileWriter<D, File> {
        self.writer.as_mut().expect("the writer exists until the file is published")
    }

    /// Completes the file and renames it.
    pub(crate) fn publish(mut self) -> io::Result<Published> {
        let writer = self.writer.take().expect("the writer exists until the file is published");
        let (rows, path) = (writer.rows(), self.path.clone());
        let (file, saturated) = writer.finish()?;
        publish(&file, &self.part, &path)?;
        Ok(Published { rows, bytes: file.metadata()?.len(), saturated, path })
    }
}

impl<D: Dataset> Drop for Unpublished<D> {
    fn drop(&mut self) {
        // Does nothing after the rename.
        let _ = fs::remove_file(&self.part);
    }
}

/// A completed file.
pub(crate) struct Published {
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) saturated: u64,
    pub(crate) path: PathBuf,
}

/// Creates a partition's directories durably.
fn make_directories(dataset: &Path, hour: &Path) -> io::Result<()> {
    fs::create_dir_all(hour)?;
    sync_directory(dataset)?;
    sync_directory(hour.parent().unwrap_or(dataset))
}

/// A conversion of a segment to a file, block by block.
pub(super) struct Conversion<D: Dataset> {
    reader: Reader,
    file: Unpublished<D>,
    batch: D,
}

impl<D: Dataset> Conversion<D> {
    /// Opens a segment.
    ///
    /// # Errors
    /// If it cannot be read or has an unknown layout, or the file cannot be created.
    pub(super) fn begin(paths: &Paths, stem: &Stem) -> io::Result<Conversion<D>> {
        let reader = Reader::open::<D>(&paths.segment(stem))?.map_err(io::Error::other)?;
        Ok(Conversion { reader, file: Unpublished::create(paths, stem)?, batch: D::default() })
    }

    /// Converts one block; returns `false` at the end.
    pub(super) fn step(&mut self) -> io::Result<bool> {
        let more = self.reader.next(&mut self.batch)?;
        if more {
            self.file.writer().push(&self.batch)?;
        }
        Ok(more)
    }

    pub(super) fn publish(self) -> io::Result<Published> {
        self.file.publish()
    }
}
