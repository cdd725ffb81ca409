//! Removes the oldest files, by age and by total size.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thalweg_wire::{Nanos, Timestamp};

use super::layout::{hours, partition};
use super::options::HOUR;

/// Files that were removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Removed {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

struct StoredFile {
    partition: [String; 2],
    path: PathBuf,
    bytes: u64,
}

/// Removes whole files of a dataset, oldest first: those of hours that ended more than `keep` ago, then as many as needed
/// for the rest to have at most `keep_bytes`. Never removes `newest`. Files of all stores count, as they share the disk.
pub(super) fn enforce(
    dataset: &Path,
    now: Timestamp,
    keep: Option<Nanos>,
    keep_bytes: Option<u64>,
    newest: Option<&Path>,
) -> io::Result<Removed> {
    let mut removed = Removed::default();
    if keep.is_none() && keep_bytes.is_none() {
        return Ok(removed);
    }
    let files = files(dataset)?;
    let mut total: u64 = files.iter().map(|file| file.bytes).sum();
    // The latest hour that ended this long ago.
    let last = keep
        .filter(|keep| now.0 >= keep.saturating_add(HOUR).0)
        .map(|keep| partition(now.saturating_sub(keep.saturating_add(HOUR))));
    for file in files {
        let is_old = last.as_ref().is_some_and(|last| file.partition <= *last);
        let exceeds_size = keep_bytes.is_some_and(|bytes| total > bytes);
        if !(is_old || exceeds_size) {
            break;
        }
        if newest != Some(&*file.path) && remove(&file.path)? {
            removed.files += 1;
            removed.bytes += file.bytes;
            total -= file.bytes;
        }
    }
    Ok(removed)
}

/// Returns the dataset's files, oldest first.
fn files(dataset: &Path) -> io::Result<Vec<StoredFile>> {
    let mut files = Vec::new();
    for (partition, hour) in hours(dataset)? {
        for entry in fs::read_dir(hour)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_complete = name.to_str().is_some_and(|name| name.ends_with(".parquet"));
            if is_complete && let Ok(metadata) = entry.metadata() {
                files.push(StoredFile {
                    partition: partition.clone(),
                    path: entry.path(),
                    bytes: metadata.len(),
                });
            }
        }
    }
    // Within an hour, names sort by span and number after the prefix, which is the store's name.
    let within_hour = |path: &Path| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        stem.split_once('-').map(|(_, time)| time.to_owned()).unwrap_or(stem)
    };
    files.sort_by_cached_key(|file| (file.partition.clone(), within_hour(&file.path)));
    Ok(files)
}

/// Removes a file, and its directories if they are empty then. Returns `false` if another store removed it first.
fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        other => other?,
    }
    if let Some(hour) = path.parent()
        && fs::remove_dir(hour).is_ok()
        && let Some(date) = hour.parent()
    {
        let _ = fs::remove_dir(date);
    }
    Ok(true)
}
