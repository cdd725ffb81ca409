//! Recovers what an earlier run left in the spool: converts each segment to a file, once.
//!
//! A segment is removed after its file is durable under its final name. So a segment whose file exists is only removed.
//! Any other is converted, up to the block that the crash tore. A segment of an unknown layout stays: the version of the
//! program that wrote it can read it. A segment with damaged bytes between blocks is converted without them, and stays under another name.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::Path;

use crate::schema::Dataset;

use super::StoreError;
use super::files::{Conversion, Paths, Published};
use super::layout::{Stem, hours};
use super::spool::{Contents, Reader};
use super::statistics::{KeptSegment, Recovered};

/// A segment whose file could not be written yet.
pub(super) struct PendingSegment {
    pub(super) stem: Stem,
    /// Number of its rows, as far as known.
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

/// What was found when the store was opened.
#[derive(Default)]
pub(super) struct Found {
    pub(super) recovered: Recovered,
    pub(super) pending: VecDeque<PendingSegment>,
    /// Bytes of the files converted from segments.
    pub(super) bytes: u64,
    pub(super) saturated: u64,
    /// Sequence number of the next file.
    pub(super) sequence: u64,
    /// Why a segment could not be converted.
    pub(super) error: Option<String>,
}

/// Removes unfinished files, converts segments to files, and finds the first unused sequence number.
pub(super) fn recover<D: Dataset>(paths: &Paths, store: &str) -> Result<Found, StoreError> {
    let mut found = Found::default();
    let segments = segments(&paths.spool, store).map_err(StoreError::io("list", &paths.spool))?;
    scan_files(&paths.dataset, store, &mut found).map_err(StoreError::io("list", &paths.dataset))?;
    for stem in segments {
        found.sequence = found.sequence.max(stem.sequence().saturating_add(1));
        found.recovered.segments += 1;
        let segment = paths.segment(&stem);
        let contents = match Reader::contents::<D>(&segment).map_err(StoreError::io("read", &segment))? {
            Ok(contents) => contents,
            Err(unknown) => {
                let reason = format!("unread: {unknown}");
                found.recovered.kept.push(KeptSegment { path: segment, reason });
                continue;
            }
        };
        if paths.file(&stem).exists() {
            found.recovered.already_written += 1;
            fs::remove_file(&segment).map_err(StoreError::io("remove", &segment))?;
            continue;
        }
        found.recovered.torn += u64::from(contents.torn > 0);
        found.recovered.torn_bytes += contents.torn;
        found.recover_segment::<D>(paths, stem, contents)?;
    }
    Ok(found)
}

impl Found {
    fn recover_segment<D: Dataset>(
        &mut self,
        paths: &Paths,
        stem: Stem,
        contents: Contents,
    ) -> Result<(), StoreError> {
        let segment = paths.segment(&stem);
        if contents.rows > 0 {
            match convert::<D>(paths, &stem) {
                Ok(published) => {
                    self.recovered.files += 1;
                    self.recovered.records += published.rows;
                    self.bytes += published.bytes;
                    self.saturated += published.saturated;
                }
                Err(error) => {
                    self.recovered.pending += 1;
                    self.error = Some(format!("{}: {error}", paths.file(&stem).display()));
                    self.pending.push_back(PendingSegment {
                        stem,
                        rows: contents.rows,
                        bytes: contents.bytes,
                    });
                    return Ok(());
                }
            }
        }
        if contents.damaged == 0 {
            return fs::remove_file(&segment).map_err(StoreError::io("remove", &segment));
        }
        let path = segment.with_extension("spool.damaged");
        fs::rename(&segment, &path).map_err(StoreError::io("rename", &segment))?;
        let reason =
            format!("{} of its bytes are damaged; all other records were recovered", contents.damaged);
        self.recovered.kept.push(KeptSegment { path, reason });
        Ok(())
    }
}

fn convert<D: Dataset>(paths: &Paths, stem: &Stem) -> io::Result<Published> {
    let mut conversion = Conversion::<D>::begin(paths, stem)?;
    while conversion.step()? {}
    conversion.publish()
}

/// Returns the store's segments, oldest first.
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

/// Removes the store's unfinished files, and finds the highest sequence number in use.
fn scan_files(dataset: &Path, store: &str, found: &mut Found) -> io::Result<()> {
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
