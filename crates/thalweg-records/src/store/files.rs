//! Files of one dataset and one store: begun, published, and made from segments.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::schema::Dataset;

use super::StoreOptions;
use super::layout::Stem;
use super::parquet::{FileWriter, publish, sync_directory, unfinished};
use super::spool::Reader;

/// Where one dataset's files and segments are.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// `DIR/flows`
    pub(super) dataset: PathBuf,
    /// `DIR/spool/NAME/flows`
    pub(super) spool: PathBuf,
    row_group_rows: usize,
    compression_level: i32,
}

impl Places {
    pub(super) fn new<D: Dataset>(options: &StoreOptions) -> Places {
        Places {
            dataset: options.directory.join(D::NAME),
            spool: options.directory.join("spool").join(&options.name).join(D::NAME),
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

/// A file that is not to be seen yet. Dropped without [`publish`](Unpublished::publish), it is removed.
pub(super) struct Unpublished<D: Dataset> {
    writer: Option<FileWriter<D, File>>,
    part: PathBuf,
    path: PathBuf,
}

impl<D: Dataset> Unpublished<D> {
    pub(super) fn create(places: &Places, stem: &Stem) -> io::Result<Unpublished<D>> {
        let path = places.file(stem);
        let hour = path.parent().unwrap_or(&places.dataset);
        if !hour.is_dir() {
            make_directories(&places.dataset, hour)?;
        }
        let part = unfinished(&path);
        let writer = FileWriter::new(File::create(&part)?, places.row_group_rows, places.compression_level)?;
        Ok(Unpublished { writer: Some(writer), part, path })
    }

    pub(super) fn writer(&mut self) -> &mut FileWriter<D, File> {
        self.writer.as_mut().expect("there is a writer until the file is published")
    }

    /// Completes the file and brings it under its name.
    pub(super) fn publish(mut self) -> io::Result<Published> {
        let writer = self.writer.take().expect("there is a writer until the file is published");
        let (rows, path) = (writer.rows(), self.path.clone());
        let (file, saturated) = writer.finish()?;
        publish(&file, &self.part, &path)?;
        Ok(Published { rows, bytes: file.metadata()?.len(), saturated, path })
    }
}

impl<D: Dataset> Drop for Unpublished<D> {
    fn drop(&mut self) {
        // After a rename there is no such file.
        let _ = fs::remove_file(&self.part);
    }
}

/// A file that is to be seen.
pub(super) struct Published {
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) saturated: u64,
    pub(super) path: PathBuf,
}

/// Makes a partition's directories, so that they survive a power failure.
fn make_directories(dataset: &Path, hour: &Path) -> io::Result<()> {
    fs::create_dir_all(hour)?;
    sync_directory(dataset)?;
    sync_directory(hour.parent().unwrap_or(dataset))
}

/// A segment on its way to a file, a frame at a time.
pub(super) struct Conversion<D: Dataset> {
    reader: Reader,
    file: Unpublished<D>,
    batch: D,
}

impl<D: Dataset> Conversion<D> {
    /// `None` if the segment is of another format or another list of columns.
    pub(super) fn begin(places: &Places, stem: &Stem) -> io::Result<Option<Conversion<D>>> {
        let Some(reader) = Reader::open::<D>(&places.segment(stem))? else { return Ok(None) };
        Ok(Some(Conversion { reader, file: Unpublished::create(places, stem)?, batch: D::default() }))
    }

    /// Takes one frame over; `false` if there was none.
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
