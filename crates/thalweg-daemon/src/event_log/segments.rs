//! Segments of the event log: files of JSON lines, of which the oldest are removed.
//!
//! ```text
//!   DIR/events-18a8f0c2d5e6f708-00000001.jsonl     the run of the daemon, and the number of the segment within it
//! ```
//!
//! Segments sort by name as by time. Nothing is appended to a segment after a write has failed, nor after a restart. So only the last line
//! of a segment can be incomplete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use thalweg_wire::Bytes;

/// Parts of the maximum size that a segment may have: so much is removed at once.
const PARTS: u64 = 16;

/// Start and end of the names.
const START: &str = "events-";
const END: &str = ".jsonl";

/// A segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Segment {
    /// The run of the daemon: its start time.
    pub(super) run: u64,
    number: u32,
}

/// The segments of one run, which appends to them.
#[derive(Debug)]
pub(super) struct Segments {
    folder: PathBuf,
    max_size: Bytes,
    /// The segment that is written.
    current: Segment,
    file: Option<File>,
    length: u64,
}

impl Segment {
    /// Returns the path in a folder.
    pub(super) fn path(self, folder: &Path) -> PathBuf {
        folder.join(format!("{START}{:016x}-{:08}{END}", self.run, self.number))
    }

    /// Parses the name of a file.
    fn named(name: &str) -> Option<Segment> {
        let (run, number) = name.strip_prefix(START)?.strip_suffix(END)?.split_once('-')?;
        let segment = Segment { run: u64::from_str_radix(run, 16).ok()?, number: number.parse().ok()? };
        // No other spelling of the same numbers.
        (segment.path(Path::new("")).to_str() == Some(name)).then_some(segment)
    }
}

/// Lists the segments of a folder, the oldest first.
///
/// # Errors
/// If the folder cannot be read. One that does not exist has none.
pub(super) fn list(folder: &Path) -> io::Result<Vec<Segment>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut segments = Vec::new();
    for entry in entries {
        segments.extend(entry?.file_name().to_str().and_then(Segment::named));
    }
    segments.sort_unstable();
    Ok(segments)
}

/// Reads a segment, unless it was last written before `since`. Invalid UTF-8 becomes U+FFFD. `None` if it was removed meanwhile.
///
/// # Errors
/// If it cannot be read.
pub(super) fn read(folder: &Path, segment: Segment, since: Option<SystemTime>) -> io::Result<Option<String>> {
    let path = segment.path(folder);
    let read = || -> io::Result<Option<String>> {
        if let Some(since) = since
            && fs::metadata(&path)?.modified()? < since
        {
            return Ok(None);
        }
        Ok(Some(String::from_utf8_lossy(&fs::read(&path)?).into_owned()))
    };
    match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        text => text,
    }
}

impl Segments {
    /// Segments of a run, in a folder that is created if missing. Together with those of earlier runs they have at most about `max_size`.
    ///
    /// # Errors
    /// If the folder cannot be created or read.
    pub(super) fn open(folder: &Path, max_size: Bytes, run: u64) -> io::Result<Segments> {
        fs::create_dir_all(folder)?;
        let mut segments = Segments {
            folder: folder.to_owned(),
            max_size,
            current: Segment { run, number: 0 },
            file: None,
            length: 0,
        };
        // There are some of this run if the clock was set back and another daemon started at the same time: their numbers continue.
        let of_run = list(folder)?.into_iter().filter(|segment| segment.run == run);
        segments.current.number = of_run.map(|segment| segment.number).max().unwrap_or(0);
        segments.prune()?;
        Ok(segments)
    }

    /// Appends whole lines.
    ///
    /// # Errors
    /// If they cannot be written completely. Then a later attempt writes all of them to a new segment.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.length > 0 && self.length + lines.len() as u64 > self.max_size.0 / PARTS {
            self.file = None;
        }
        if self.file.as_ref().is_some_and(|file| file.metadata().is_ok_and(|file| file.nlink() == 0)) {
            tracing::warn!(folder = %self.folder.display(), "a segment of the event log was removed while it was written");
            self.file = None;
        }
        let appended = self.write(lines);
        if appended.is_err() {
            self.file = None;
        }
        appended
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            self.current.number += 1;
            self.prune()?;
            let path = self.current.path(&self.folder);
            self.file = Some(OpenOptions::new().append(true).create_new(true).open(path)?);
            self.length = 0;
        }
        let file = self.file.as_mut().expect("opened above");
        file.write_all(lines)?;
        self.length += lines.len() as u64;
        Ok(())
    }

    /// Removes the oldest segments, so that there is room for another.
    fn prune(&self) -> io::Result<()> {
        let room = self.max_size.0 - self.max_size.0 / PARTS;
        let mut sized = Vec::new();
        for segment in list(&self.folder)? {
            let path = segment.path(&self.folder);
            sized.push((fs::metadata(&path).map_or(0, |metadata| metadata.len()), path));
        }
        let mut size: u64 = sized.iter().map(|(length, _)| length).sum();
        for (length, path) in sized {
            if size <= room {
                break;
            }
            fs::remove_file(&path)?;
            size -= length;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> Vec<u8> {
        b"0123456789\n".repeat(count)
    }

    #[test]
    fn the_oldest_segments_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut segments = Segments::open(folder.path(), Bytes(16 * 110), 7).unwrap();
        for _ in 0..100 {
            segments.append(&lines(5)).unwrap();
        }
        let kept = list(folder.path()).unwrap();
        assert_eq!((kept[0].number, kept.last().unwrap().number), (35, 50));
        let size: u64 = kept.iter().map(|it| fs::metadata(it.path(folder.path())).unwrap().len()).sum();
        assert!(size <= 16 * 110, "{size}");
        // A later run removes those of earlier ones.
        let mut later = Segments::open(folder.path(), Bytes(16 * 110), 8).unwrap();
        later.append(&lines(10)).unwrap();
        let kept = list(folder.path()).unwrap();
        assert_eq!((kept[0].run, kept[0].number, kept.last().unwrap().run), (7, 36, 8));
    }

    #[test]
    fn nothing_is_appended_after_a_failed_write_or_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let mut segments = Segments::open(folder.path(), Bytes(1 << 20), 7).unwrap();
        segments.append(&lines(1)).unwrap();
        segments.file =
            Some(File::open(folder.path().join("events-0000000000000007-00000001.jsonl")).unwrap());
        segments.append(&lines(1)).unwrap_err();
        segments.append(&lines(2)).unwrap();
        let mut again = Segments::open(folder.path(), Bytes(1 << 20), 7).unwrap();
        again.append(&lines(3)).unwrap();
        let lengths: Vec<_> = list(folder.path())
            .unwrap()
            .into_iter()
            .map(|segment| read(folder.path(), segment, None).unwrap().unwrap().lines().count())
            .collect();
        assert_eq!(lengths, [1, 2, 3]);
    }

    #[test]
    fn a_segment_that_was_removed_is_followed_by_another() {
        let folder = tempfile::tempdir().unwrap();
        let mut segments = Segments::open(folder.path(), Bytes(1 << 20), 7).unwrap();
        segments.append(&lines(1)).unwrap();
        fs::remove_file(list(folder.path()).unwrap()[0].path(folder.path())).unwrap();
        segments.append(&lines(2)).unwrap();
        let kept = list(folder.path()).unwrap();
        assert_eq!((kept.len(), kept[0].number), (1, 2));
        // With the folder, the next write fails, and opening it again creates it.
        fs::remove_dir_all(folder.path()).unwrap();
        segments.append(&lines(1)).unwrap_err();
        Segments::open(folder.path(), Bytes(1 << 20), 7).unwrap().append(&lines(1)).unwrap();
        assert_eq!(list(folder.path()).unwrap().len(), 1);
    }

    #[test]
    fn other_files_are_no_segments() {
        for name in
            ["events-7-1.jsonl", "events-0000000000000007-00000001.jsonl.tmp", "events-.jsonl", "x", ""]
        {
            assert_eq!(Segment::named(name), None, "{name}");
        }
        let name = "events-0000000000000007-00000001.jsonl";
        assert_eq!(Segment::named(name), Some(Segment { run: 7, number: 1 }));
        assert_eq!(list(Path::new("/nonexistent")).unwrap(), []);
    }
}
