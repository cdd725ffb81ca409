//! Names and rotation of capture files of samples.
//!
//! ```text
//! tor0-20261121T221620.500000000Z-congestion.pcapng        collector, packet time, cause
//! tor0-20261121T221620.500000000Z-congestion-2.pcapng      the next with the same name: nothing is overwritten
//! tor0-20261121T221620.500000000Z-signal-tor0_p3_out.pcap  one port
//! ```
//!
//! Rotation reads the directory, so that the dumps of earlier runs count too.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use thalweg_wire::Timestamp;

use super::dump::Cause;
use crate::config::Trigger;

/// The common prefix of the files of one dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stem {
    first: String,
    number: u32,
}

impl Stem {
    /// Creates the prefix for samples of a collector. `last` is the time of the last one.
    pub(super) fn new(collector: &str, last: Timestamp, cause: Cause) -> Stem {
        let cause = match cause {
            Cause::Request => "request",
            Cause::Signal => "signal",
            Cause::Event(trigger) => trigger.name(),
        };
        let time = last.to_string().replace(['-', ':'], "");
        Stem { first: format!("{}-{time}-{cause}", sanitized(collector)), number: 1 }
    }

    /// Returns the prefix with the next number that no file of the directory has.
    pub(super) fn unused_in(mut self, folder: &Path) -> io::Result<Stem> {
        let mut taken = BTreeSet::new();
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name();
            // Unfinished files may be overwritten.
            let name = name.to_str().filter(|name| !name.ends_with(".unfinished"));
            taken.extend(name.and_then(|name| number_after(name, &self.first)));
        }
        while taken.contains(&self.number) {
            self.number += 1;
        }
        Ok(self)
    }
}

impl fmt::Display for Stem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            1 => f.write_str(&self.first),
            number => write!(f, "{}-{number}", self.first),
        }
    }
}

/// Replaces all characters that are unsafe in a file name.
pub(super) fn sanitized(name: &str) -> String {
    let sanitized = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    name.chars().map(sanitized).collect()
}

/// Removes all but the newest `keep` event dumps.
///
/// # Errors
/// If the directory cannot be read. Errors of single files are ignored.
pub(super) fn keep_newest(folder: &Path, keep: usize) -> io::Result<()> {
    let mut dumps: BTreeMap<String, (SystemTime, Vec<PathBuf>)> = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(dump) = name.to_str().and_then(dump_for_event) else { continue };
        let Ok(modified) = entry.metadata().and_then(|metadata| metadata.modified()) else { continue };
        let (newest, files) = dumps.entry(dump).or_insert((modified, Vec::new()));
        *newest = modified.max(*newest);
        files.push(entry.path());
    }
    let mut dumps: Vec<(SystemTime, Vec<PathBuf>)> = dumps.into_values().collect();
    dumps.sort();
    let surplus = dumps.len().saturating_sub(keep);
    dumps.drain(..surplus).flat_map(|(_, files)| files).for_each(|path| _ = fs::remove_file(path));
    Ok(())
}

/// Returns the event dump that a file belongs to; `None` for other files.
fn dump_for_event(name: &str) -> Option<String> {
    if !name.ends_with(".pcapng") && !name.ends_with(".pcap") {
        return None;
    }
    let at_cause = |(at, end): (usize, &str)| at + end.len();
    let cause_at = name.match_indices("Z-").map(at_cause).find(|&at| is_time(&name[..at - 1]))?;
    let cause = name[cause_at..].split(['-', '.']).next()?;
    Trigger::ALL.iter().find(|trigger| trigger.name() == cause)?;
    let first = &name[..cause_at + cause.len()];
    number_after(name, first).map(|number| format!("{first}-{number}"))
}

/// Whether `name` ends with a packet time: `-20261121T221620.500000000Z`.
fn is_time(name: &str) -> bool {
    const FORM: &[u8] = b"-00000000T000000.000000000Z";
    let Some(tail) = name.len().checked_sub(FORM.len()).map(|start| &name.as_bytes()[start..]) else {
        return false;
    };
    tail.iter().zip(FORM).all(|(byte, form)| if *form == b'0' { byte.is_ascii_digit() } else { byte == form })
}

/// Returns the number of the dump that a file belongs to, if its prefix is `first`.
fn number_after(name: &str, first: &str) -> Option<u32> {
    let rest = name.strip_prefix(first)?;
    let number = match rest.strip_prefix('-') {
        Some(rest) => rest.split(['-', '.']).next().and_then(|word| word.parse().ok()).unwrap_or(1),
        None => 1,
    };
    (rest.starts_with(['-', '.'])).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Timestamp = Timestamp(1_795_299_376_500_000_000);

    fn write(folder: &Path, name: &str, seconds: u64) {
        let path = folder.join(name);
        fs::write(&path, "").unwrap();
        let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn dumps_of_the_same_time_are_numbered() {
        let folder = tempfile::tempdir().unwrap();
        let stem = || Stem::new("tor0", TIME, Cause::Signal).unused_in(folder.path()).unwrap().to_string();
        let first = stem();
        write(folder.path(), &format!("{first}.pcapng"), 1);
        let second = stem();
        assert_eq!(second, format!("{first}-2"));
        write(folder.path(), &format!("{second}-tor0_p3_out.pcap"), 1);
        assert_eq!(stem(), format!("{first}-3"));
        // Another cause has its own numbers.
        let other = Stem::new("tor0", TIME, Cause::Request).unused_in(folder.path()).unwrap().to_string();
        assert!(!other.ends_with("-2"), "{other}");
    }

    #[test]
    fn rotation_removes_the_oldest_event_dumps_only() {
        let folder = tempfile::tempdir().unwrap();
        let stem = |cause| Stem::new("a-b", TIME, cause).to_string();
        let (event, signal) = (stem(Cause::Event(Trigger::Congestion)), stem(Cause::Signal));
        let old = [format!("{event}-a_p0_out.pcap"), format!("{event}-a_p1_out.pcap")];
        old.iter().for_each(|name| write(folder.path(), name, 1));
        let kept = [
            format!("{event}-2.pcapng"),
            format!("{event}-3-a_p0_out.pcap"),
            format!("{signal}.pcapng"),
            "a-congestion.pcapng".to_owned(),
            format!("{event}.txt"),
        ];
        for (seconds, name) in (2..).zip(&kept) {
            write(folder.path(), name, seconds);
        }
        keep_newest(folder.path(), 3).unwrap();
        assert_eq!(names(folder.path()).len(), 7, "three event dumps");
        keep_newest(folder.path(), 2).unwrap();
        let mut expected = kept.to_vec();
        expected.sort();
        assert_eq!(names(folder.path()), expected);
    }
}
