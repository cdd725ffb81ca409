//! Rotated files of a log: `NAME.*` and `NAME-*` in its directory.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::head::Head;

/// Identity of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FileId {
    pub(super) device: u64,
    pub(super) inode: u64,
}

impl FileId {
    pub(super) fn of(metadata: &Metadata) -> FileId {
        FileId { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// A file beside the log.
#[derive(Clone, Debug)]
pub(super) struct Sibling {
    path: PathBuf,
    pub(super) id: FileId,
    length: u64,
    pub(super) age: Age,
    pub(super) name: RotatedName,
}

/// Order of rotated files, older ones first: by modification; those of the same time by their number, the highest first, or their date.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Age {
    modified_ns: i64,
    number_from_end: i64,
    suffix: Vec<u8>,
}

impl Age {
    /// The age of a file that was modified at this time, and whose rotated name is not known: after all others of the same time.
    pub(super) fn of(modified_ns: i64) -> Age {
        Age { modified_ns, number_from_end: i64::MAX, suffix: Vec::new() }
    }
}

/// Returns when a file was modified, in nanoseconds since 1970.
pub(super) fn modified_ns(metadata: &Metadata) -> i64 {
    metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec())
}

/// What the name of a file beside the log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RotatedName {
    /// A number or a date, as logrotate and programs that rotate their own logs write it.
    Rotated,
    /// The same, compressed.
    Compressed,
    /// Something else.
    Other,
}

impl RotatedName {
    /// Classifies what comes after the name of the log.
    fn of(suffix: &[u8]) -> RotatedName {
        let compressed = [&b".gz"[..], b".xz", b".bz2", b".zst"];
        let stem = compressed.iter().find_map(|end| suffix.strip_suffix(*end));
        let is_number_or_date = |stem: &[u8]| {
            stem.get(1).is_some_and(u8::is_ascii_digit)
                && stem[1..].iter().all(|byte| byte.is_ascii_digit() || b".-_:T".contains(byte))
        };
        match (stem, is_number_or_date(stem.unwrap_or(suffix))) {
            (None, true) => RotatedName::Rotated,
            (Some(_), true) => RotatedName::Compressed,
            (_, false) => RotatedName::Other,
        }
    }
}

impl Sibling {
    /// Opens the file if it still is the same, is at least this long, and begins with the same bytes.
    pub(super) fn open(&self, length: u64, head: Head) -> io::Result<Option<File>> {
        if self.length < length {
            return Ok(None);
        }
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match FileId::of(&file.metadata()?) == self.id && head.matches(&file)? {
            true => Ok(Some(file)),
            false => Ok(None),
        }
    }
}

/// Returns the files beside a log, the oldest first.
pub(super) fn siblings(log: &Path) -> io::Result<Vec<Sibling>> {
    let Some(name) = log.file_name() else { return Ok(Vec::new()) };
    let directory = match log.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut siblings = Vec::new();
    let entries = match directory.read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let file_name = entry.file_name();
        let Some(suffix) = file_name.as_bytes().strip_prefix(name.as_bytes()) else { continue };
        if !matches!(suffix.first(), Some(b'.' | b'-')) {
            continue;
        }
        // A file that is gone meanwhile is no sibling.
        let Ok(metadata) = entry.metadata() else { continue };
        if !metadata.is_file() {
            continue;
        }
        let number = std::str::from_utf8(&suffix[1..]).ok().and_then(|text| text.parse::<i64>().ok());
        let mut age = Age::of(modified_ns(&metadata));
        // A date such as 20261128 is no number of a rotation: it grows.
        age.number_from_end = number.filter(|number| *number < 10_000).map_or(0, |number| -number);
        age.suffix = suffix.to_vec();
        siblings.push(Sibling {
            path: entry.path(),
            id: FileId::of(&metadata),
            length: metadata.len(),
            age,
            name: RotatedName::of(suffix),
        });
    }
    siblings.sort_by(|a, b| a.age.cmp(&b.age));
    Ok(siblings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rotated_files_are_recognised() {
        for suffix in [".1", ".10", "-20261128", ".2026-11-28", "-20261128.1", "-2026-11-28T20:00:00"] {
            assert_eq!(RotatedName::of(suffix.as_bytes()), RotatedName::Rotated, "{suffix}");
        }
        for suffix in [".1.gz", "-20261128.xz", ".2.zst"] {
            assert_eq!(RotatedName::of(suffix.as_bytes()), RotatedName::Compressed, "{suffix}");
        }
        for suffix in [".old", "-error.log", ".gz", ".", "-", ".1.bak"] {
            assert_eq!(RotatedName::of(suffix.as_bytes()), RotatedName::Other, "{suffix}");
        }
    }

    #[test]
    fn files_of_the_same_time_are_ordered_by_number() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000);
        for name in ["log.1", "log.2", "log.10", "log", "other.3", "log-"] {
            let file = File::create(directory.path().join(name)).unwrap();
            file.set_modified(time).unwrap();
        }
        let names: Vec<String> = siblings(&log)
            .unwrap()
            .iter()
            .map(|sibling| sibling.path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["log.10", "log.2", "log.1", "log-"]);
    }
}
