//! What an earlier run has left: segments become files, each once.
//!
//! A segment is removed after its file is under its name and on the disk. So a segment whose file is there needs no more, and
//! one whose file is not there is turned into it, from its begin to where the crash tore it.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::Path;

use crate::schema::Dataset;

use super::StoreError;
use super::files::{Conversion, Places, Published};
use super::layout::{Stem, hours};
use super::spool::{Contents, Reader};
use super::statistics::Recovered;

/// A segment whose file could not be written yet.
pub(super) struct Waiting {
    pub(super) stem: Stem,
    /// Rows that are in it, as far as is known.
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

/// What is there when a store is opened.
#[derive(Default)]
pub(super) struct Found {
    pub(super) recovered: Recovered,
    pub(super) waiting: VecDeque<Waiting>,
    /// Bytes of the files written from segments.
    pub(super) bytes: u64,
    pub(super) saturated: u64,
    /// The number of the next file.
    pub(super) sequence: u64,
    /// Why a segment waits.
    pub(super) error: Option<String>,
}

/// Removes unfinished files, turns segments into files, and finds the first number that no file has.
pub(super) fn recover<D: Dataset>(places: &Places, store: &str) -> Result<Found, StoreError> {
    let mut found = Found::default();
    let segments = segments(&places.spool, store).map_err(StoreError::io(&places.spool))?;
    survey(&places.dataset, store, &mut found).map_err(StoreError::io(&places.dataset))?;
    for stem in segments {
        found.sequence = found.sequence.max(stem.sequence().saturating_add(1));
        found.recovered.segments += 1;
        let segment = places.segment(&stem);
        if places.file(&stem).exists() {
            found.recovered.already_written += 1;
            fs::remove_file(&segment).map_err(StoreError::io(&segment))?;
            continue;
        }
        let Some(contents) = Reader::contents::<D>(&segment).map_err(StoreError::io(&segment))? else {
            found.recovered.foreign += 1;
            continue;
        };
        found.recovered.torn += u64::from(contents.torn > 0);
        found.recovered.torn_bytes += contents.torn;
        found.take::<D>(places, stem, contents)?;
    }
    Ok(found)
}

impl Found {
    fn take<D: Dataset>(
        &mut self,
        places: &Places,
        stem: Stem,
        contents: Contents,
    ) -> Result<(), StoreError> {
        let segment = places.segment(&stem);
        if contents.rows > 0 {
            match convert::<D>(places, &stem) {
                Ok(published) => {
                    self.recovered.files += 1;
                    self.recovered.records += published.rows;
                    self.bytes += published.bytes;
                    self.saturated += published.saturated;
                }
                Err(error) => {
                    self.recovered.waiting += 1;
                    self.error = Some(format!("{}: {error}", places.file(&stem).display()));
                    self.waiting.push_back(Waiting { stem, rows: contents.rows, bytes: contents.bytes });
                    return Ok(());
                }
            }
        }
        fs::remove_file(&segment).map_err(StoreError::io(&segment))
    }
}

fn convert<D: Dataset>(places: &Places, stem: &Stem) -> io::Result<Published> {
    let other = || io::Error::other("the segment is of another format");
    let mut conversion = Conversion::<D>::begin(places, stem)?.ok_or_else(other)?;
    while conversion.step()? {}
    conversion.publish()
}

/// The store's segments, oldest first.
fn segments(spool: &Path, store: &str) -> io::Result<Vec<Stem>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(spool)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "spool") {
            segments.extend(Stem::parse(&path, store));
        }
    }
    segments.sort_by_key(Stem::sequence);
    Ok(segments)
}

/// Removes the store's unfinished files, and sees which numbers are taken.
fn survey(dataset: &Path, store: &str, found: &mut Found) -> io::Result<()> {
    for (_, hour) in hours(dataset)? {
        for entry in fs::read_dir(hour)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if let Some(name) = name.strip_prefix('.').and_then(|name| name.strip_suffix(".part")) {
                if Stem::parse(Path::new(name), store).is_some() {
                    fs::remove_file(&path)?;
                    found.recovered.unfinished_files += 1;
                }
            } else if let Some(stem) = Stem::parse(&path, store) {
                found.sequence = found.sequence.max(stem.sequence().saturating_add(1));
            }
        }
    }
    Ok(())
}
